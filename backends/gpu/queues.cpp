#include "backends/gpu/queues.h"

#include <algorithm>

namespace quern::gpu {

namespace {
/// Submissions that may be done are looked at after so many more, or when somebody asks: asking the
/// driver costs about as much as a launch.
constexpr size_t lazily = 32;
}  // namespace

Queues::Queues(std::shared_ptr<Gpu> gpu) : gpu_(std::move(gpu)), own_first_(true) {
  Current current(*gpu_);
  current.expect();
  queues_.push_back({make_stream()});
}

Queues::Queues(std::shared_ptr<Gpu> gpu, StreamHandle foreign)
    : gpu_(std::move(gpu)), own_first_(false) {
  queues_.push_back({foreign});
}

Queues::~Queues() {
  finish();
  Current current(*gpu_);
  for (uint32_t k = 0; k < queues_.size(); k++)
    if (is_own(k)) gpu_->api->stream_destroy(queues_[k].stream);
}

StreamHandle Queues::make_stream() {
  StreamHandle stream = nullptr;
  gpu_->expect(gpu_->api->stream_create(&stream, flag::stream_non_blocking), "making a stream");
  return stream;
}

uint32_t Queues::make() {
  uint32_t number = 0;
  guarded([&] {
    number = uint32_t(queues_.size());
    queues_.push_back({make_stream()});
  });
  return number;
}

template <class F>
void Queues::guarded(F&& f) {
  std::lock_guard lock(mutex_);
  if (!lost_.empty()) throw Error(lost_);
  Current current(*gpu_);
  try {
    current.expect();
    f();
  } catch (const DeviceLost& how) {
    lose(how);
  }
}

/// Says which kernels may have done it: those not known to be done.
void Queues::lose(const DeviceLost& how) {
  std::set<std::string> names;
  for (const Queue& q : queues_)
    for (const Submission& s : q.running)
      for (const auto& used : s.work) names.insert(used->kernels.begin(), used->kernels.end());
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "'" : ", '") + name + "'";
  lost_ = how.message();
  if (!names.empty())
    lost_ += (names.size() == 1 ? ", in kernel " : ", in one of the kernels ") + text;
  lost_ += "; nothing runs on " + gpu_->properties.name + " in this process any more";
  throw Error(lost_);
}

Ticket Queues::submit(const Order& order, const std::function<void(Work&)>& f) {
  Ticket ticket{order.queue, 0};
  guarded([&] {
    Queue& queue = queues_[order.queue];
    if (queue.last - queue.looked >= lazily) {
      mark_end(queue);
      retire(queue);
    }
    queue.open = true;
    Work work;
    try {
      for (const Ticket& before : order.after)
        if (before.queue != order.queue) wait_in(queue, before);
      f(work);
    } catch (const DeviceLost& how) {
      close(queue, std::move(work));  // its kernels are suspects too
      lose(how);
    } catch (...) {
      close(queue, std::move(work));
      throw;
    }
    close(queue, std::move(work));
    if (queues_.size() > 1) mark_end(queue);
    ticket.number = queue.last;
  });
  return ticket;
}

/// What comes into the queue from now on runs after a submission of another.
void Queues::wait_in(Queue& queue, Ticket before) {
  if (const Submission* s = marked(before))
    gpu_->expect(gpu_->api->stream_wait_event(queue.stream, s->event->handle, 0),
                 "making a stream wait for another");
}

void Queues::mark(uint32_t queue) {
  guarded([&] { mark_end(queues_[queue]); });
}

void Queues::call(const std::function<void()>& f) { guarded(f); }

void Queues::aside(const std::function<void()>& f) {
  guarded([] {});
  try {
    Current current(*gpu_);
    current.expect();
    f();
  } catch (const DeviceLost& how) {
    std::lock_guard lock(mutex_);
    if (lost_.empty()) lose(how);
    throw Error(lost_);
  }
}

void Queues::close(Queue& queue, Work work) {
  queue.running.push_back({++queue.last, nullptr, std::move(work)});
  queue.open = false;
}

