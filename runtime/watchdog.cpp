#include "runtime/watchdog.h"

#include <unistd.h>

#include <algorithm>

#include "runtime/signals.h"

namespace quern::runtime {

namespace {
using Seconds = std::chrono::duration<double>;

constexpr auto longest_period = std::chrono::milliseconds(50);
constexpr auto shortest_period = std::chrono::milliseconds(1);
}  // namespace

Watchdog::Watchdog(double seconds)
    : limit_(std::chrono::duration_cast<Clock::duration>(Seconds(seconds))), process_(getpid()) {
  const SignalsBlocked blocked;  // the thread inherits it
  thread_ = std::jthread([this](const std::stop_token& stop) { look(stop); });
}

Watchdog::~Watchdog() {
  if (getpid() != process_) thread_.detach();
}

void Watchdog::look(const std::stop_token& stop) {
  const auto period = std::clamp<Clock::duration>(limit_ / 8, shortest_period, longest_period);
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    wake_.wait_for(lock, stop, period, [] { return false; });
    if (!deadline_ || Clock::now() < *deadline_) continue;
    deadline_.reset();
    late_();
  }
}

Watchdog::Watch::Watch(Watchdog& dog, Clock::time_point start, std::function<void()> late)
    : dog_(dog) {
  std::lock_guard lock(dog_.mutex_);
  dog_.late_ = std::move(late);
  dog_.deadline_ = start + dog_.limit_;
}

Watchdog::Watch::~Watch() {
  std::lock_guard lock(dog_.mutex_);
  dog_.deadline_.reset();
}

}  // namespace quern::runtime
