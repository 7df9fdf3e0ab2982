#pragma once
#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "quern/ir/abi.h"
#include "quern/runtime/backend.h"

namespace quern::runtime {

/// Tells what a launch may report: the sites of its kernel. Kept by a device until the launch is
/// known to have reported nothing.
struct Reporter {
  std::string kernel;
  std::vector<ir::Site> sites;
};

/// One opened device: its driver, the record of the first failed check, and the ring of printed
/// lines. Opening the same device twice gives the same object. All members may be called from any
/// thread.
class Device {
 public:
  /// "cpu", "vulkan", "vulkan:1", "interpreter". Throws Error saying which devices are present.
  static std::shared_ptr<Device> open(std::string_view name, Loc loc = {});
  /// Another opening of a device, which works in a context (null: the primary one) and a stream of
  /// the caller's; both outlive it. Throws Error also where the device has no such thing.
  static std::shared_ptr<Device> join(std::string_view name, void* context, void* stream,
                                      Loc loc = {});
  /// The present device of the highest preference.
  static std::shared_ptr<Device> best();
  /// The device named by QUERN_DEVICE, else the best.
  static std::shared_ptr<Device> standard(Loc loc = {});
  /// One line for each back end: its devices, or why there are none.
  static std::string describe_all();

  Device(std::string name, const Target& target, std::unique_ptr<Driver> driver,
         bool is_joined = false);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const std::string& name() const { return name_; }
  bool is_joined() const { return is_joined_; }
  const Target& target() const { return driver_->target(); }
  Driver& driver() { return *driver_; }

  /// Waits for everything submitted, prints what kernels printed, and throws the first failed
  /// check.
  void synchronize();
  /// Called after a wait: prints lines, throws a failed check.
  void collect();
  void download(std::span<std::byte> to, Address from);
  void upload(Address to, std::span<const std::byte> from);
  /// Zeroed memory. `what` names it in the error where there is not enough.
  Address allocate(uint64_t bytes, const std::string& what, Loc loc = {});
  /// Gives memory back once everything submitted has run. For destructors: an error met on the way
  /// is kept for the next collect.
  void release(std::span<const Address> memory) noexcept;
  /// The same of memory that was wrapped.
  void disown(Address memory, uint64_t bytes) noexcept;
  /// How a vendor's own code works beside this device. Throws Error where it cannot.
  Native& native(Loc loc = {});

  /// Bytes that allocate has given and release not taken back yet.
  uint64_t allocated() const;

  Address error_record() const { return error_; }
  Address print_ring() const { return ring_; }
  /// The number of a new launch; remembers whom to ask about what it reports.
  uint32_t begin_launch(const std::shared_ptr<const Reporter>& reporter);
  /// All commands of the launch were submitted: once they ran, its reporter may be forgotten.
  void end_launch(uint32_t number);
  /// Submits commands of a launch; never while reports are read, so that none is lost.
  Ticket submit(std::span<const Command> commands);
  uint32_t random_seed() const { return seed_; }
  void set_random_seed(uint32_t seed) { seed_ = seed; }

  /// Receives an error that no host read fetched before the device was destroyed.
  using ErrorHandler = std::function<void(const Error&)>;
  void set_error_handler(ErrorHandler handler) { handler_ = std::move(handler); }

 private:
  struct Launched {
    uint32_t number;
    bool submitted;
    std::shared_ptr<const Reporter> reporter;
  };
  std::shared_ptr<const Reporter> reporter_of(uint32_t launch) const;
  void attempt(const std::function<void()>& f) noexcept;
  void print_lines();
  std::unique_ptr<Error> take_error();
  void keep(const Error& error);

  std::string name_;
  bool is_joined_ = false;
  std::unique_ptr<Driver> driver_;
  Address error_ = 0, ring_ = 0;
  mutable std::mutex memory_mutex_;
  std::map<Address, uint64_t> memory_;  ///< bytes of each allocation
  std::mutex mutex_;
  std::deque<Launched> launched_;
  uint32_t next_launch_ = 0;
  std::atomic<bool> unread_{false};
  std::unique_ptr<Error> kept_;  ///< met where nothing could be thrown
  std::atomic<uint32_t> seed_{0};
  ErrorHandler handler_;
};

/// `format` with each {} replaced by the next value ("{{" is a brace).
std::string format_values(const std::string& format, std::span<const ir::Type> types,
                          std::span<const uint64_t> values);
std::string format_value(ir::Type type, uint64_t bits);

}  // namespace quern::runtime
