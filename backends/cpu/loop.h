#pragma once
// One parallel loop, whose runs are claimed by whichever threads come.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <vector>

namespace quern::cpu {

using Body = void (*)(void* context, uint64_t k);

/// The runs are cut into parts, one for each thread expected, so that neighbours run on one thread
/// where the load is even; who has finished a part goes on with the next.
///
/// A loop is published again and again, and any thread may look at it at any time, also one that
/// still means the last publication: a claim is a compare-and-swap of a word that holds the number
/// of the publication, so what it succeeds on is unfinished. Hence nobody waits for a thread that
/// has claimed nothing.
class Loop {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr Clock::time_point never = Clock::time_point::max();

  explicit Loop(uint32_t most_parts) : parts_(most_parts) {}

  /// Offers the runs [0, count), count > 0. The last publication is finished; `body` and `context`
  /// live until this one is.
  void publish(uint64_t count, uint32_t parts, Body body, void* context);
  /// Runs what is not claimed yet, part `first` first. False where `until` came before the end.
  bool work(uint32_t first, Clock::time_point until = never);
  /// Waits until the runs that others claimed are done. For the publisher, behind work().
  void finish();
  /// After a fork: the threads that worked on it stayed behind.
  void forget();

  bool unfinished() const { return unfinished_.load(std::memory_order_relaxed) != 0; }

 private:
  /// On a cache line of its own. The number of claims left stands in the low bits of `claims`, that
  /// of the publication above.
  struct alignas(64) Part {
    std::atomic<uint64_t> claims{0};
    std::atomic<uint64_t> end{0};  ///< one past its last claim
  };
  static constexpr int left_bits = 24;
  static constexpr uint64_t left_mask = (uint64_t(1) << left_bits) - 1;

  uint32_t work_on(Part& part, Clock::time_point until);

  std::vector<Part> parts_;
  uint64_t publication_ = 0;
  // Written before the claims of a publication, read by its claimants; atomic as others may look.
  std::atomic<uint32_t> used_{0};    ///< parts
  std::atomic<uint64_t> count_{0};   ///< runs
  std::atomic<uint64_t> stride_{1};  ///< runs of one claim
  std::atomic<Body> body_{nullptr};
  std::atomic<void*> context_{nullptr};

  alignas(64) std::atomic<uint32_t> unfinished_{0};  ///< claims whose end nobody has reported
  std::atomic<uint32_t> publisher_sleeps_{0};
};

}  // namespace quern::cpu
