#pragma once
// The algorithms on fields in C++ written by hand with skill, all threads, memory read once where
// that suffices: what quern/algorithms.h is measured against.
#include <cstddef>
#include <cstdint>

namespace bench::reference {

float least(const float* x, size_t n);
double dot(const float* x, const float* y, size_t n);
/// The first index of the least.
size_t least_index(const float* x, size_t n);
/// Both in one pass over tiles that fit a cache, each of which waits for the sum of the one before.
void inclusive_scan(const float* x, float* y, size_t n);
void inclusive_scan(const int32_t* x, int32_t* y, size_t n);
/// Keeps the positive elements in order; returns how many.
size_t compact(const float* x, float* y, size_t n);
/// 256 bins, each thread with tables of its own.
void histogram(const uint8_t* x, uint32_t* bins, size_t n);
/// Values below 256.
void histogram(const uint32_t* x, uint32_t* bins, size_t n);
void histogram(const float* x, uint32_t* bins, size_t count, float lo, float hi, size_t n);
/// Least significant digit first, 8 bits a pass, each thread with counters of its own; `other` is
/// as long as `keys`, and `values` (with `other_values`) may be null.
void radix_sort(uint32_t* keys, uint32_t* other, uint32_t* values, uint32_t* other_values,
                size_t n);

}  // namespace bench::reference
