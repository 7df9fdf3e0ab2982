#pragma once
// A device's work: its queues, each a stream of the vendor's, and what submissions use until they are
// done.
#include <deque>
#include <functional>
#include <mutex>
#include <set>

#include "backends/gpu/gpu.h"
#include "quern/runtime/backend.h"

namespace quern::gpu {

using runtime::Order;
using runtime::Ticket;

/// What a submission uses while it runs.
struct Used {
  virtual ~Used() = default;
  std::set<std::string> kernels;  ///< names, for the error where one of them fails
};
using Work = std::vector<std::shared_ptr<const Used>>;

/// All members may be called from any thread, but not from within each other's functions, except
/// where they say so. Once a kernel has broken the context, each call throws an Error that says so
/// and names the kernels that may have done it.
class Queues {
 public:
  explicit Queues(std::shared_ptr<Gpu> gpu);  ///< one, with a stream of its own
  /// One, in a stream of somebody else's, which outlives it.
  Queues(std::shared_ptr<Gpu> gpu, StreamHandle foreign);
  ~Queues();
  Queues(const Queues&) = delete;

  /// Another queue, which lives as long as this object. From then on each submission has an event
  /// behind it, so that another queue waits for it and for nothing behind it.
  uint32_t make();
  /// Has the queue been made here, and not by somebody else?
  bool is_own(uint32_t queue) const { return queue != 0 || own_first_; }

  /// Calls `f(work)` alone and with the device current. What it puts into the queue's stream is one
  /// submission, also where it throws; what it adds to `work` lives until that is done.
  Ticket submit(const Order& order, const std::function<void(Work&)>& f);
  /// Puts an event behind what was submitted. Waiting for a submission is waiting for the next
  /// event behind it; without one here, that is put where the queue ends when somebody asks: an
  /// event costs about as much as a small upload.
  void mark(uint32_t queue);
  /// The same as submit for what puts nothing into a stream that anything waits for.
  void call(const std::function<void()>& f);
  /// The same for what may take long and has nothing to do with streams: others go on meanwhile.
  void aside(const std::function<void()>& f);

  /// Everything submitted so far to a queue.
  Ticket last(uint32_t queue);
  bool done(Ticket ticket);
  void wait(Ticket ticket);
  /// An event behind a submission; null where that is done.
  std::shared_ptr<Event> event(Ticket ticket);
  /// Waits for everything and lets go of it; errors are left aside. For destructors.
  void finish() noexcept;
  bool lost();

  // ---- within `submit` and `call`
  StreamHandle stream(uint32_t queue) const { return queues_[queue].stream; }
  /// Calls f(stream) for each.
  template <class F>
  void each_stream(F&& f) const {
    for (const Queue& q : queues_) f(q.stream);
  }
  /// Is the submission known to be done?
  bool reached(Ticket ticket) const { return ticket.number <= queues_[ticket.queue].reached; }
  /// The submission that what was put into the queue last belongs to.
  Ticket current(uint32_t queue) const {
    const Queue& q = queues_[queue];
    return {queue, q.open ? q.last + 1 : q.last};
  }

 private:
  struct Submission {
    uint64_t number = 0;
    std::shared_ptr<Event> event;  ///< behind it, or null
    Work work;
  };
  struct Queue {
    StreamHandle stream = nullptr;
    std::deque<Submission> running = {};
    uint64_t last = 0, reached = 0, looked = 0;  ///< looked: the last one when retire was called
    bool open = false;                           ///< within `submit`
  };

  template <class F>
  void guarded(F&& f);
  [[noreturn]] void lose(const DeviceLost& how);
  StreamHandle make_stream();
  void wait_in(Queue& queue, Ticket ticket);
  void close(Queue& queue, Work work);
  void mark_end(Queue& queue);
  const Submission* marked(Ticket ticket);
  void retire(Queue& queue);
  void pop_to(Queue& queue, uint64_t number);
  std::shared_ptr<Event> take_event();

  std::shared_ptr<Gpu> gpu_;
  const bool own_first_;
  std::mutex mutex_;  ///< guards the streams and everything below
  std::deque<Queue> queues_;
  std::vector<std::shared_ptr<Event>> idle_;
  std::string lost_;
};

}  // namespace quern::gpu
