#pragma once
// Arithmetic-bound kernels one by one.

namespace bench {

class Report;
/// So many bodies, each drawn by all.
void nbody(Report& report, int bodies);
/// Of side² points.
void mandelbrot(Report& report, int side, int rounds);

}  // namespace bench
