#pragma once
#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "quern/runtime/stream.h"

namespace quern::runtime {

class Watchdog;

/// One opened device: its driver, its memory and its streams. Opening the same device twice gives the
/// same object. All members may be called from any thread.
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

  Device(std::string name, std::unique_ptr<Driver> driver, bool is_joined = false, Loc loc = {});
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const std::string& name() const { return name_; }
  bool is_joined() const { return is_joined_; }
  const Target& target() const { return driver_->target(); }
  Driver& driver() { return *driver_; }

  /// The stream that is there from the beginning: of all launches where no other is current.
  Stream& stream() { return *first_; }
  /// Waits for everything submitted to all streams, prints what kernels printed, and throws the
  /// first failed check.
  void synchronize();

  enum class Contents { zeros, any };
  /// Memory, for the current stream; zeroed by a command, unless its contents may be any: the host
  /// may write those at once. `what` names it in the error where there is not enough. `uses`, where
  /// given, notes that this was written.
  Address allocate(uint64_t bytes, std::string_view what, Loc loc = {},
                   Contents contents = Contents::zeros, Uses* uses = nullptr);
  /// Gives allocations of these sizes back once everything submitted to the queue has run, without
  /// waiting for it. For destructors: an error met on the way is kept for the next collect.
  void release(std::span<const Address> memory, std::span<const uint64_t> bytes,
               uint32_t queue) noexcept;
  /// Likewise, once all uses have ended.
  void release(std::span<const Address> memory, std::span<const uint64_t> bytes,
               Uses& uses) noexcept;
  /// Those of memory that is wrapped, until disown: shared by all that overlaps it.
  std::shared_ptr<Uses> uses_of_wrapped(Address memory, uint64_t bytes);
  /// Waits until memory that was wrapped is used no more. Errors are kept likewise.
  void disown(Address memory, uint64_t bytes, Uses& uses) noexcept;
  /// The stream that is behind all writes: what the host reads in its order is up to date.
  Stream& writer(Uses& uses);
  /// How a vendor's own code works beside this device. Throws Error where it cannot.
  Native& native(Loc loc = {});

  /// Bytes that allocate has given and release not taken back yet.
  uint64_t allocated() const { return allocated_; }
  /// How many times a launch has failed, as the host has found out: what was launched behind it, up
  /// to where the host did, has done nothing.
  uint64_t failures() const { return failures_; }

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
  friend class Stream;
  Address obtain(uint64_t bytes, std::string_view what, Loc loc, uint32_t queue);
  Stream& add_stream(uint32_t queue);
  template <class F>
  void each_stream(F&& f) {
    for (Stream* stream = newest_; stream; stream = stream->older_) f(*stream);
  }
  void expect_stoppable(Loc loc) const;
  void limit_by_environment(Loc loc);
  /// Keeps the error that `f` throws.
  void expect_copied() noexcept;
  template <class F>
  void attempt(F&& f) noexcept {
    try {
      f();
    } catch (const Error& e) {
      first_->keep(e);
    } catch (const std::exception& e) {
      first_->keep(Error(e.what()));
    }
  }

  std::string name_;
  bool is_joined_ = false;
  std::unique_ptr<Driver> driver_;
  std::atomic<uint64_t> allocated_ = 0, failures_ = 0;
  ErrorHandler handler_;

  /// All streams, as a list that only grows, so that a signal handler may walk it.
  std::atomic<Stream*> newest_ = nullptr;
  Stream* first_ = nullptr;
  std::mutex making_;         ///< guards free_; before a stream's lock
  std::deque<Stream*> free_;  ///< those that nobody has, as they were given up

  /// Are there others than the first? Until then nothing is noted in Uses. Set under the lock of the
  /// first, once: what was submitted before is up to `alone_`, and other streams begin behind it.
  std::atomic<bool> several_ = false;
  Ticket alone_;
  /// Guards all Uses and what follows, after a stream's lock. While there is one stream that one's
  /// lock does.
  std::mutex order_;
  uint32_t seed_ = 0, since_seed_ = 0;
  std::unique_ptr<Watchdog> watchdog_;
  double limit_ = 0;                   ///< the last one set, in seconds
  std::optional<uint32_t> releasing_;  ///< the queue of releases that several streams come before
  struct Wrapped {
    Address memory = 0;
    uint64_t bytes = 0;
    std::shared_ptr<Uses> uses;
  };
  std::vector<Wrapped> wrapped_;
};

/// `format` with each {} replaced by the next value ("{{" is a brace).
std::string format_values(const std::string& format, std::span<const ir::Type> types,
                          std::span<const uint64_t> values);
std::string format_value(ir::Type type, uint64_t bits);

}  // namespace quern::runtime
