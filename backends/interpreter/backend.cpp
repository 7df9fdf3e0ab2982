// The interpreter as a device: host memory, tasks of level `split`, everything done at once.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>

#include "backends/interpreter/interpreter.h"
#include "quern/ir/text.h"
#include "quern/ir/verify.h"
#include "quern/runtime/backend.h"

namespace quern::interpreter {

namespace {

using runtime::Address;

class Executable : public runtime::Executable {
 public:
  explicit Executable(const ir::Kernel& kernel) : tasks_(kernel) {}
  Tasks& tasks() const { return tasks_; }

 private:
  mutable Tasks tasks_;
};

/// The image's code is the kernel's text.
std::unique_ptr<ir::Kernel> kernel_of(const runtime::Image& image) {
  try {
    auto kernel = ir::parse({reinterpret_cast<const char*>(image.code.data()), image.code.size()});
    ir::expect_valid(*kernel, "an image");
    if (kernel->tasks.size() != image.tasks.size()) throw Error("other tasks than its image has");
    return kernel;
  } catch (const Error& e) {
    throw InternalError("damaged code of the interpreter: " + e.message());
  }
}

template <class T>
T* pointer(Address address) {
  return reinterpret_cast<T*>(address);
}

/// Commands are done when submit returns; a lock gives them their order, which is that of the one
/// queue.
class Driver : public runtime::Driver {
 public:
  explicit Driver(const runtime::Target& target) : target_(target) {}

  const runtime::Target& target() const override { return target_; }

  Address allocate(uint64_t bytes, uint32_t) override {
    void* memory =
        bytes > target_.max_allocation ? nullptr : std::aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!memory) throw Error("the host has no " + std::to_string(bytes) + " bytes to give");
    return reinterpret_cast<Address>(memory);
  }
  void release(Address address, uint32_t) override {
    std::lock_guard lock(order_);
    std::free(pointer<void>(address));
  }

  std::unique_ptr<runtime::Executable> load(const runtime::Image& image) override {
    runtime::expect_runs(image, target_, [](const std::string& code, const std::string& machine) {
      return code == machine;
    });
    return std::make_unique<Executable>(*kernel_of(image));
  }

  runtime::Ticket submit(std::span<const runtime::Command> commands,
                         const runtime::Order&) override {
    std::lock_guard lock(order_);
    for (const runtime::Command& command : commands)
      std::visit([&](const auto& c) { run(c); }, command);
    return {0, ++last_};
  }
  bool done(runtime::Ticket) override { return true; }
  void wait(runtime::Ticket) override { std::lock_guard lock(order_); }

  void upload(Address to, std::span<const std::byte> from, uint32_t) override {
    std::lock_guard lock(order_);
    std::copy(from.begin(), from.end(), pointer<std::byte>(to));
  }
  void download(std::span<std::byte> to, Address from, uint32_t) override {
    std::lock_guard lock(order_);
    std::copy_n(pointer<const std::byte>(from), to.size(), to.begin());
  }
  std::byte* host_pointer(Address address) override { return pointer<std::byte>(address); }

 private:
  void run(const runtime::Launch& launch) {
    if (launch.guard && *pointer<const uint32_t>(launch.guard) == 0) return;
    static_cast<const Executable*>(launch.executable)
        ->tasks()
        .run(launch.task, pointer<std::byte>(launch.args));
  }
  void run(const runtime::Copy& c) {
    std::copy_n(pointer<const std::byte>(c.from), c.bytes, pointer<std::byte>(c.to));
  }
  void run(const runtime::Fill& f) { std::fill_n(pointer<uint32_t>(f.to), f.bytes / 4, f.pattern); }

  runtime::Target target_;
  std::mutex order_;
  uint64_t last_ = 0;
};

std::vector<runtime::Target> probe(std::string&) {
  runtime::Target target;
  target.backend = "interpreter";
  target.isa = "ir";
  target.device = "reference interpreter";
  target.host_addresses = true;
  target.traits.walk = ir::Task::unlowered;
  target.traits.stoppable = true;
  target.optimise = false;
  target.max_allocation = uint64_t(sysconf(_SC_PHYS_PAGES)) * uint64_t(sysconf(_SC_PAGE_SIZE));
  return {target};
}

std::unique_ptr<runtime::Driver> open(const runtime::Target& target) {
  return std::make_unique<Driver>(target);
}

}  // namespace

extern const runtime::Backend backend;
const runtime::Backend backend = {"interpreter", 0, probe, open};

}  // namespace quern::interpreter
