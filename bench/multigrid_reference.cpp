#include "bench/multigrid_reference.h"

#include <cstddef>

namespace bench::reference {

void red_black(const float* from, const float* b, float* to, int n, int colour) {
  const size_t row = size_t(n) + 2, plane = row * row;
#pragma omp parallel for collapse(2)
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      const size_t first = (size_t(i) + 1) * plane + (size_t(j) + 1) * row + 1;
      const float *z = from + first, *right = b + (size_t(i) * size_t(n) + size_t(j)) * size_t(n);
      float* out = to + first;
      const int odd = (i + j + colour) & 1;
#pragma omp simd
      for (int k = 0; k < n; k++) {
        const size_t at = size_t(k);
        const float around =
            z[at - plane] + z[at + plane] + z[at - row] + z[at + row] + z[at - 1] + z[at + 1];
        out[at] = (k & 1) == odd ? (right[at] + around) * (1.0f / 6) : z[at];
      }
    }
}

}  // namespace bench::reference
