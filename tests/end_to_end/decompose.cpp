// Decompositions of small matrices: products and orthogonality in double (long double for f64) on
// the host, over random and degenerate matrices.
#include <quern/decompose.h>
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

template <class T, int N>
struct Square {
  Wide<T> m[N][N] = {};
  Square() = default;
  Square(const qn::Mat<T, N, N>& a) {
    for (int r = 0; r < N; r++)
      for (int c = 0; c < N; c++) m[r][c] = a(r, c);
  }
  static Square diagonal(const qn::Vec<T, N>& s) {
    Square d;
    for (int k = 0; k < N; k++) d.m[k][k] = s[k];
    return d;
  }
  static Square one() {
    Square d;
    for (int k = 0; k < N; k++) d.m[k][k] = 1;
    return d;
  }
  Square transposed() const {
    Square t;
    for (int r = 0; r < N; r++)
      for (int c = 0; c < N; c++) t.m[c][r] = m[r][c];
    return t;
  }
  Square operator*(const Square& o) const {
    Square p;
    for (int r = 0; r < N; r++)
      for (int c = 0; c < N; c++)
        for (int k = 0; k < N; k++) p.m[r][c] += m[r][k] * o.m[k][c];
    return p;
  }
  /// The Frobenius norm of the difference.
  double from(const Square& o) const {
    Wide<T> sum = 0;
    for (int r = 0; r < N; r++)
      for (int c = 0; c < N; c++) sum += (m[r][c] - o.m[r][c]) * (m[r][c] - o.m[r][c]);
    return double(std::sqrt(sum));
  }
  double norm() const { return from(Square()); }
  /// Distance from orthogonal columns of length 1.
  double skewness() const { return (transposed() * *this).from(one()); }
};

/// Random matrices, a third of them of lower rank, with equal columns, symmetric, orthogonal,
/// diagonal, tiny or huge.
template <class T, int N>
std::vector<qn::Mat<T, N, N>> matrices(int count, bool symmetric) {
  std::mt19937_64 random(N * 10 + sizeof(T));
  std::normal_distribution<double> normal;
  std::vector<qn::Mat<T, N, N>> all;
  for (int i = 0; i < count; i++) {
    double a[N][N];
    for (auto& row : a)
      for (double& v : row) v = normal(random);
    double scale = 1;
    switch (i % 24) {
      case 0:  // rank 1
        for (int r = 0; r < N; r++)
          for (int c = 0; c < N; c++) a[r][c] = a[r][0] * a[0][c == 0 ? N - 1 : c];
        break;
      case 1:  // two equal columns
        for (auto& row : a) row[1] = row[0];
        break;
      case 2:  // almost equal ones
        for (auto& row : a) row[1] = row[0] + 1e-7 * row[1];
        break;
      case 3:  // diagonal, values repeated
        for (int r = 0; r < N; r++)
          for (int c = 0; c < N; c++) a[r][c] = r == c ? double(i / 24 % 3) - double(r == 1) : 0;
        break;
      case 4:  // a turn or a mirror in the first two axes
        for (int r = 0; r < N; r++)
          for (int c = 0; c < N; c++) a[r][c] = r == c;
        a[0][0] = std::cos(0.001 * i), a[0][1] = std::sin(0.001 * i);
        a[1][0] = (i % 48 == 4 ? -1 : 1) * a[0][1], a[1][1] = (i % 48 == 4 ? 1 : -1) * a[0][0];
        break;
      case 5: scale = 1e-15; break;
      case 6: scale = 1e15; break;
      case 7: std::fill(a[0], a[0] + N, 0.0); break;
      default: break;
    }
    if (i == 24 * 100) scale = 0;
    qn::Mat<T, N, N> m;
    for (int r = 0; r < N; r++)
      for (int c = 0; c < N; c++) m(r, c) = T(scale * a[r][c]);
    if (symmetric)
      for (int r = 0; r < N; r++)
        for (int c = 0; c < r; c++) m(r, c) = m(c, r);
    all.push_back(m);
  }
  return all;
}

