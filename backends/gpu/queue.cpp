#include "backends/gpu/queue.h"

#include <algorithm>

namespace quern::gpu {

namespace {
/// Submissions that may be done are looked at once there are so many, or when somebody asks: asking
/// the driver costs about as much as a launch.
constexpr size_t lazily = 32;
}  // namespace

Queue::Queue(std::shared_ptr<Gpu> gpu) : gpu_(std::move(gpu)) {
  Current current(*gpu_);
  current.expect();
  gpu_->expect(gpu_->api->stream_create(&stream_, flag::stream_non_blocking), "making a stream");
  own_stream_ = true;
}

Queue::Queue(std::shared_ptr<Gpu> gpu, StreamHandle foreign)
    : gpu_(std::move(gpu)), stream_(foreign) {}

Queue::~Queue() {
  finish();
  if (!own_stream_) return;
  Current current(*gpu_);
  gpu_->api->stream_destroy(stream_);
}

template <class F>
void Queue::guarded(F&& f) {
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
void Queue::lose(const DeviceLost& how) {
  std::set<std::string> names;
  for (const Submission& s : running_)
    for (const auto& used : s.work) names.insert(used->kernels.begin(), used->kernels.end());
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "'" : ", '") + name + "'";
  lost_ = how.message();
  if (!names.empty())
    lost_ += (names.size() == 1 ? ", in kernel " : ", in one of the kernels ") + text;
  lost_ += "; nothing runs on " + gpu_->properties.name + " in this process any more";
  throw Error(lost_);
}

Ticket Queue::submit(const std::function<void(Work&)>& f) {
  Ticket ticket = 0;
  guarded([&] {
    if (running_.size() >= lazily) retire();
    open_ = true;
    Work work;
    try {
      f(work);
    } catch (const DeviceLost& how) {
      running_.push_back({++last_, nullptr, std::move(work)});  // its kernels are suspects too
      lose(how);
    } catch (...) {
      close(std::move(work));
      throw;
    }
    ticket = close(std::move(work));
  });
  return ticket;
}

Ticket Queue::put(const std::function<void()>& f) {
  Ticket ticket = 0;
  guarded([&] {
    open_ = true;
    f();
    ticket = current();
  });
  return ticket;
}

void Queue::call(const std::function<void()>& f) { guarded(f); }

void Queue::aside(const std::function<void()>& f) {
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

Ticket Queue::close(Work work) {
  running_.push_back({++last_, nullptr, std::move(work)});
  try {
    std::shared_ptr<Event> event = take_event();
    event->record(stream_);
    running_.back().event = std::move(event);
  } catch (const DeviceLost&) {
    throw;
  } catch (...) {  // nothing tells when it is done: now
    gpu_->api->stream_synchronize(stream_);
    running_.pop_back();
    last_--;
    throw;
  }
  open_ = false;
  return last_;
}

/// Before anybody waits for a submission that has not ended.
void Queue::close_for(Ticket ticket) {
  if (open_ && ticket == current()) close({});
  if (ticket > last_)
    throw InternalError("a wait for submission " + std::to_string(ticket) + " of " +
                        std::to_string(last_));
}

/// One that nobody waits for any more.
std::shared_ptr<Event> Queue::take_event() {
  auto free = std::ranges::find_if(idle_, [](auto& e) { return e.use_count() == 1; });
  if (free == idle_.end()) return std::make_shared<Event>(gpu_);
  std::swap(*free, idle_.back());
  std::shared_ptr<Event> event = std::move(idle_.back());
  idle_.pop_back();
  return event;
}

void Queue::retire() {
  while (!running_.empty() && running_.front().event->done()) pop();
}

void Queue::pop() {
  reached_ = running_.front().ticket;
  idle_.push_back(std::move(running_.front().event));
  running_.pop_front();
}

Ticket Queue::last() {
  Ticket ticket = 0;
  guarded([&] { ticket = open_ ? close({}) : last_; });
  return ticket;
}

bool Queue::done(Ticket ticket) {
  bool is_done = false;
  guarded([&] {
    close_for(ticket);
    if (ticket > reached_) retire();
    is_done = ticket <= reached_;
  });
  return is_done;
}

std::shared_ptr<Event> Queue::event(Ticket ticket) {
  std::shared_ptr<Event> found;
  guarded([&] {
    close_for(ticket);
    if (ticket > reached_) found = running_[ticket - running_.front().ticket].event;
  });
  return found;
}

void Queue::wait(Ticket ticket) {
  std::shared_ptr<Event> event = this->event(ticket);
  if (!event) return;
  Code c = code::success;
  {
    Current current(*gpu_);  // without the lock: others may submit in the meantime
    c = gpu_->api->event_synchronize(event->handle);
  }
  event.reset();
  guarded([&] {
    gpu_->expect(c, "waiting for the device");
    while (!running_.empty() && running_.front().ticket <= ticket) pop();
  });
}

void Queue::finish() noexcept {
  std::lock_guard lock(mutex_);
  Current current(*gpu_);
  gpu_->api->stream_synchronize(stream_);
  running_.clear();
  idle_.clear();
  reached_ = last_;
}

bool Queue::lost() {
  std::lock_guard lock(mutex_);
  return !lost_.empty();
}

}  // namespace quern::gpu
