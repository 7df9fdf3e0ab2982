#pragma once
// Hand-written C++ of the benchmarked algorithms: g++ -O3 -march=native -fopenmp, all threads.
#include <cstddef>
#include <cstdint>

namespace bench::reference {

void fill(float* y, float v, size_t n);
void copy(const float* x, float* y, size_t n);
void saxpy(float a, const float* x, float* y, size_t n);
void triad(float* a, const float* b, const float* c, float s, size_t n);
double sum(const float* x, size_t n);
/// v = mean of the four neighbours of u inside an n × n grid.
void stencil(const float* u, float* v, int n);
void nbody(const float* x, const float* y, const float* z, float* vx, float* vy, float* vz,
           float dt, int n);
void mandelbrot(int* count, int n, int rounds);
void black_scholes(const float* spot, const float* strike, const float* years, float* call,
                   float* put, size_t n);
void life(const int32_t* a, int32_t* b, int n);
/// The flops of a run of `rounds` dependent multiply-adds on every thread and lane.
double fma_flops(int rounds);
void fma_rounds(int rounds);

/// mpm88: 2D MLS-MPM, J-based fluid, quadratic kernel; arrays of particles and an n_grid² grid.
struct Mpm {
  int n_grid, particles;
  float *x, *y, *vx, *vy, *c00, *c01, *c10, *c11, *j;
  float *grid_vx, *grid_vy, *grid_m;
};
void mpm_substep(const Mpm& s);

}  // namespace bench::reference
