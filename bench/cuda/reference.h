#pragma once
// Hand-written CUDA of the benchmarked algorithms, as one would write them without Quern. All
// pointers lead to the device's memory, all work goes into the stream given (null: one of their
// own) and is not waited for.
#include <cstddef>
#include <cstdint>

namespace bench::cuda {

using Stream = void*;  ///< cudaStream_t

constexpr int block = 256;  ///< threads
constexpr int chains = 8;   ///< of dependent multiply-adds in a thread

/// A fluid of 3D MLS-MPM in arrays of components; nodes of {momentum or velocity, mass}.
struct Mpm3d {
  int n_grid;
  int particles;
  float *x[3], *v[3], *c[9], *j;
  float* nodes;  ///< [n_grid³][4], aligned to 16 bytes
};

struct Functions {
  void (*use_device)(int index);  ///< to be called first
  void (*close)();                ///< to be called last
  void (*wait)(Stream stream);
  void* (*allocate)(size_t bytes);
  void (*release)(void* memory);
  void (*upload)(void* to, const void* from, size_t bytes);
  void (*download)(void* to, const void* from, size_t bytes);

  void (*nothing)(Stream stream);  ///< an empty kernel with five 64-bit arguments
  void (*memcpy)(float* to, const float* from, size_t n, Stream stream);  ///< the driver's copy
  void (*fill)(float* y, float v, size_t n, Stream stream);
  void (*copy)(const float* x, float* y, size_t n, Stream stream);
  void (*saxpy)(float a, const float* x, float* y, size_t n, Stream stream);
  void (*triad)(float* a, const float* b, const float* c, float s, size_t n, Stream stream);
  /// Warp shuffles, then one atomic add a block. The sum is on the host when it returns.
  float (*sum)(const float* x, size_t n, Stream stream);
  void (*stencil)(const float* u, float* v, int n, Stream stream);
  /// Tiles of positions in shared memory: Nyland, Harris, Prins, GPU Gems 3, chapter 31.
  void (*nbody)(const float* x, const float* y, const float* z, float* vx, float* vy, float* vz,
                float dt, int n, Stream stream);
  /// A substep of examples/mpm3d.h: a thread a particle or node, atomic adds on a dense grid.
  void (*mpm3d_substep)(const Mpm3d& state, Stream stream);
  /// `rounds` dependent multiply-adds in each of `chains` a thread; the flops of the run.
  double (*multiply_adds)(int rounds, Stream stream);
};

/// Null in a build without nvcc. Its functions throw quern::Error in CUDA's words.
const Functions* functions();

}  // namespace bench::cuda
