#pragma once
// Linear algebra in C++ written by hand, all threads.
#include <cstddef>
#include <cstdint>

namespace bench::reference {

/// A sparse matrix by rows: row r has the entries [begin[r], begin[r + 1]).
struct Csr {
  int32_t rows;
  const int32_t *begin, *column;
  const float* value;
};
/// y = A x.
void multiply(const Csr& a, const float* x, float* y);
/// Conjugate gradients on A x = b from x = 0, so many iterations; r, p and q hold A's rows each.
void conjugate_gradients(const Csr& a, const float* b, float* x, float* r, float* p, float* q,
                         int iterations);
/// c = a b of n × n matrices by rows; n is a multiple of 64.
void matmul(const float* a, const float* b, float* c, int n);

}  // namespace bench::reference
