#pragma once
#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "quern/ir/abi.h"
#include "quern/runtime/backend.h"

namespace quern::runtime {

class Watchdog;

/// Tells what a launch may report: the sites of its kernel. Kept by a device until the launch is
/// known to have reported nothing.
struct Reporter {
  std::string kernel;
  std::vector<ir::Site> sites;
};

/// A launch as its device knows it until it is known how the launch ended.
struct LaunchRecord {
  uint32_t number = 0;  ///< names the launch in what its kernel reports
  /// Key of its random numbers: the device's seed, and the launches since it was set.
  uint32_t seed = 0, since_seed = 0;
  std::shared_ptr<const Reporter> reporter;

 private:
  friend class Device;
  uint64_t begun = 0, submitted = 0;          ///< when, counted by the device; 0: not yet
  bool has_run = false;                       ///< some of its commands
  std::chrono::steady_clock::duration ran{};  ///< where a limit is set
  std::optional<Error> error;
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
         bool is_joined = false, Loc loc = {});
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
  enum class Contents { zeros, any };
  /// Memory; zeroed by a command, unless its contents may be any: the host may write those at once.
  /// `what` names it in the error where there is not enough.
  Address allocate(uint64_t bytes, const std::string& what, Loc loc = {},
                   Contents contents = Contents::zeros);
  /// Gives memory back once everything submitted has run, without waiting for it. For destructors:
  /// an error met on the way is kept for the next collect.
  void release(std::span<const Address> memory) noexcept;
  /// Waits until memory that was wrapped is used no more. Errors are kept likewise.
  void disown(Address memory, uint64_t bytes) noexcept;
  /// How a vendor's own code works beside this device. Throws Error where it cannot.
  Native& native(Loc loc = {});

  /// Bytes that allocate has given and release not taken back yet.
  uint64_t allocated() const;

  Address error_record() const { return error_; }
  Address print_ring() const { return ring_; }
  /// A new launch; remembers whom to ask about what it reports.
  std::shared_ptr<LaunchRecord> begin_launch(const std::shared_ptr<const Reporter>& reporter);
  /// All commands of the launch were submitted: once they ran, it may be forgotten.
  void end_launch(LaunchRecord& launch);
  /// Throws the error that ended the launch, or kept it from running, as often as it is asked. To
  /// be called after a wait and collect.
  void expect_success(const LaunchRecord& launch);
  /// Submits commands of a launch; never while reports are read, so that none is lost. Tells all of
  /// them alike whether a launch may have failed that no wait has asked about (Launch::asks).
  /// Nothing, and no ticket, once a wait has taken the error that ended the launch: its results
  /// throw that.
  std::optional<Ticket> submit(LaunchRecord& launch, std::span<Command> commands);
  /// Begins the sequence of random numbers that `seed` stands for.
  void seed(uint32_t seed);

  /// A launch whose commands run longer than this, in seconds, ends with an Error that the next
  /// wait throws, at the loop that was running; 0: none does. Waits for what runs, which is not
  /// concerned. Throws Error where the device's launches cannot be ended.
  void time_limit(double seconds, Loc loc = {});
  /// Ends what runs, or else the next launch, with such an Error. Any thread may call it, and a
  /// signal handler. Throws Error where the device's launches cannot be ended.
  void interrupt(Loc loc = {});

  /// Receives an error that no host read fetched before the device was destroyed.
  using ErrorHandler = std::function<void(const Error&)>;
  void set_error_handler(ErrorHandler handler) { handler_ = std::move(handler); }

 private:
  enum class Stop { none, interrupt, limit };
  void expect_stoppable(Loc loc) const;
  void ask_to_stop(Stop reason);
  void forget_limit();
  bool some_launch_runs() const;
  std::string describe(Stop reason) const;
  void limit_by_environment(Loc loc);
  uint32_t take_state(const ir::abi::ErrorRecord& record);
  const LaunchRecord* known(uint32_t launch) const;
  bool expects_reports() const;
  void attempt(const std::function<void()>& f) noexcept;
  void print_lines();
  std::optional<Error> take_error();
  void keep(const Error& error);

  std::string name_;
  bool is_joined_ = false;
  std::unique_ptr<Driver> driver_;
  Address error_ = 0, ring_ = 0;
  uint32_t* state_ = nullptr;  ///< of the error record, where the host may write it at any time
  std::atomic<Stop> stop_{Stop::none};  ///< why the host asked the launch to end
  std::unique_ptr<Watchdog> watchdog_;
  double limit_ = 0;  ///< the last one set, in seconds
  mutable std::mutex memory_mutex_;
  std::map<Address, uint64_t> memory_;  ///< bytes of each allocation
  std::mutex mutex_;
  std::deque<std::shared_ptr<LaunchRecord>> launched_;
  uint32_t next_launch_ = 0;
  uint64_t now_ = 0;  ///< beginnings and ends of launches so far
  std::atomic<bool> unread_{false};
  std::optional<Error> kept_;  ///< met where nothing could be thrown
  uint32_t seed_ = 0, since_seed_ = 0;
  ErrorHandler handler_;
};

/// `format` with each {} replaced by the next value ("{{" is a brace).
std::string format_values(const std::string& format, std::span<const ir::Type> types,
                          std::span<const uint64_t> values);
std::string format_value(ir::Type type, uint64_t bits);

}  // namespace quern::runtime
