#pragma once
// The driver of the CUDA and ROCm back ends.
#include "backends/gpu/copies.h"
#include "backends/gpu/graphs.h"
#include "backends/gpu/memory.h"
#include "backends/gpu/module.h"
#include "backends/gpu/staging.h"

namespace quern::gpu {

/// One device; each queue is a stream.
class Driver : public runtime::Driver, public runtime::Native {
 public:
  Driver(std::shared_ptr<const Api> api, const Properties& device, runtime::Target target);
  /// In a stream of somebody else's, and a context (null: the primary one).
  Driver(std::shared_ptr<const Api> api, const Properties& device, runtime::Target target,
         const Handles& on);

  const runtime::Target& target() const override { return target_; }
  uint32_t make_queue() override { return queues_.make(); }
  runtime::Address allocate(uint64_t bytes, uint32_t queue = 0) override;
  void release(runtime::Address address, uint32_t queue = 0) override;
  std::unique_ptr<runtime::Executable> load(const runtime::Image& image) override;
  Ticket submit(std::span<const runtime::Command> commands, const Order& order = {}) override;
  bool done(Ticket ticket) override { return queues_.done(ticket); }
  void wait(Ticket ticket) override { queues_.wait(ticket); }
  void upload(runtime::Address to, std::span<const std::byte> from, uint32_t queue = 0) override {
    staging_.upload(to, from, queue);
  }
  void download(std::span<std::byte> to, runtime::Address from, uint32_t queue = 0) override {
    staging_.download(to, from, queue);
  }
  std::byte* host_pointer(runtime::Address) override { return nullptr; }

  runtime::Native* native() override { return this; }
  Handles handles() const override;
  void run_after(void* stream) override;
  void run_before(void* stream) override;
  void adopt(runtime::Address address, uint64_t bytes) override;
  void disown(runtime::Address address, uint64_t bytes) override;

  /// Copies from another device of the same vendor's, ordered after everything submitted to queue 0
  /// of either and before what is submitted to those from now on: directly where the two reach each other,
  /// else through the host.
  Ticket copy_from(Driver& source, runtime::Address to, runtime::Address from, uint64_t bytes);

 private:
  void check(const runtime::Command& command) const;
  void record(Work& work, uint32_t queue, const runtime::Launch& launch);
  void record(Work& work, uint32_t queue, const runtime::Copy& copy);
  void record(Work& work, uint32_t queue, const runtime::Fill& fill);
  void copy_apart(runtime::Address to, runtime::Address from, uint64_t bytes, uint32_t queue);
  bool reaches(Driver& source);
  void order(StreamHandle first, StreamHandle second);

  runtime::Target target_;
  std::shared_ptr<Gpu> gpu_;
  Copies copies_;  // goes when queues and graphs have ended
  Queues queues_;
  const StreamHandle first_stream_;
  Memory memory_;
  Staging staging_;
  Modules modules_;
  Graphs graphs_;
};

}  // namespace quern::gpu
