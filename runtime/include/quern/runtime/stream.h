#pragma once
// Streams of a device: launches, copies and fills in order, and what became of the launches.
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "quern/ir/abi.h"
#include "quern/runtime/backend.h"
#include "quern/runtime/biased_mutex.h"

namespace quern::runtime {

class Device;
class Uses;

/// Tells what a launch may report: the sites of its kernel. Kept by a stream until the launch is
/// known to have reported nothing.
struct Reporter {
  Reporter(std::string kernel, std::vector<ir::Site> sites);
  std::string kernel;
  std::vector<ir::Site> sites;
  bool prints;  ///< one of them is a line's
};

/// Memory that commands read, or write (and may read).
struct Touch {
  Uses* uses = nullptr;
  bool writes = false;
};
/// The memory that a launch touches; asked only where there are several streams.
class Touches {
 public:
  virtual void append_to(std::vector<Touch>& touched) const = 0;

 protected:
  ~Touches() = default;
};

/// The key of a launch's random numbers: the device's seed, and the launches since it was set.
struct RandomKey {
  uint32_t seed = 0, launch = 0;
  /// Of the last launch that the thread has submitted.
  static RandomKey last();
};
/// While it lives launches of the thread draw the numbers of that key, and count as none.
class SameRandomNumbers {
 public:
  explicit SameRandomNumbers(RandomKey key);
  ~SameRandomNumbers();
  SameRandomNumbers(const SameRandomNumbers&) = delete;

 private:
  const std::optional<RandomKey> outer_;
};

/// A launch as its stream knows it until it is known how the launch ended.
struct LaunchRecord : std::enable_shared_from_this<LaunchRecord> {
  uint32_t number = 0;  ///< names the launch in what its kernel reports
  RandomKey key;
  const Reporter* reporter = nullptr;  ///< of its kernel
  const Touches* touches = nullptr;    ///< until end_launch; null: no field's memory

 private:
  friend class Stream;
  std::shared_ptr<const Reporter> kept_reporter;  ///< behind end_launch
  uint64_t begun = 0, submitted = 0;              ///< when, counted by the stream; 0: not yet
  uint64_t first = 0, last = 0;  ///< tickets of its first and last commands; 0: none has run
  std::chrono::steady_clock::duration ran{};  ///< where a limit is set
  std::optional<Error> error;
};

/// A queue of commands with the record of the first failed check in it and the ring of its printed
/// lines. It is behind what other streams do to the same memory (Uses), and nothing else. A device
/// has one from the beginning, and as many as are made; it keeps them, and gives those that nobody
/// has any more, and whose launches have all ended well, to those who want one.
///
/// All members may be called from any thread. A stream's lock is held while its commands (but
/// copies that have waited) are submitted or its reports read; then, where there are several
/// streams, the device's, which guards who used what memory, while it is asked what commands wait
/// for and until they have a ticket.
class Stream {
 public:
  /// One that nobody else has. The first of a device is behind everything submitted until then. What
  /// becomes of its last launches after the last reference went, Device::synchronize and host reads
  /// tell.
  static std::shared_ptr<Stream> make(const std::shared_ptr<Device>& device);
  /// Where the calling thread launches on the device: in the stream of the last Current made, else
  /// in the device's own.
  static Stream& current(Device& device);
  /// While it lives, the thread that made it launches in this stream. It ends on the same thread.
  class Current {
   public:
    explicit Current(std::shared_ptr<Stream> stream);
    ~Current();
    Current(const Current&) = delete;

   private:
    friend class Stream;
    std::shared_ptr<Stream> stream_;
    Current* outer_;
  };

  Stream(const Stream&) = delete;
  Device& device() const { return device_; }
  /// The driver's.
  uint32_t queue() const { return queue_; }

  /// Waits for everything submitted to it, prints what kernels printed, and throws the first failed
  /// check, of this stream and of those that it has waited for.
  void synchronize();
  /// Called after a wait: prints lines, throws a failed check.
  void collect();
  void download(std::span<std::byte> to, Address from);
  void upload(Address to, std::span<const std::byte> from, std::span<const Touch> touched = {});
  /// The same without collect.
  void send(Address to, std::span<const std::byte> from, std::span<const Touch> touched);
  /// Puts copies and fills behind what was submitted, and behind what other streams do with what
  /// they touch.
  Ticket submit(std::span<const Command> commands, std::span<const Touch> touched = {});

