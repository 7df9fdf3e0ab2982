#pragma once
// The threads of the CPU back end, behind one function: OpenMP now, replaceable.
#include <cstdint>

namespace quern::cpu {

/// Threads that parallel_for uses: QUERN_THREADS where set, else what OpenMP offers.
int worker_count();
/// Throws Error where QUERN_THREADS is set to anything but a number from 1 to 4096.
void expect_thread_number();

/// Calls body(context, k) once for each k in [0, count), on several threads, and returns when all
/// are done. Neighbouring k run on one thread where the load is even; threads that finish early
/// take over what is left. `body` must not throw. Safe from several threads at once.
void parallel_for(uint64_t count, void (*body)(void* context, uint64_t k), void* context);

template <class F>
void parallel_for(uint64_t count, const F& f) {
  parallel_for(
      count, [](void* context, uint64_t k) { (*static_cast<const F*>(context))(k); },
      const_cast<F*>(&f));
}

}  // namespace quern::cpu
