// How the host ends launches of a stream, on devices where it can.
#include "quern/runtime/device.h"
#include "runtime/watchdog.h"

namespace quern::runtime {

Ticket Stream::run_watched(std::span<const Command> commands, const Order& order,
                           LaunchRecord& launch) {
  Watchdog& dog = *device_.watchdog_;
  Ticket ticket;
  const auto begin = Watchdog::Clock::now();
  if (launch.ran < dog.limit()) {
    Watchdog::Watch watch(dog, begin - launch.ran, [this] { ask_to_stop(Stop::limit); });
    ticket = driver_.submit(commands, order);
  } else {  // its commands so far took too long, but had no loop that could be ended
    ask_to_stop(Stop::limit);
    ticket = driver_.submit(commands, order);
  }
  launch.ran += Watchdog::Clock::now() - begin;
  forget_limit();
  return ticket;
}

/// Nothing here waits or allocates: it may be a signal handler. An interrupt goes before a limit.
void Stream::ask_to_stop(Stop reason) {
  Stop none = Stop::none;
  if (reason == Stop::interrupt)
    stop_ = reason;
  else if (!stop_.compare_exchange_strong(none, reason))
    return;
  std::atomic_ref(*state_).fetch_or(ir::abi::stop_bit);
  unread_ = true;
}

/// Where nothing answered, the commands ended by themselves: others are not to be ended for them.
void Stream::forget_limit() {
  Stop reason = Stop::limit;
  uint32_t asked = ir::abi::stop_bit;
  if (std::atomic_ref(*state_) != asked || !stop_.compare_exchange_strong(reason, Stop::none))
    return;
  std::atomic_ref(*state_).compare_exchange_strong(asked, 0);
  // An interrupt that came just now had found the bit set.
  if (stop_ == Stop::interrupt) std::atomic_ref(*state_).fetch_or(ir::abi::stop_bit);
}

/// Another stream has told of it. What runs is still to be ended.
void Stream::forget_interrupt() {
  std::unique_lock lock(mutex_, std::try_to_lock);
  uint32_t asked = ir::abi::stop_bit;
  if (!lock || some_launch_runs() || !std::atomic_ref(*state_).compare_exchange_strong(asked, 0))
    return;
  Stop reason = Stop::interrupt;
  stop_.compare_exchange_strong(reason, Stop::none);
}

std::string Stream::describe(Stop reason) const {
  if (reason != Stop::limit) return "the launch was interrupted";
  std::lock_guard lock(device_.order_);
  return "the launch reached its time limit of " +
         format_value(ir::Type::f64, ir::bits_of(device_.limit_)) + " s";
}

}  // namespace quern::runtime
