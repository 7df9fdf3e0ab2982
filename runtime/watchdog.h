#pragma once
#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

namespace quern::runtime {

/// Tells when commands run longer than a limit. A thread looks every 50 ms or an eighth of the
/// limit, so that commands that do not run longer cost a lock.
class Watchdog {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Watchdog(double seconds);
  ~Watchdog();

  Clock::duration limit() const { return limit_; }

  /// While it lives, commands run of a launch that began at `start`; there is one at a time. `late`
  /// is called at most once, on the watchdog's thread.
  class Watch {
   public:
    Watch(Watchdog& dog, Clock::time_point start, std::function<void()> late);
    ~Watch();
    Watch(const Watch&) = delete;

   private:
    Watchdog& dog_;
  };

 private:
  void look(const std::stop_token& stop);

  Clock::duration limit_;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::optional<Clock::time_point> deadline_;  ///< of what is watched
  std::function<void()> late_;                 ///< what to do then
  pid_t process_;                              ///< fork leaves the thread behind
  std::jthread thread_;                        ///< the last member: it uses the others
};

}  // namespace quern::runtime
