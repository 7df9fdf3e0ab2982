// Rows of every length around those that back ends take together: what iterations write, and sums, of
// elements of several sizes.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include <quern/host.h>

#include "tests/end_to_end/devices.h"
#include "tests/end_to_end/numbers.h"

using namespace quern::lang;

namespace {

template <class T>
void rows_of(const qn::Device& device) {
  using Rows = qn::Field<T, 2>;
  constexpr int rows = 3, longest = 150;
  qn::Kernel write = [](Rows x, Rows y) {
    for (auto [i, j] : x) y(i, j) = 2 * x(i, j) * x(i, j) - 3 * x(i, j) + 1;
  };
  qn::Kernel within = [](Rows x, Rows y) {
    for (auto [i, j] : grid(range(1, x.dim(0) - 1), range(1, x.dim(1) - 1)))
      y(i, j) = x(i, j - 1) + 2 * x(i, j) + x(i, j + 1) + x(i - 1, j) - x(i + 1, j);
  };
  qn::Kernel sum = [](Rows x) {
    Var<T> total = T(0), more = T(0);
    for (auto I : x) {
      total += x[I];
      more += x[I] * x[I] + 1;
    }
    return result(total, more);
  };
  // Of more operations: those of few are one loop whatever their row is.
  qn::Kernel long_sum = [](Rows x) {
    Var<T> total = T(0), more = T(0);
    for (auto I : x) {
      Val<T> v = x[I], low = min(v, T(7)), high = max(v, T(-9)), far = abs(v - 5);
      Val<T> folded = select(v > 10, 3 * v - 4, 1 - 2 * v);
      total += low * high - 2 * far + folded;
      more += (low + far) * 3 - high * (folded + 1) + v * 2;
    }
    return result(total, more);
  };
  for (int n = 1; n <= longest; n += n < 70 ? 1 : 7) {
    INFO("rows of " << n);
    std::vector<T> seen;
    for (int v : numbers(rows * n, 7)) seen.push_back(T(v % 50));
    Rows x{device, {rows, n}}, y{device, {rows, n}}, inner{device, {rows, n}};
    x.copy_from(seen);
    inner.fill(T(77));
    write(x, y);
    within(x, inner);
    auto [got_total, got_more] = sum(x);
    auto [got_long, got_longer] = long_sum(x);

    std::vector<T> want_y, want_inner(seen.size(), T(77));
    T total = 0, more = 0, longer[2] = {0, 0};
    for (T v : seen) {
      const T low = std::min(v, T(7)), high = std::max(v, T(-9)), far = std::abs(v - T(5));
      const T folded = v > 10 ? 3 * v - 4 : 1 - 2 * v;
      longer[0] += low * high - 2 * far + folded;
      longer[1] += (low + far) * 3 - high * (folded + 1) + v * 2;
      want_y.push_back(T(2 * v * v - 3 * v + 1));
      total = T(total + v), more = T(more + v * v + 1);
    }
    for (int j = 1; j + 1 < n; j++) {
      const auto at = [&](int i, int k) { return seen[size_t(i * n + k)]; };
      want_inner[size_t(n + j)] =
          T(at(1, j - 1) + 2 * at(1, j) + at(1, j + 1) + at(0, j) - at(2, j));
    }
    CHECK(qn::to_vector(y) == want_y);
    CHECK(qn::to_vector(inner) == want_inner);
    CHECK(T(got_total) == total);
    CHECK(T(got_more) == more);
    CHECK(T(got_long) == longer[0]);
    CHECK(T(got_longer) == longer[1]);
  }
}

}  // namespace

TEST_CASE("rows of every length") {
  on_every_device([](const qn::Device& device) {
    rows_of<float>(device);
    rows_of<int32_t>(device);
    rows_of<double>(device);
  });
}
