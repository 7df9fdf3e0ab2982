#include "backends/gpu/queue.h"

#include <algorithm>

namespace quern::gpu {

namespace {
/// Submissions that may be done are looked at after so many more, or when somebody asks: asking the
/// driver costs about as much as a launch.
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
    if (last_ - looked_ >= lazily) {
      mark_end();
      retire();
    }
    open_ = true;
    Work work;
    try {
      f(work);
    } catch (const DeviceLost& how) {
      close(std::move(work));  // its kernels are suspects too
      lose(how);
    } catch (...) {
      close(std::move(work));
      throw;
    }
    ticket = close(std::move(work));
  });
  return ticket;
}

void Queue::mark() {
  guarded([&] { mark_end(); });
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
  open_ = false;
  return last_;
}

void Queue::mark_end() {
  if (running_.empty() || running_.back().event) return;
  try {
    std::shared_ptr<Event> event = take_event();
    event->record(stream_);
    running_.back().event = std::move(event);
  } catch (const DeviceLost&) {
    throw;
  } catch (const std::exception&) {  // then nothing tells when it is done: now
    gpu_->expect(gpu_->api->stream_synchronize(stream_), "waiting for the device");
    pop_to(last_);
  }
}

/// The next submission from this one on with an event; null where all is done.
const Queue::Submission* Queue::marked(Ticket ticket) {
  if (ticket > last_)
    throw InternalError("a wait for submission " + std::to_string(ticket) + " of " +
                        std::to_string(last_));
  auto find = [&]() -> const Submission* {
    if (ticket <= reached_) return nullptr;
    auto from = running_.begin() + long(ticket - running_.front().ticket);
    auto found = std::find_if(from, running_.end(), [](const Submission& s) { return !!s.event; });
    return found == running_.end() ? nullptr : &*found;
  };
  if (const Submission* found = find()) return found;
  mark_end();
  return find();
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
  looked_ = last_;
  while (!running_.empty()) {
    auto next = std::ranges::find_if(running_, [](auto& s) { return !!s.event; });
    if (next == running_.end() || !next->event->done()) return;
    pop_to(next->ticket);
  }
}

void Queue::pop_to(Ticket ticket) {
  while (!running_.empty() && running_.front().ticket <= ticket) {
    if (running_.front().event) idle_.push_back(std::move(running_.front().event));
    running_.pop_front();
  }
  reached_ = std::max(reached_, ticket);
}

Ticket Queue::last() {
  Ticket ticket = 0;
  guarded([&] { ticket = last_; });
  return ticket;
}

bool Queue::done(Ticket ticket) {
  bool is_done = false;
  guarded([&] {
    if (marked(ticket)) retire();
    is_done = ticket <= reached_;
  });
  return is_done;
}

std::shared_ptr<Event> Queue::event(Ticket ticket) {
  std::shared_ptr<Event> found;
  guarded([&] {
    if (const Submission* s = marked(ticket)) found = s->event;
  });
  return found;
}

void Queue::wait(Ticket ticket) {
  std::shared_ptr<Event> event;
  guarded([&] {
    const Submission* s = marked(ticket);
    if (!s) return;
    event = s->event;
    ticket = s->ticket;
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
    pop_to(ticket);
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
