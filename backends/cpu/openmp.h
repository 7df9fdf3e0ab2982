#pragma once
// The OpenMP runtime that the program has brought with it; this library needs none.

namespace quern::cpu {

/// Its functions; null where the program has none.
struct OpenMp {
  int (*in_parallel)() = nullptr;
  int (*max_threads)() = nullptr;
  int (*thread_number)() = nullptr;
  /// What compilers make of `#pragma omp parallel num_threads(threads)`.
  void (*parallel)(void (*body)(void*), void* context, unsigned threads, unsigned flags) = nullptr;

  bool present() const { return in_parallel && max_threads && thread_number && parallel; }
};

/// As it was found at the first call.
const OpenMp& openmp();

}  // namespace quern::cpu