  // ---- copies that go to the device together
  /// Copies that wait for more of them, and a number for those that wait together: until hurry() of
  /// that number those of `any_time`, until the next command those `before_next`. They do not wait
  /// (0) where the device has several streams, or works in somebody else's, who may record
  /// commands.
  enum class Later { any_time, before_next };
  uint64_t submit_later(std::span<const Command> copies, std::span<const Touch> touched,
                        Later until);
  /// To be called before memory is written that such copies read, and before memory is read that
  /// they write: then those that wait still are made before the next command.
  void hurry(uint64_t together) {
    if (together == together_.load(std::memory_order_relaxed)) is_due_ = true;
  }
  /// Copies that wait are made now: for who works on the memory in other ways, or gives it back.
  void submit_waiting() {
    if (has_later_) put_later();
  }
  /// They are not made: memory goes that they name, and the device does not take them.
  void drop_waiting() {
    std::lock_guard lock(later_mutex_);
    forget_later();
  }

  Address error_record() const { return error_; }
  /// Made when it is first asked for.
  Address print_ring();
  /// The record of a new launch, there until end_launch(), as is the reporter, which is asked about what
  /// the launch reports.
  LaunchRecord& begin_launch(const Reporter& reporter);
  /// All commands of the launch were submitted: once they ran, it may be forgotten. `reporter`: the same
  /// as began it, to be kept where what it is asked for is not known yet.
  void end_launch(LaunchRecord& launch, const std::shared_ptr<const Reporter>& reporter);
  /// Throws the error that ended the launch, or kept it from running, as often as it is asked. To
  /// be called after a wait and collect.
  void expect_success(const LaunchRecord& launch);
  /// Submits commands of a launch; never while reports are read, so that none is lost. Tells all of
  /// them alike whether a launch may have failed that no wait has asked about (Launch::asks).
  /// Nothing, and no ticket, once a wait has taken the error that ended the launch: its results
  /// throw that.
  std::optional<Ticket> submit(LaunchRecord& launch, std::span<Command> commands);

 private:
  friend class Device;
  enum class Stop { none, interrupt, limit };

  Stream(Device& device, uint32_t queue);
  void begin();
  void give_back_memory() noexcept;
  void wait();
  bool is_at_rest();
  void keep(const Error& error);

  Ticket put(std::span<const Command> commands, std::span<const Touch> touched,
             LaunchRecord* launch = nullptr);
  Ticket run(std::span<const Command> commands, const Order& order, LaunchRecord* launch);
  void put_later();
  void put_all_later();
  void forget_later();

  // ---- what commands wait for (uses.cpp)
  Ticket put_in_order(std::span<const Command> commands, std::span<const Touch> touched,
                      LaunchRecord* launch);
  std::vector<Ticket> waits_for(std::span<const Touch> touched);
  void note_waits(std::span<const Ticket> after);
  void add_before(Stream& stream, uint64_t up_to);
  void collect_those_before();

  // ---- what launches report (stream_reports.cpp)
  void collect_own();
  void forget_submitted();
  bool has_ended_well(const LaunchRecord& launch) const;
  void forget(std::shared_ptr<LaunchRecord> launch);
  const LaunchRecord* known(uint32_t launch) const;
  bool expects_reports() const;
  bool some_launch_runs() const;
  ir::abi::ErrorRecord record_seen_by(uint32_t queue);
  bool has_failed(uint64_t up_to, uint32_t queue);
  void print_lines();
  std::optional<Error> take_error();
  uint32_t take_state(const ir::abi::ErrorRecord& record);

  // ---- how the host ends launches (stream_stops.cpp)
  Ticket run_watched(std::span<const Command> commands, const Order& order, LaunchRecord& launch);
  void ask_to_stop(Stop reason);
  void forget_limit();
  void forget_interrupt();
  std::string describe(Stop reason) const;

  Device& device_;
  Driver& driver_;
  const uint32_t queue_;
  Stream* older_ = nullptr;  ///< of the device's; set before others see this one
  Address error_ = 0;
  uint32_t* state_ = nullptr;  ///< of the error record, where the host may write it at any time
  std::atomic<Stop> stop_{Stop::none};  ///< why the host asked the launch to end
  std::atomic<bool> unread_{false};     ///< may have something to report

  BiasedMutex later_mutex_;  ///< guards later_; taken with mutex_ held, or alone
  std::vector<Command> later_;
  std::atomic<bool> has_later_{false}, is_due_{false};
  std::atomic<uint64_t> together_{1};  ///< the number of those that wait, or of the next ones

  BiasedMutex mutex_;  ///< guards what follows
  Address ring_ = 0;
  std::vector<std::shared_ptr<LaunchRecord>> launched_;
  std::vector<std::shared_ptr<LaunchRecord>>
      spare_;  ///< for launches to come: nobody else has them
  uint32_t next_launch_ = 0;
  uint64_t now_ = 0;           ///< beginnings and ends of launches so far
  std::optional<Error> kept_;  ///< met where nothing could be thrown

  // Guarded by the device's lock:
  std::vector<uint64_t> waited_;  ///< for each queue, up to which ticket of it
  /// Streams that it is behind, directly or through others, up to which ticket; that may have
  /// something to report.
  std::map<Stream*, uint64_t> before_;
};

}  // namespace quern::runtime
