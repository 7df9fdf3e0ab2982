#pragma once
// Threads that help those who run loops.
#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "backends/cpu/loop.h"

namespace quern::cpu {

/// When helpers that sleep are woken for a loop.
enum class Waking {
  at_once,
  late,  ///< once the loop has lasted as long as a wake takes
};

/// The caller of a loop works on it like everybody else: what no helper has begun it does itself,
/// so that it never waits for a thread that gets no processor. Helpers sleep but for some
/// microseconds behind a loop, in which they yield to whoever wants their processor.
class Pool {
 public:
  /// Starts nothing: the helpers start at the first loop, as many as the system grants.
  explicit Pool(uint32_t helpers);
  /// No loop runs any more.
  ~Pool() { stop(); }
  Pool(const Pool&) = delete;

  /// Calls body(context, k) once for each k in [0, count), and returns when all are done. From any
  /// thread, from several at once, and inside itself.
  void run(uint64_t count, Waking waking, Body body, void* context);

  /// Ends the helpers and waits for them; loops run on their callers alone from then on.
  void stop();
  /// In a process just forked: the helpers stayed behind, and new ones start at the first loop.
  void forget_helpers();

 private:
  struct Helper {
    Pool* pool = nullptr;
    uint32_t number = 0;  ///< from 1
    pthread_t thread = {};
  };
  struct Slot {
    Loop loop;
    std::atomic<bool> taken{false};        ///< by a caller
    std::atomic<int32_t> still_asleep{0};  ///< helpers to be woken for the loop: a hint
  };
  enum State : uint32_t { fresh, starting, started, stopped };

  uint32_t helpers();
  void start();
  void help(uint32_t number);
  Slot* take_slot();
  void wake_some(Slot& slot);

  std::vector<Helper> helpers_;
  std::atomic<uint32_t> state_{fresh};
  std::atomic<uint32_t> running_{0};  ///< helpers that the system granted
  std::vector<std::unique_ptr<Slot>> slots_;

  alignas(64) std::atomic<uint32_t> posted_{0};  ///< publications: helpers wait for a change
  std::atomic<uint32_t> sleepers_{0};            ///< helpers asleep, or about to be
};

}  // namespace quern::cpu
