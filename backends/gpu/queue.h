#pragma once
// A device's work in order: one stream, and what its submissions use until they are done.
#include <deque>
#include <functional>
#include <mutex>
#include <set>

#include "backends/gpu/gpu.h"
#include "quern/runtime/backend.h"

namespace quern::gpu {

using runtime::Ticket;

/// What a submission uses while it runs.
struct Used {
  virtual ~Used() = default;
  std::set<std::string> kernels;  ///< names, for the error where one of them fails
};
using Work = std::vector<std::shared_ptr<const Used>>;

/// All members may be called from any thread, but not from within each other's functions. Once a
/// kernel has broken the context, each call throws an Error that says so and names the kernels that
/// may have done it.
class Queue {
 public:
  explicit Queue(std::shared_ptr<Gpu> gpu);  ///< with a stream of its own
  /// In a stream of somebody else's, which outlives it.
  Queue(std::shared_ptr<Gpu> gpu, StreamHandle foreign);
  bool owns_stream() const { return own_stream_; }
  ~Queue();
  Queue(const Queue&) = delete;

  /// Calls `f(work)` alone and with the device current. What it puts into the stream is one
  /// submission, also where it throws; what it adds to `work` lives until that is done.
  Ticket submit(const std::function<void(Work&)>& f);
  /// Puts an event behind what was submitted. Waiting for a submission is waiting for the next
  /// event behind it; without one here, that is put where the stream ends when somebody asks: an
  /// event costs about as much as a small upload.
  void mark();
  /// The same as submit for what puts nothing into the stream that anything waits for.
  void call(const std::function<void()>& f);
  /// The same for what may take long and has nothing to do with the stream: others go on meanwhile.
  void aside(const std::function<void()>& f);

  /// Everything submitted so far.
  Ticket last();
  bool done(Ticket ticket);
  void wait(Ticket ticket);
  /// An event behind a submission; null where that is done.
  std::shared_ptr<Event> event(Ticket ticket);
  /// Waits for everything and lets go of it; errors are left aside. For destructors.
  void finish() noexcept;
  bool lost();

  StreamHandle stream() const { return stream_; }
  /// Up to where everything is known to be done; for use within `submit` and `call`.
  Ticket reached() const { return reached_; }
  /// The submission that what was put into the stream last belongs to, likewise.
  Ticket current() const { return open_ ? last_ + 1 : last_; }

 private:
  struct Submission {
    Ticket ticket = 0;
    std::shared_ptr<Event> event;  ///< behind it, or null
    Work work;
  };

  template <class F>
  void guarded(F&& f);
  [[noreturn]] void lose(const DeviceLost& how);
  Ticket close(Work work);
  void mark_end();
  const Submission* marked(Ticket ticket);
  void retire();
  void pop_to(Ticket ticket);
  std::shared_ptr<Event> take_event();

  std::shared_ptr<Gpu> gpu_;
  StreamHandle stream_ = nullptr;
  bool own_stream_ = false;
  std::mutex mutex_;  ///< guards the stream and everything below
  std::deque<Submission> running_;
  std::vector<std::shared_ptr<Event>> idle_;
  Ticket last_ = 0, reached_ = 0, looked_ = 0;  ///< looked: the last one when retire was called
  bool open_ = false;                           ///< within `submit`
  std::string lost_;
};

}  // namespace quern::gpu
