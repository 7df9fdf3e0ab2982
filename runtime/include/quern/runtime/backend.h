#pragma once
// What runs images: a driver, which owns memory and queues of commands. No vendor type crosses this
// interface. What makes images is a library of its own, see compiler.h.
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "quern/runtime/image.h"

namespace quern::runtime {

using Address = uint64_t;  ///< in the device's address space; 0 is none

/// A device, and what code is compiled for.
struct Target {
  std::string backend;      ///< "cpu"
  std::string isa;          ///< "x86-64 +sse2 … +avx512f"
  std::string device;       ///< the device's own name
  ir::TargetTraits traits;  ///< walk == unlowered: the compiler takes kernels at level `split`
  bool optimise = true;     ///< run the machine-independent optimiser (the oracle does not)
  uint32_t workers = 1;     ///< threads that run chunks of a task
  uint64_t max_allocation = ~0ull;  ///< bytes
  bool host_addresses = false;      ///< addresses are the host's, of any memory it has
  std::string strict_refusal;  ///< why strict kernels cannot be compiled for it; empty: they can
};

/// A loaded image.
class Executable {
 public:
  virtual ~Executable() = default;
};

// ---- how often a task runs, by its kind

/// Once, in one thread; also where there is nothing to combine.
struct Serial {
  uint64_t rows = 0;  ///< of partial values, which it combines: builtin `end`
};
/// Chunk c of `chunks()` runs iterations [c·grain, min(iterations, (c+1)·grain)).
struct Chunked {
  uint64_t iterations = 0, grain = 1;
  uint64_t operations = 0;  ///< of all iterations, estimated
  uint64_t chunks() const { return iterations / grain + (iterations % grain != 0); }
};
/// Iterations, spread over threads; abi::max_threads at most.
struct Elements {
  uint64_t iterations = 0;
  std::array<uint64_t, 2> reciprocals = {};  ///< abi::reciprocals of the domain
  /// There may be far fewer, which the code counts: as many threads are enough as keep a device busy.
  bool is_bound = false;
};
/// Threads that make rows of partial values of others, see abi::Combination.
struct Combining {
  uint64_t threads = 0, first_row = 0, rows = 0;
};
using Work = std::variant<Serial, Chunked, Elements, Combining>;

/// What stands for the work among the words that GPUs' code takes: what is to be run, and two
/// numbers that the builtins of its kind are made of.
std::array<uint64_t, 3> words_of(const Work& work);
/// Threads of a device with one for each iteration, or for each chunk; of a task with `lanes`
/// (Image::Task::lanes) one for each lane. 0: nothing runs.
uint64_t threads_of(const Work& work, bool lanes);

/// One task. With a guard it runs only where the 32-bit word there is not 0. `args` is the address
/// of the argument block: the device's, or where the kernel's tasks take it by value
/// (Image::takes_value) the host's, which is read before submit returns.
struct Launch {
  const Executable* executable = nullptr;
  uint32_t task = 0;
  Work work;
  Address args = 0, guard = 0;
  bool asks = true;  ///< a launch before may have failed (TargetTraits::told_of_failures)
};
struct Copy {
  Address to = 0, from = 0;
  uint64_t bytes = 0;
  bool is_kept = false;  ///< nobody reads it soon: caches may do without
};
/// Sets `bytes` bytes (a multiple of 4) to the 32-bit pattern.
struct Fill {
  Address to = 0;
  uint64_t bytes = 0;
  uint32_t pattern = 0;
};
using Command = std::variant<Launch, Copy, Fill>;

/// A point in one of a driver's queues; done when everything submitted to that up to it is. Queue 0
/// is there from the beginning; number 0 is before everything.
struct Ticket {
  uint32_t queue = 0;
  uint64_t number = 0;
  bool operator==(const Ticket&) const = default;
};

/// Where something is put: behind what was submitted to `queue`, and behind tickets of others.
struct Order {
  uint32_t queue = 0;
  std::span<const Ticket> after = {};
};

/// How a vendor's own code works beside a driver: with its streams, and on each other's memory.
class Native {
 public:
  struct Handles {
    int device = 0;           ///< the vendor's number
    void* context = nullptr;  ///< CUcontext; HIP has none
    void* stream = nullptr;   ///< of queue 0: CUstream, hipStream_t; null is the default stream
  };
  virtual ~Native() = default;
  virtual Handles handles() const = 0;
  /// What is submitted from now on, to any queue, runs after what was put into `stream`.
  virtual void run_after(void* stream) = 0;
  /// What is put into `stream` from now on runs after what was submitted to any queue.
  virtual void run_before(void* stream) = 0;
  /// The vendor's memory, which commands may name until disown. Throws Error where it is none of
  /// this device's.
  virtual void adopt(Address address, uint64_t bytes) = 0;
  virtual void disown(Address address, uint64_t bytes) = 0;
};

/// One device. Calls may come from any thread; the commands of a queue run in the order of submission
/// and see all effects of those before. Errors are exceptions; the driver stays usable after them.
class Driver {
 public:
  virtual ~Driver() = default;
  virtual const Target& target() const = 0;
  /// Another queue, which is there as long as the driver is. A device that has one queue gives that.
  virtual uint32_t make_queue() { return 0; }
  /// At least 64-byte aligned; contents undefined; bytes > 0. For what is submitted to the queue from
  /// now on, and what comes behind that. Throws Error with sizes when it cannot.
  virtual Address allocate(uint64_t bytes, uint32_t queue = 0) = 0;
  /// Ordered like a command of the queue: what was submitted to it before may use the memory, and
  /// nobody waits for it.
  virtual void release(Address address, uint32_t queue = 0) = 0;
  /// Throws Error where the device cannot run the image, InternalError for code that is damaged.
  virtual std::unique_ptr<Executable> load(const Image& image) = 0;
  /// Without commands and tickets to wait for: the end of the queue.
  virtual Ticket submit(std::span<const Command> commands, const Order& order = {}) = 0;
  virtual bool done(Ticket ticket) = 0;
  virtual void wait(Ticket ticket) = 0;
  /// Ordered after everything submitted to the queue; both return when the host's memory may be
  /// reused or read.
  virtual void upload(Address to, std::span<const std::byte> from, uint32_t queue = 0) = 0;
  virtual void download(std::span<std::byte> to, Address from, uint32_t queue = 0) = 0;
  /// The host's view of device memory, or null where the host cannot see it. Not ordered.
  virtual std::byte* host_pointer(Address address) = 0;
  /// Null where no vendor's code can work beside this driver.
  virtual Native* native() { return nullptr; }
};

/// A back end as the registry knows it.
struct Backend {
  std::string name;
  int preference = 0;  ///< Device::best takes the highest that is present
  /// Devices present, in order; none and a reason in `why_absent` otherwise. Never throws.
  std::vector<Target> (*probe)(std::string& why_absent) = nullptr;
  std::unique_ptr<Driver> (*open)(const Target& target) = nullptr;
  /// The same in a context (null: the device's primary one) and stream of the caller's, which
  /// outlive the driver. Null where there is no such thing.
  std::unique_ptr<Driver> (*join)(const Target& target, const Native::Handles& on) = nullptr;
};

/// For Driver::load. Throws Error unless the image is of the target's back end and `runs(image's isa,
/// target's)`.
void expect_runs(const Image& image, const Target& target,
                 bool (*runs)(const std::string& code, const std::string& machine));

/// All back ends built in, sorted by name (backends/registry.cpp, generated by CMake).
std::span<const Backend> backends();
/// Names of those that this build was configured without: QUERN_<NAME>=OFF.
std::span<const std::string> backends_left_out();

}  // namespace quern::runtime