void Queues::mark_end(Queue& queue) {
  if (queue.running.empty() || queue.running.back().event) return;
  try {
    std::shared_ptr<Event> event = take_event();
    event->record(queue.stream);
    queue.running.back().event = std::move(event);
  } catch (const DeviceLost&) {
    throw;
  } catch (const std::exception&) {  // then nothing tells when it is done: now
    gpu_->expect(gpu_->api->stream_synchronize(queue.stream), "waiting for the device");
    pop_to(queue, queue.last);
  }
}

/// The next submission from this one on with an event; null where all is done.
const Queues::Submission* Queues::marked(Ticket ticket) {
  Queue& queue = queues_.at(ticket.queue);
  if (ticket.number > queue.last)
    throw InternalError("a wait for submission " + std::to_string(ticket.number) + " of " +
                        std::to_string(queue.last));
  auto find = [&]() -> const Submission* {
    if (ticket.number <= queue.reached) return nullptr;
    auto from = queue.running.begin() + long(ticket.number - queue.running.front().number);
    auto found =
        std::find_if(from, queue.running.end(), [](const Submission& s) { return !!s.event; });
    return found == queue.running.end() ? nullptr : &*found;
  };
  if (const Submission* found = find()) return found;
  mark_end(queue);
  return find();
}

/// One that nobody waits for any more.
std::shared_ptr<Event> Queues::take_event() {
  auto free = std::ranges::find_if(idle_, [](auto& e) { return e.use_count() == 1; });
  if (free == idle_.end()) return std::make_shared<Event>(gpu_);
  std::swap(*free, idle_.back());
  std::shared_ptr<Event> event = std::move(idle_.back());
  idle_.pop_back();
  return event;
}

void Queues::retire(Queue& queue) {
  queue.looked = queue.last;
  while (!queue.running.empty()) {
    auto next = std::ranges::find_if(queue.running, [](auto& s) { return !!s.event; });
    if (next == queue.running.end() || !next->event->done()) return;
    pop_to(queue, next->number);
  }
}

void Queues::pop_to(Queue& queue, uint64_t number) {
  while (!queue.running.empty() && queue.running.front().number <= number) {
    Submission& s = queue.running.front();
    if (s.event) idle_.push_back(std::move(s.event));
    queue.running.pop_front();
  }
  queue.reached = std::max(queue.reached, number);
}

Ticket Queues::last(uint32_t queue) {
  Ticket ticket{queue, 0};
  guarded([&] { ticket.number = queues_.at(queue).last; });
  return ticket;
}

bool Queues::done(Ticket ticket) {
  bool is_done = false;
  guarded([&] {
    if (marked(ticket)) retire(queues_[ticket.queue]);
    is_done = reached(ticket);
  });
  return is_done;
}

std::shared_ptr<Event> Queues::event(Ticket ticket) {
  std::shared_ptr<Event> found;
  guarded([&] {
    if (const Submission* s = marked(ticket)) found = s->event;
  });
  return found;
}

void Queues::wait(Ticket ticket) {
  std::shared_ptr<Event> event;
  guarded([&] {
    const Submission* s = marked(ticket);
    if (!s) return;
    event = s->event;
    ticket.number = s->number;
  });
  if (!event) return;
  Code c = code::success;
  {
    Current current(*gpu_);  // without the lock: others may submit in the meantime
    c = gpu_->api->event_synchronize(event->handle);
  }
  event.reset();
  guarded([&] {
    gpu_->expect(c, "waiting for the device");
    pop_to(queues_[ticket.queue], ticket.number);
  });
}

void Queues::finish() noexcept {
  std::lock_guard lock(mutex_);
  Current current(*gpu_);
  for (Queue& queue : queues_) {
    gpu_->api->stream_synchronize(queue.stream);
    queue.running.clear();
    queue.reached = queue.last;
  }
  idle_.clear();
}

bool Queues::lost() {
  std::lock_guard lock(mutex_);
  return !lost_.empty();
}

}  // namespace quern::gpu
