#include "runtime/watchdog.h"

#include <algorithm>

namespace quern::runtime {

namespace {
using Seconds = std::chrono::duration<double>;

Watchdog::Clock::duration ticks(double seconds) {
  return std::chrono::duration_cast<Watchdog::Clock::duration>(Seconds(seconds));
}
}  // namespace

Watchdog::Watchdog(double seconds, std::function<void()> late)
    : seconds_(seconds),
      late_(std::move(late)),
      thread_([this](const std::stop_token& stop) { look(stop); }) {}

void Watchdog::look(const std::stop_token& stop) {
  const auto period = ticks(std::clamp(seconds_ / 8, 0.001, 0.05));
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    wake_.wait_for(lock, stop, period, [] { return false; });
    if (!deadline_ || Clock::now() < *deadline_) continue;
    deadline_.reset();
    late_();
  }
}

Watchdog::Watch::Watch(Watchdog& dog, Clock::time_point start) : dog_(dog) {
  std::lock_guard lock(dog_.mutex_);
  dog_.deadline_ = start + ticks(dog_.seconds_);
}

Watchdog::Watch::~Watch() {
  std::lock_guard lock(dog_.mutex_);
  dog_.deadline_.reset();
}

}  // namespace quern::runtime
