#pragma once
#include <deque>
#include <unordered_map>

#include "backends/vulkan/memory.h"

namespace quern::vulkan {

/// The pipelines of a kernel's tasks; kept by what was submitted until that is done.
struct Pipelines {
  Pipelines(std::shared_ptr<Gpu> gpu, const runtime::Image& image);
  ~Pipelines();
  Pipelines(const Pipelines&) = delete;

  struct Task {
    VkPipeline pipeline = nullptr;
    ir::Task::Kind kind{};
    ir::Task::Walk walk{};
    bool lanes = false;
    uint32_t group = 1;     ///< invocations in a workgroup
    bool combines = false;  ///< its workgroups reduce: few with long loops beat many
  };
  std::shared_ptr<Gpu> gpu;
  std::vector<Task> tasks;
  std::string name;                     ///< of the kernel
  std::vector<std::vector<Loc>> loops;  ///< of each task, see CutLoop
  uint32_t id = 0;                      ///< PushConstants::id

 private:
  VkPipeline make(std::span<const uint32_t> words);
  void destroy();
};

/// One queue, which keeps every order asked for; each submission is one command buffer and one value of a timeline semaphore.
class Driver : public runtime::Driver {
 public:
  Driver(std::shared_ptr<Instance> instance, const Adapter& adapter);
  ~Driver() override;

  const runtime::Target& target() const override { return target_; }
  runtime::Address allocate(uint64_t bytes, uint32_t queue) override;
  void release(runtime::Address address, uint32_t queue) override;
  std::unique_ptr<runtime::Executable> load(const runtime::Image& image) override;
  runtime::Ticket submit(std::span<const runtime::Command> commands,
                         const runtime::Order& order) override;
  bool done(runtime::Ticket ticket) override;
  void wait(runtime::Ticket ticket) override;
  void upload(runtime::Address to, std::span<const std::byte> from, uint32_t queue) override;
  void download(std::span<std::byte> to, runtime::Address from, uint32_t queue) override;
  std::byte* host_pointer(runtime::Address address) override;

 private:
  struct Submission {
    uint64_t number = 0;  ///< of its ticket
    VkCommandBuffer buffer = nullptr;
    std::vector<std::shared_ptr<const Pipelines>> kept;
    std::vector<runtime::Address> released;  ///< go back when it is done
  };

  VkCommandBuffer take_buffer();
  void record(Submission& s, const runtime::Launch& launch);
  void record(Submission& s, const runtime::Copy& copy);
  void record(Submission& s, const runtime::Fill& fill);
  void barrier(VkCommandBuffer buffer, bool to_host);
  void copy_apart(VkCommandBuffer buffer, runtime::Address to, runtime::Address from,
                  uint64_t bytes);
  Memory::Place place(runtime::Address address, uint64_t bytes) const;
  /// Gives back what finished submissions held.
  void retire();
  void wait_all();
  /// Throws Error where a loop was cut.
  void expect_whole_loops();
  /// Calls `part(offset, bytes, staging address, its host memory)` for pieces that fit the staging
  /// memory.
  template <class F>
  void staged(uint64_t bytes, F&& part);

  std::shared_ptr<Gpu> gpu_;
  runtime::Target target_;
  struct Known {
    std::weak_ptr<const Pipelines> pipelines;
    std::string name;
    std::vector<std::vector<Loc>> loops;
  };

  Memory fields_, staging_;
  VkSemaphore semaphore_ = nullptr;
  VkCommandPool pool_ = nullptr;
  std::mutex mutex_;  ///< guards the queue and everything below
  std::vector<VkCommandBuffer> idle_;
  std::deque<Submission> running_;
  runtime::Address fault_ = 0;  ///< a CutLoop, or 0
  /// By Pipelines::id. Where loops may be cut, kept until a wait has found that none was: the
  /// kernel may be gone then.
  std::unordered_map<uint32_t, Known> ids_;
  uint32_t next_id_ = 0;
  uint64_t last_ = 0;
};

}  // namespace quern::vulkan