template <class T, int N>
void check(const qn::Device& device, int count) {
  using M = qn::Mat<T, N, N>;
  using V = qn::Vec<T, N>;
  using W = Square<T, N>;
  const double bound = sizeof(T) == 4 ? 1e-6 : 1e-13;
  const std::vector<M> general = matrices<T, N>(count, false),
                       symmetric = matrices<T, N>(count, true);
  qn::Field<M> a{device, {count}}, b{device, {count}}, u{device, {count}}, v{device, {count}},
      r{device, {count}}, s{device, {count}}, e{device, {count}};
  qn::Field<V> sigma{device, {count}}, lambda{device, {count}};
  a.copy_from(general);
  b.copy_from(symmetric);
  qn::Kernel singular = [&] {
    for (auto i : a) {
      auto [left, values, right] = svd(a[i]);
      u[i] = left;
      sigma[i] = values;
      v[i] = right;
    }
  };
  qn::Kernel others = [&] {
    for (auto i : a) {
      auto [turn, stretch] = polar(a[i]);
      r[i] = turn;
      s[i] = stretch;
      auto [values, vectors] = sym_eig(b[i]);
      lambda[i] = values;
      e[i] = vectors;
    }
  };
  singular();
  others();
  const std::vector<M> hu = qn::to_vector(u), hv = qn::to_vector(v), hr = qn::to_vector(r),
                       hs = qn::to_vector(s), he = qn::to_vector(e);
  const std::vector<V> hsigma = qn::to_vector(sigma), hlambda = qn::to_vector(lambda);
  double worst_svd = 0, worst_polar = 0, worst_eig = 0, skew = 0;
  int unordered = 0, negative = 0;
  for (size_t i = 0; i < general.size(); i++) {
    const W A(general[i]), B(symmetric[i]), U(hu[i]), E(he[i]), R(hr[i]), S(hs[i]), Q(hv[i]);
    const double size = A.norm() > 0 ? A.norm() : 1, length = B.norm() > 0 ? B.norm() : 1;
    worst_svd = std::max(worst_svd, (U * W::diagonal(hsigma[i]) * Q.transposed()).from(A) / size);
    worst_polar = std::max(worst_polar, (R * S).from(A) / size);
    worst_eig =
        std::max(worst_eig, (E * W::diagonal(hlambda[i]) * E.transposed()).from(B) / length);
    skew = std::max({skew, U.skewness(), Q.skewness(), E.skewness(), R.skewness()});
    for (int k = 0; k + 1 < N; k++)
      unordered += hsigma[i][k] < hsigma[i][k + 1] || hlambda[i][k] > hlambda[i][k + 1];
    for (int k = 0; k < N; k++) negative += !(hsigma[i][k] >= 0);
  }
  INFO(sizeof(T) * 8 << " bits, " << N << " × " << N);
  CHECK(worst_svd <= bound);
  CHECK(worst_polar <= bound);
  CHECK(worst_eig <= bound);
  CHECK(skew <= 2 * bound);
  CHECK(unordered == 0);
  CHECK(negative == 0);
}
}  // namespace

TEST_CASE("svd, polar and sym_eig reconstruct a million matrices") {
  on_every_device([](qn::Device& device) {
    const bool cpu = std::string(device.name()).rfind("cpu", 0) == 0;
    const int count = cpu ? 250'000 : 2'500;
    check<float, 2>(device, count);
    check<float, 3>(device, count);
    check<double, 2>(device, count);
    check<double, 3>(device, count);
  });
}

TEST_CASE("svd_rotations gives rotations; a NaN gives NaNs; the host computes the same") {
  on_every_device([](qn::Device& device) {
    const mat3 mirror(0, 2, 0, 3, 0, 0, 0, 0, 1);  // determinant -6
    qn::Field<mat3> out{device, {4}};
    qn::Field<vec3> values{device, {2}};
    qn::Kernel k = [&](Mat3 a, F32 nan) {
      for (auto i : range(1)) {
        auto [u, s, v] = svd_rotations(a);
        out[i] = u;
        out[i + 1] = v;
        values[i] = s;
        auto [p, q, w] = svd(a * nan);
        out[i + 2] = p;
        values[i + 1] = q;
      }
    };
    k(mirror, std::numeric_limits<float>::quiet_NaN());
    CHECK(std::abs(determinant(out.at(0)) - 1) < 1e-6f);
    CHECK(std::abs(determinant(out.at(1)) - 1) < 1e-6f);
    const vec3 s = values.at(0);
    CHECK(std::abs(s.x - 3) < 1e-6f);
    CHECK(std::abs(s.y - 2) < 1e-6f);
    CHECK(std::abs(s.z + 1) < 1e-6f);
    CHECK(std::isnan(values.at(1).x));
    auto [u, host, v] = svd_rotations(mirror);
    CHECK(std::abs(host.x - 3) < 1e-6f);
    CHECK(std::abs(host.z + 1) < 1e-6f);
    CHECK(std::abs(determinant(u) * determinant(v) - 1) < 1e-6f);
  });
}

TEST_CASE("decompositions in serial code, branches, loops and functions, and for tasks behind") {
  on_every_device([](qn::Device& device) {
    const mat3 mirror(0, 2, 0, 3, 0, 0, 0, 0, 1);  // singular values 3, 2, 1
    qn::Field<vec3> out{device, {6}};
    qn::Func stretched = [](Mat3 a, F32 by) { return svd(a * by).s + inverse(a)(2, 2); };
    qn::Kernel k = [&](Mat3 a) {
      Val<vec3> serial = svd(a).s;  // used by both tasks
      out[0] = serial;
      for (auto i : range(1)) {
        Var<vec3> sum = serial;
        for (auto n : range(1, 3)) {
          If(n == 2) { sum += svd(a * cast<float>(n)).s; }
          sum += svd(a).s;  // of all rounds
        }
        out[i + 1] = sum;
        out[i + 2] = stretched(a, 2.0f) + stretched(a, 4.0f);
      }
      for (auto i : range(1)) {
        out[i + 3] = serial + polar(a).s * vec3(1, 1, 1);
        out[i + 4] = sym_eig(a * transpose(a)).values;
        out[i + 5] = solve(a, vec3(2, 3, 4));
      }
    };
    k(mirror);
    const vec3 wanted[] = {{3, 2, 1}, {15, 10, 5}, {20, 14, 8}, {6, 4, 2}, {1, 4, 9}, {1, 1, 4}};
    for (int i = 0; i < 6; i++)
      for (int c = 0; c < 3; c++) {
        INFO(i << " " << c);
        CHECK(std::abs(out.at(i)[c] - wanted[i][c]) < 1e-5f);
      }
  });
}
