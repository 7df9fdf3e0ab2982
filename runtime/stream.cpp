#include "quern/runtime/stream.h"

#include <algorithm>
#include <utility>

#include "quern/runtime/device.h"
#include "quern/runtime/observer.h"
#include "runtime/watchdog.h"

namespace quern::runtime {

namespace {
/// So many copies wait for no more.
constexpr size_t max_later = 64;

/// Launches remembered before the host looks for reports on its own: so few that their records stay
/// in a cache.
constexpr size_t max_launched = 1024;

thread_local Stream::Current* innermost = nullptr;
}  // namespace

Reporter::Reporter(std::string of, std::vector<ir::Site> all)
    : kernel(std::move(of)),
      sites(std::move(all)),
      prints(std::ranges::any_of(sites,
                                 [](const ir::Site& s) { return s.kind == ir::Site::print; })) {}

// ---- making and choosing streams

Stream::Stream(Device& device, uint32_t queue)
    : device_(device), driver_(device.driver()), queue_(queue) {
  using ir::abi::ErrorRecord;
  error_ = device.obtain(sizeof(ErrorRecord), "the error record of a stream", {}, queue);
  const Command zero = Fill{error_, sizeof(ErrorRecord), 0};
  driver_.submit({&zero, 1}, {queue, {}});
  if (device.target().traits.stoppable)
    state_ = &reinterpret_cast<ErrorRecord*>(driver_.host_pointer(error_))->state;
}

/// Of a device that is closing.
void Stream::give_back_memory() noexcept {
  for (Address a : {error_, ring_})
    if (a) try {
        driver_.release(a, queue_);
      } catch (const std::exception&) {  // it goes with the driver
      }
}

std::shared_ptr<Stream> Stream::make(const std::shared_ptr<Device>& device) {
  std::lock_guard making(device->making_);
  std::deque<Stream*>& free = device->free_;
  Stream* stream = nullptr;
  // The first of them has had the most time to come to rest.
  if (!free.empty() && free.back()->is_at_rest()) {
    stream = free.back();
    free.pop_back();
  } else if (!free.empty() && free.front()->is_at_rest()) {
    stream = free.front();
    free.pop_front();
  } else {
    stream = &device->add_stream(device->driver().make_queue());
    stream->begin();
  }
  return {stream, [device](Stream* s) {
            std::lock_guard lock(device->making_);
            device->free_.push_back(s);
          }};
}

/// What was submitted before there were several streams is noted nowhere: all others are behind it.
void Stream::begin() {
  Stream& first = device_.stream();
  {
    std::lock_guard lock(first.mutex_);
    if (!device_.several_) {
      first.put_later();
      device_.several_ = true;  // first: who looks without the lock has submitted already
      try {
        first.put_later();  // what another thread has left there meanwhile
        device_.alone_ = driver_.submit({}, {first.queue_, {}});
      } catch (...) {
        device_.several_ = false;
        throw;
      }
    }
  }
  std::lock_guard lock(device_.order_);
  add_before(first, device_.alone_.number);
  if (queue_ == first.queue_) return;
  driver_.submit({}, {queue_, {&device_.alone_, 1}});
  note_waits({&device_.alone_, 1});
}

/// Has everything run, and is there nothing to report but lines, which are printed?
bool Stream::is_at_rest() {
  submit_waiting();
  if (!driver_.done(driver_.submit({}, {queue_, {}}))) return false;
  std::lock_guard lock(mutex_);
  if (!unread_) return true;
  if (kept_ || record_seen_by(queue_).state != 0) return false;
  print_lines();
  forget_submitted();
  unread_ = false;
  return true;
}

Stream& Stream::current(Device& device) {
  for (Current* c = innermost; c; c = c->outer_)
    if (&c->stream_->device_ == &device) return *c->stream_;
  return device.stream();
}

Stream::Current::Current(std::shared_ptr<Stream> stream)
    : stream_(std::move(stream)), outer_(innermost) {
  innermost = this;
}

/// The last made need not be the first to go.
Stream::Current::~Current() {
  for (Current** at = &innermost; *at; at = &(*at)->outer_)
    if (*at == this) {
      *at = outer_;
      return;
    }
}

// ---- launches

namespace {
thread_local RandomKey last_key;
thread_local std::optional<RandomKey> same_key;
}  // namespace

RandomKey RandomKey::last() { return last_key; }

SameRandomNumbers::SameRandomNumbers(RandomKey key) : outer_(std::exchange(same_key, key)) {}
SameRandomNumbers::~SameRandomNumbers() { same_key = outer_; }

LaunchRecord& Stream::begin_launch(const Reporter& reporter) {
  std::unique_lock lock(mutex_);
  if (launched_.size() >= max_launched) {
    lock.unlock();
    synchronize();
    lock.lock();
  }
  if (spare_.empty()) spare_.push_back(std::make_shared<LaunchRecord>());
  auto launch = std::move(spare_.back());
  spare_.pop_back();
  launch->number = next_launch_++ % ir::abi::max_launch_number;
  {
    std::unique_lock order(device_.order_, std::defer_lock);
    if (device_.several_) order.lock();
    launch->key = same_key.value_or(RandomKey{device_.seed_, device_.since_seed_});
    if (!same_key && !LaunchCall::in_upkeep()) device_.since_seed_++;
  }
  if (!LaunchCall::in_upkeep()) last_key = launch->key;
  launch->reporter = &reporter;
  launch->begun = ++now_;
  launched_.push_back(std::move(launch));
  if (!reporter.sites.empty()) unread_.store(true, std::memory_order_release);
  return *launched_.back();
}

void Stream::end_launch(LaunchRecord& launch, const std::shared_ptr<const Reporter>& reporter) {
  std::lock_guard lock(mutex_);
  launch.touches = nullptr;
  launch.submitted = ++now_;
  // Where nothing was launched that can fail, nothing has kept this launch from running.
  if (unread_ && !has_ended_well(launch)) {
    launch.kept_reporter = reporter;
    return;
  }
  const auto here = std::ranges::find(launched_, &launch, &std::shared_ptr<LaunchRecord>::get);
  auto ended = std::move(*here);
  launched_.erase(here);
  forget(std::move(ended));
  if (!unread_ || !launched_.empty() || kept_) return;
  unread_ = false;
  if (state_ && std::atomic_ref(*state_) != 0) unread_ = true;  // who asks to stop does not wait
}

void Stream::expect_success(const LaunchRecord& launch) {
  std::lock_guard lock(mutex_);
  if (launch.error) throw Error(*launch.error);
}

/// The stream's lock is held.
Ticket Stream::put(std::span<const Command> commands, std::span<const Touch> touched,
                   LaunchRecord* launch) {
  if (is_due_) put_later();
  if (device_.several_) return put_in_order(commands, touched, launch);
  return run(commands, {queue_, {}}, launch);
}

/// So is the device's where it has several streams.
Ticket Stream::run(std::span<const Command> commands, const Order& order, LaunchRecord* launch) {
  if (launch && device_.watchdog_) return run_watched(commands, order, *launch);
  return driver_.submit(commands, order);
}

std::optional<Ticket> Stream::submit(LaunchRecord& launch, std::span<Command> commands) {
  std::lock_guard lock(mutex_);
  if (launch.first == 0) launch.error.reset();  // a wait took what would have kept it from running
  if (launch.error) return std::nullopt;
  for (Command& command : commands)
    if (auto* l = std::get_if<Launch>(&command)) l->asks = unread_;
  const Ticket ticket = put(commands, {}, &launch);
  if (launch.first == 0) launch.first = ticket.number;
  launch.last = ticket.number;
  return ticket;
}

// ---- copies, and waits of the host

Ticket Stream::submit(std::span<const Command> commands, std::span<const Touch> touched) {
  std::lock_guard lock(mutex_);
  return put(commands, touched);
}

uint64_t Stream::submit_later(std::span<const Command> copies, std::span<const Touch> touched,
                              Later until) {
  {
    std::lock_guard lock(later_mutex_);
    if (!device_.several_ && !device_.is_joined_) {
      later_.insert(later_.end(), copies.begin(), copies.end());
      if (until == Later::before_next) is_due_.store(true, std::memory_order_release);
      has_later_.store(true, std::memory_order_release);
      const uint64_t together = together_;
      if (later_.size() >= max_later) put_all_later();
      return together;
    }
  }
  submit(copies, touched);
  return 0;
}

void Stream::put_later() {
  std::lock_guard lock(later_mutex_);
  put_all_later();
}

/// The lock of those that wait is held. What fails is tried again.
void Stream::put_all_later() {
  if (!later_.empty()) driver_.submit(later_, {queue_, {}});
  forget_later();
}

void Stream::forget_later() {
  later_.clear();
  together_++;
  is_due_ = has_later_ = false;
}

void Stream::wait() {
  submit_waiting();
  driver_.wait(driver_.submit({}, {queue_, {}}));
}

void Stream::synchronize() {
  wait();
  collect();
}

void Stream::download(std::span<std::byte> to, Address from) {
  submit_waiting();
  driver_.download(to, from, queue_);
  collect();
}

void Stream::upload(Address to, std::span<const std::byte> from, std::span<const Touch> touched) {
  send(to, from, touched);
  collect();
}

/// Other streams may submit while the bytes are copied: the copy is noted before, and again when its
/// ticket is known.
void Stream::send(Address to, std::span<const std::byte> from, std::span<const Touch> touched) {
  submit_waiting();
  if (device_.several_) submit({}, touched);
  driver_.upload(to, from, queue_);
  if (device_.several_) submit({}, touched);
}

}  // namespace quern::runtime
