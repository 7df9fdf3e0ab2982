#pragma once
// The threads of the CPU back end, behind one function.
#include <cstdint>

#include "backends/cpu/pool.h"

namespace quern::cpu {

/// Threads that parallel_for uses: QUERN_THREADS where set, else as many as there are processors()
/// or, on OpenMP's threads, as OpenMP would use.
int worker_count();
/// Throws Error where QUERN_THREADS is set to anything but a number from 1 to 4096, or
/// QUERN_CPU_THREADING to anything but `pool` or, in a program with OpenMP, `openmp`.
void expect_thread_settings();

/// Calls body(context, k) once for each k in [0, count), on several threads, and returns when all
/// are done. Neighbouring k run on one thread where the load is even; threads that finish early
/// take over what is left. Inside a parallel region of OpenMP, whose threads have the processors
/// already, on the caller alone. `body` must not throw. Safe from several threads at once.
void parallel_for(uint64_t count, Waking waking, Body body, void* context);

template <class F>
void parallel_for(uint64_t count, Waking waking, const F& f) {
  parallel_for(
      count, waking, [](void* context, uint64_t k) { (*static_cast<const F*>(context))(k); },
      const_cast<F*>(&f));
}

}  // namespace quern::cpu
