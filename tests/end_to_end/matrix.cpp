// Norms, diagonals and linear systems of small matrices against plain C++ in wider precision.
#include <quern/matrix.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "tests/end_to_end/devices.h"

using namespace qn::lang;

namespace {
template <class T>
using Wide = std::conditional_t<sizeof(T) == 4, double, long double>;

/// Random matrices; every fifth has a zero first pivot, an almost singular one, rows of unlike
/// sizes.
template <class T, int N>
std::vector<qn::Mat<T, N, N>> matrices(int count) {
  std::mt19937_64 random(N);
  std::normal_distribution<double> normal;
  std::vector<qn::Mat<T, N, N>> all;
  for (int i = 0; i < count; i++) {
    qn::Mat<T, N, N> m;
    for (int k = 0; k < N * N; k++) m.value(k) = T(normal(random));
    if (i % 5 == 0) m(0, 0) = 0;
    if (i % 5 == 1)
      for (int c = 0; c < N; c++) m(1, c) = m(0, c) * T(1 + 1e-4 * m(1, c));
    if (i % 5 == 2)
      for (int c = 0; c < N; c++) m(N - 1, c) *= T(1e6);
    all.push_back(m);
  }
  return all;
}

/// |a x - b| over |a| |x|, of the largest row.
template <class T, int N>
double residual(const qn::Mat<T, N, N>& a, const qn::Vec<T, N>& x, const qn::Vec<T, N>& b) {
  double worst = 0;
  Wide<T> size_a = 0, size_x = 0;
  for (int r = 0; r < N; r++) {
    Wide<T> row = 0;
    for (int c = 0; c < N; c++) row += std::abs(Wide<T>(a(r, c)));
    size_a = std::max(size_a, row);
    size_x = std::max(size_x, std::abs(Wide<T>(x[r])));
  }
  for (int r = 0; r < N; r++) {
    Wide<T> rest = -Wide<T>(b[r]);
    for (int c = 0; c < N; c++) rest += Wide<T>(a(r, c)) * Wide<T>(x[c]);
    worst = std::max(worst, double(std::abs(rest) / (size_a * size_x)));
  }
  return worst;
}

template <class T, int N>
void check_solve(const qn::Device& device) {
  using M = qn::Mat<T, N, N>;
  using V = qn::Vec<T, N>;
  const int n = 2000;
  const double bound = 4 * N * double(std::numeric_limits<T>::epsilon());
  const std::vector<M> all = matrices<T, N>(n);
  qn::Field<M> a{device, {n}}, inverses{device, {n}};
  qn::Field<V> b{device, {n}}, x{device, {n}};
  a.copy_from(all);
  qn::Kernel k = [&] {
    for (auto i : a) {
      b[i] = a[i].row(0) + T(1);
      x[i] = solve(a[i], b[i]);
      inverses[i] = solve(a[i], M::identity());
    }
  };
  k();
  double worst = 0, worst_columns = 0, worst_host = 0;
  for (int i = 0; i < n; i++) {
    const M& m = all[size_t(i)];
    const M inverse = inverses.at(i);
    worst = std::max(worst, residual<T, N>(m, x.at(i), b.at(i)));
    worst_host = std::max(worst_host, residual<T, N>(m, solve(m, b.at(i)), b.at(i)));
    for (int c = 0; c < N; c++)
      worst_columns =
          std::max(worst_columns, residual<T, N>(m, inverse.col(c), M::identity().col(c)));
  }
  INFO(sizeof(T) * 8 << " bits, " << N << " × " << N);
  CHECK(worst <= bound);
  CHECK(worst_host <= bound);
  CHECK(worst_columns <= bound);
}
}  // namespace

TEST_CASE("solve leaves a residual of a few units in the last place") {
  on_every_device([](qn::Device& device) {
    check_solve<float, 2>(device);
    check_solve<float, 3>(device);
    check_solve<float, 4>(device);
    check_solve<double, 2>(device);
    check_solve<double, 3>(device);
    check_solve<double, 4>(device);
  });
}

TEST_CASE("solve of a singular system is not finite") {
  const vec2 x = solve(mat2(1, 2, 2, 4), vec2(1, 1));
  CHECK_FALSE(std::isfinite(x.y));
}

TEST_CASE("norms, diagonals and the matrix of a cross product") {
  on_every_device([](qn::Device& device) {
    const qn::Mat<float, 2, 3> m(1, -2, 3, -4, 5, -6);
    const vec3 v(3, -4, 1), w(2, 7, -5);
    qn::Field<float> norms{device, {8}};
    qn::Field<mat3> matrices{device, {2}};
    qn::Field<vec3> vectors{device, {2}};
    qn::Field<ivec2> integers{device, {1}};
    qn::Kernel k = [&](Val<qn::Mat<float, 2, 3>> a, Vec3 b, Vec3 c) {
      for (auto i : range(1)) {
        norms[0] = norm_1(a);
        norms[1] = norm_inf(a);
        norms[2] = norm_frobenius(a);
        norms[3] = norm_1(b);
        norms[4] = norm_inf(b);
        auto d = diagonal(a);
        norms[5] = d.x;
        norms[6] = d.y;
        matrices[0] = diagonal(b);
        matrices[1] = skew(b);
        vectors[0] = skew(b) * c;
        vectors[1] = diagonal(skew(b) + diagonal(c));
        integers[0] = diagonal(diagonal(ivec2(3, -4)));
      }
    };
    k(m, v, w);
    const float root = std::sqrt(1.0f + 4 + 9 + 16 + 25 + 36);
    CHECK(norms.at(0) == 9);   // the third column
    CHECK(norms.at(1) == 15);  // the second row
    CHECK(std::abs(norms.at(2) - root) < 1e-6f * root);
    CHECK(norms.at(3) == 8);
    CHECK(norms.at(4) == 4);
    CHECK(norms.at(5) == 1);
    CHECK(norms.at(6) == 5);
    CHECK(matrices.at(0) == mat3(3, 0, 0, 0, -4, 0, 0, 0, 1));
    CHECK(matrices.at(1) == mat3(0, -1, -4, 1, 0, -3, 4, 3, 0));
    CHECK(vectors.at(0) == vec3(-4 * -5 - 1 * 7, 1 * 2 - 3 * -5, 3 * 7 - -4 * 2));
    CHECK(vectors.at(1) == w);
    CHECK(integers.at(0) == ivec2(3, -4));
    static_assert(norm_1(ivec3(1, -2, 3)) == 6 && norm_inf(ivec3(1, -3, 2)) == 3);
    static_assert(diagonal(ivec2(1, 2)) == qn::Mat<int, 2, 2>(1, 0, 0, 2));
    CHECK(norm_frobenius(m) == norms.at(2));
    CHECK(skew(v) * w == cross(v, w));
  });
}
