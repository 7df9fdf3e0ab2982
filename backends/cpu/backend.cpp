#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>

#include "backends/cpu/host.h"
#include "backends/cpu/loader.h"
#include "backends/cpu/memory.h"
#include "backends/cpu/parallel.h"
#include "quern/error.h"
#include "quern/ir/abi.h"
#include "quern/runtime/biased_mutex.h"

namespace quern::cpu {

namespace {

using runtime::Address;

/// So many operations take longer than waking threads for them, even in vectors.
constexpr uint64_t long_operations = 2'000'000;

/// What the threads take over from each other at most.
constexpr uint64_t most_groups = 1 << 16;

class Executable : public runtime::Executable {
 public:
  explicit Executable(const runtime::Image& image) : object_(image.code, image.tasks.size()) {}
  TaskFunction task(size_t k) const { return object_.tasks().at(k); }

 private:
  LoadedObject object_;
};

template <class T>
T* pointer(Address address) {
  return reinterpret_cast<T*>(address);
}

/// Commands are done when submit returns; a lock gives them their order, which is that of the one
/// queue.
class Driver : public runtime::Driver {
 public:
  explicit Driver(const runtime::Target& target)
      : target_(target), memory_(target.max_allocation) {}

  const runtime::Target& target() const override { return target_; }

  Address allocate(uint64_t bytes, uint32_t) override {
    return reinterpret_cast<Address>(memory_.allocate(bytes));
  }
  void release(Address address, uint32_t) override {
    std::lock_guard lock(order_);
    memory_.release(pointer<void>(address));
  }

  std::unique_ptr<runtime::Executable> load(const runtime::Image& image) override {
    expect_runs(image, target_, runs_on);
    if (image.one_thread && target_.workers != 1)
      throw Error(image.loc, "kernel '" + image.kernel +
                                 "' was compiled for a CPU device of one thread; this one has " +
                                 std::to_string(target_.workers));
    return std::make_unique<Executable>(image);
  }

  runtime::Ticket submit(std::span<const runtime::Command> commands,
                         const runtime::Order&) override {
    std::lock_guard lock(order_);
    while (!commands.empty()) {
      const size_t kept = first_kept(commands);
      if (kept > 0)
        copy_kept(commands.first(kept));
      else
        std::visit([&](const auto& c) { run(c); }, commands[0]);
      commands = commands.subspan(std::max<size_t>(kept, 1));
    }
    return {0, ++last_};
  }
  bool done(runtime::Ticket) override { return true; }
  void wait(runtime::Ticket) override { std::lock_guard lock(order_); }

  void upload(Address to, std::span<const std::byte> from, uint32_t) override {
    std::lock_guard lock(order_);
    copy(pointer<void>(to), from.data(), from.size());
  }
  void download(std::span<std::byte> to, Address from, uint32_t) override {
    std::lock_guard lock(order_);
    copy(to.data(), pointer<const void>(from), to.size());
  }
  std::byte* host_pointer(Address address) override { return pointer<std::byte>(address); }

 private:
  /// How many commands from the first on are copies that are kept.
  static size_t first_kept(std::span<const runtime::Command> commands) {
    const auto is_kept = [](const runtime::Command& command) {
      const auto* copy = std::get_if<runtime::Copy>(&command);
      return copy && copy->is_kept;
    };
    return size_t(std::ranges::find_if_not(commands, is_kept) - commands.begin());
  }

  void run(const runtime::Launch& launch) {
    if (launch.guard && *pointer<const uint32_t>(launch.guard) == 0) return;
    TaskFunction task = static_cast<const Executable*>(launch.executable)->task(launch.task);
    auto* args = pointer<const void>(launch.args);
    if (auto* serial = std::get_if<runtime::Serial>(&launch.work))
      return task(args, int64_t(ir::abi::alone_bit), 0, int64_t(serial->rows));
    const auto& work = std::get<runtime::Chunked>(launch.work);
    const uint64_t chunks = work.chunks();
    const uint64_t alone = chunks == 1 ? ir::abi::alone_bit : 0;  // launches run one by one
    auto chunk = [&](uint64_t k) {
      uint64_t begin = k * work.grain;
      task(args, int64_t(k | alone), int64_t(begin),
           int64_t(std::min(work.iterations, begin + work.grain)));
    };
    // Of very many chunks a group at a time, so that those of a launch that was ended are not called
    // one by one to do nothing.
    const uint64_t group = chunks / most_groups + 1;
    auto* record = pointer<ir::abi::ErrorRecord>(
        *pointer<const Address>(launch.args + ir::abi::error_address));
    auto run_group = [&](uint64_t g) {
      const uint64_t end = std::min(chunks, (g + 1) * group);
      for (uint64_t k = g * group; k < end; k++) {
        if (group > 1 && std::atomic_ref(record->state).load(std::memory_order_relaxed) >=
                             (ir::abi::claim_bit | ir::abi::stop_bit))
          return;
        chunk(k);
      }
    };
    const uint64_t groups = (chunks + group - 1) / group;
    if (target_.workers == 1) {  // the code counts on one thread
      for (uint64_t g = 0; g < groups; g++) run_group(g);
      return;
    }
    parallel_for(groups, work.operations < long_operations ? Waking::late : Waking::at_once,
                 run_group);
  }
  void run(const runtime::Copy& c) {
    copy(pointer<void>(c.to), pointer<const void>(c.from), c.bytes);
  }
  void run(const runtime::Fill& f) { fill(pointer<void>(f.to), f.bytes, f.pattern); }

  runtime::Target target_;
  Memory memory_;
  runtime::BiasedMutex order_;
  uint64_t last_ = 0;
};

std::vector<runtime::Target> probe(std::string&) { return {host_target()}; }

std::unique_ptr<runtime::Driver> open(const runtime::Target& target) {
  expect_thread_settings();
  return std::make_unique<Driver>(target);
}

}  // namespace

extern const runtime::Backend backend;
const runtime::Backend backend = {"cpu", 10, probe, open};

}  // namespace quern::cpu
