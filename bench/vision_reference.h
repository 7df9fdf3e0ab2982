#pragma once
// Hand-written C++ of the vision benchmarks: g++ -O3 -march=native -fopenmp, all threads. Pictures
// are h rows of w bytes and continue as their last row or column.
#include <cstdint>

namespace bench::reference {

void sobel(const uint8_t* from, uint8_t* to, int h, int w);
/// (1 4 6 4 1) / 16 in both directions; `columns` holds h · w sums of the first pass.
void gaussian5(const uint8_t* from, uint16_t* columns, uint8_t* to, int h, int w);
void median3(const uint8_t* from, uint8_t* to, int h, int w);
void bilateral(const uint8_t* from, uint8_t* to, int h, int w, int radius, float sigma_distance,
               float sigma_grey);

}  // namespace bench::reference
