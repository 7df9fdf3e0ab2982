#include <cstddef>
#include <vector>

#include "bench/cells.h"

namespace bench::reference {

namespace {

/// The next row from three, and the columns beside its ends.
inline void row(const uint8_t* above, const uint8_t* here, const uint8_t* below, uint8_t* to, int n,
                int first_ends, int last_ends) {
  auto lives = [&](int j, int sum) { return uint8_t((sum == 3) | ((sum == 2) & here[j])); };
  to[0] = lives(0, first_ends + above[0] + above[1] + here[1] + below[0] + below[1]);
#pragma omp simd
  for (int j = 1; j < n - 1; j++) {
    const uint8_t sum = uint8_t(above[j - 1] + above[j] + above[j + 1] + here[j - 1] + here[j + 1] +
                                below[j - 1] + below[j] + below[j + 1]);
    to[j] = uint8_t((sum == 3) | ((sum == 2) & here[j]));
  }
  const int j = n - 1;
  to[j] = lives(j, last_ends + above[j - 1] + above[j] + here[j - 1] + below[j - 1] + below[j]);
}

}  // namespace

void life_around(const uint8_t* from, uint8_t* to, int n) {
#pragma omp parallel for
  for (int i = 0; i < n; i++) {
    auto at = [&](int k) { return from + size_t(k) * n; };
    const uint8_t *a = at(i == 0 ? n - 1 : i - 1), *b = at(i), *c = at(i == n - 1 ? 0 : i + 1);
    row(a, b, c, to + size_t(i) * n, n, a[n - 1] + b[n - 1] + c[n - 1], a[0] + b[0] + c[0]);
  }
}

void life_bounded(const uint8_t* from, uint8_t* to, int n) {
  const std::vector<uint8_t> dead(static_cast<size_t>(n));
#pragma omp parallel for
  for (int i = 0; i < n; i++) {
    auto at = [&](int k) { return k < 0 || k == n ? dead.data() : from + size_t(k) * n; };
    row(at(i - 1), at(i), at(i + 1), to + size_t(i) * n, n, 0, 0);
  }
}

}  // namespace bench::reference
