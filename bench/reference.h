#pragma once
// C++ of the benchmarked algorithms as a skilled person writes it, all threads. Compiled with
// -O3 -march=native -mprefer-vector-width=512 -ffast-math -fopenmp, on the pages of bench/pages.h.
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
/// z² + c from the points of [-1.5, 1.5)² on.
void julia(int* count, int n, float re, float im, int rounds);
void black_scholes(const float* spot, const float* strike, const float* years, float* call,
                   float* put, size_t n);
void black_scholes(const double* spot, const double* strike, const double* years, double* call,
                   double* put, size_t n);
void life(const int32_t* a, int32_t* b, int n);
/// The flops of a run of `rounds` dependent multiply-adds on every thread and lane.
double fma_flops(int rounds);
void fma_rounds(int rounds);

}  // namespace bench::reference
