// Sums over iterations that the compiler computes from sums of products (factor_sums), whose
// coefficients all iterations share.
#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "tests/end_to_end/devices.h"

using namespace qn::lang;

namespace {

const qn::Options fast = {.checked = false};
constexpr int parts = 4, width = 3;

/// A random expression of elements that are the iteration's own and of some that all share. Linear: the
/// sum of three products of one by the other.
struct Expression {
  enum Kind { own, shared, linear, sum, difference, product, negative } kind = own;
  int which = 0;
  std::vector<Expression> of = {};
};

Expression random_expression(std::mt19937& bits, int depth) {
  constexpr Expression::Kind inner[] = {Expression::sum,        Expression::sum,
                                        Expression::difference, Expression::product,
                                        Expression::product,    Expression::negative};
  const bool is_leaf = depth == 0 || bits() % 8 == 0;
  Expression e{is_leaf ? Expression::Kind(bits() % 3) : inner[bits() % 6], int(bits() % width), {}};
  const int count = is_leaf ? 0 : e.kind == Expression::negative ? 1 : 2;
  for (int k = 0; k < count; k++) e.of.push_back(random_expression(bits, depth - 1));
  return e;
}

/// With the language's numbers or the host's: `own(j)` and `shared(j)` are elements.
template <class T, class Own, class Shared, class Linear>
T value_of(const Expression& e, const Own& own, const Shared& shared, const Linear& linear) {
  const auto part = [&](size_t k) { return value_of<T>(e.of[k], own, shared, linear); };
  switch (e.kind) {
    case Expression::own: return own(e.which);
    case Expression::shared: return shared(e.which);
    case Expression::linear: return linear();
    case Expression::sum: return part(0) + part(1);
    case Expression::difference: return part(0) - part(1);
    case Expression::product: return part(0) * part(1);
    case Expression::negative: return -part(0);
  }
  return own(0);
}

std::vector<double> small_integers(std::mt19937& bits, size_t count) {
  std::vector<double> all(count);
  for (double& v : all) v = double(bits() % 3) - 1;
  return all;
}

void expect_near(const std::vector<double>& found, const std::vector<long double>& wanted,
                 double most) {
  long double largest = 0, off = 0;
  for (size_t k = 0; k < wanted.size(); k++) {
    largest = std::max(largest, std::abs(wanted[k]));
    off = std::max(off, std::abs(found[k] - wanted[k]));
  }
  CHECK(double(off / largest) < most);
}

}  // namespace

TEST_CASE("sums of random expressions are exact where all numbers are small integers") {
  constexpr int most = 300, places = parts * width * width;
  std::mt19937 bits(20);
  for (int program = 0; program < 40; program++) {
    const Expression one = random_expression(bits, 4);
    const Expression other = {
        Expression::product, 0, {{Expression::linear}, random_expression(bits, 1)}};
    const std::vector<double> own = small_integers(bits, most * width),
                              shared = small_integers(bits, places),
                              start = small_integers(bits, places);
    on_every_device([&](qn::Device& device) {
      qn::Field<double, 2> x{device, {most, width}}, c{device, {parts, width * width}},
          to{device, {parts, width * width}}, square{device, {parts, width * width}};
      x.copy_from(own.data(), int64_t(own.size()));
      c.copy_from(shared.data(), int64_t(shared.size()));
      qn::Kernel all{[=](I32 n) {
                       for (auto i : range(n)) {
                         for (auto k : range(parts)) {
                           for (auto r : range(width)) {
                             const auto x_of = [&](int j) { return F64(x(i, j)); };
                             const auto c_of = [&](int j) { return F64(c(k, r * width + j)); };
                             const auto linear = [&] {
                               Var<double> t = 0;
                               for (auto _ : reassociate())
                                 for (auto j : range(width)) t += c(k, r * width + j) * x(i, j);
                               return F64(t);
                             };
                             to(k, r) += value_of<F64>(one, x_of, c_of, linear);
                             F64 v = value_of<F64>(other, x_of, c_of, linear);
                             for (auto j : range(r + 1)) square(k, r * width + j) += v * x(i, j);
                           }
                         }
                       }
                     },
                     fast};
      for (int n : {0, 1, most}) {
        std::vector<double> wanted = start, wanted_square = start;
        for (int i = 0; i < n; i++)
          for (int k = 0; k < parts; k++)
            for (int r = 0; r < width; r++) {
              const double* xs = own.data() + i * width;
              const double* row = shared.data() + (k * width + r) * width;
              const auto value = [&](const Expression& e) {
                return value_of<double>(
                    e, [&](int j) { return xs[j]; }, [&](int j) { return row[j]; },
                    [&] { return row[0] * xs[0] + row[1] * xs[1] + row[2] * xs[2]; });
              };
              wanted[size_t(k * width * width + r)] += value(one);
              for (int j = 0; j <= r; j++)
                wanted_square[size_t((k * width + r) * width + j)] += value(other) * xs[j];
            }
        to.copy_from(start.data(), places);
        square.copy_from(start.data(), places);
        all(n);
        INFO("program " << program << ", " << n << " iterations");
        CHECK(qn::to_vector(to) == wanted);
        CHECK(qn::to_vector(square) == wanted_square);
      }
    });
  }
}

TEST_CASE("sums that nearly cancel in each iteration keep their digits") {
  // All rows of W are nearly (1, …, 1), and coordinates add up to nearly 0: so the products
  // W x are small, and of Σ (W x) xᵀ from Σ x xᵀ few digits would be left.
  constexpr int n = 20000, d = 4;
  std::mt19937_64 bits(5);
  const auto even = [&] { return double(bits() >> 11) * 0x1p-53; };
  std::vector<double> points(n * d), matrix(2 * d * d);
  for (int p = 0; p < n; p++) {
    double sum = 0;
    for (int j = 0; j + 1 < d; j++) sum += points[size_t(p * d + j)] = even();
    points[size_t(p * d + d - 1)] = 1e-9 * even() - sum;
  }
  for (double& v : matrix) v = 1 + 1e-10 * even();
  std::vector<long double> wanted(2 * d * d);
  for (int p = 0; p < n; p++)
    for (int k = 0; k < 2; k++)
      for (int r = 0; r < d; r++) {
        const auto x = [&](int j) { return (long double)points[size_t(p * d + j)]; };
        long double t = 0;
        for (int j = 0; j < d; j++) t += matrix[size_t((k * d + r) * d + j)] * x(j);
        for (int j = 0; j < d; j++) wanted[size_t((k * d + r) * d + j)] += t * x(j);
      }
  on_every_device([&](qn::Device& device) {
    qn::Field<double, 2> x{device, {n, d}};
    qn::Field<double, 3> w{device, {2, d, d}}, of_w{device, {2, d, d}};
    x.copy_from(points.data(), n * d);
    w.copy_from(matrix.data(), 2 * d * d);
    of_w.fill(0);
    qn::Kernel all{[=] {
                     for (auto p : range(n))
                       for (auto k : range(2))
                         for (auto r : range(d)) {
                           Var<double> t = 0;
                           for (auto j : range(d)) t += w(k, r, j) * x(p, j);
                           for (auto j : range(d)) of_w(k, r, j) += t * x(p, j);
                         }
                   },
                   fast};
    all();
    expect_near(qn::to_vector(of_w), wanted, 3e-8);
  });
}

TEST_CASE("sums of products keep the digits of differences") {
  // Points close to a mean that lies far from 0: with products of coordinates no digit would be left.
  constexpr int n = 2000, d = 4;
  const double far = 1e8;
  std::mt19937_64 bits(3);
  const auto even = [&] { return double(bits() >> 11) * 0x1p-53; };
  std::vector<double> points(n * d), mean(2 * d), matrix(2 * d * d);
  for (double& v : points) v = far + even();
  for (double& v : mean) v = far + even();
  for (double& v : matrix) v = even() - 0.5;
  std::vector<long double> of_mean(2 * d), of_matrix(2 * d * d);
  for (int p = 0; p < n; p++)
    for (int k = 0; k < 2; k++)
      for (int r = 0; r < d; r++) {
        long double t = 0;
        for (int j = 0; j < d; j++)
          t += (long double)matrix[size_t((k * d + r) * d + j)] *
               ((long double)points[size_t(p * d + j)] - mean[size_t(k * d + j)]);
        for (int j = 0; j < d; j++) {
          of_matrix[size_t((k * d + r) * d + j)] +=
              t * ((long double)points[size_t(p * d + j)] - mean[size_t(k * d + j)]);
          of_mean[size_t(k * d + j)] -= t * (long double)matrix[size_t((k * d + r) * d + j)];
        }
      }
  on_every_device([&](qn::Device& device) {
    qn::Field<double, 2> x{device, {n, d}}, mu{device, {2, d}}, of_mu{device, {2, d}};
    qn::Field<double, 3> l{device, {2, d, d}}, of_l{device, {2, d, d}};
    x.copy_from(points.data(), n * d);
    mu.copy_from(mean.data(), 2 * d);
    l.copy_from(matrix.data(), 2 * d * d);
    of_mu.fill(0);
    of_l.fill(0);
    qn::Kernel all{[=] {
                     for (auto p : range(n))
                       for (auto k : range(2))
                         for (auto r : range(d)) {
                           Var<double> t = 0;
                           for (auto _ : reassociate())
                             for (auto j : range(d)) t += l(k, r, j) * (x(p, j) - mu(k, j));
                           for (auto j : range(d)) {
                             of_l(k, r, j) += t * (x(p, j) - mu(k, j));
                             of_mu(k, j) -= t * l(k, r, j);
                           }
                         }
                   },
                   fast};
    all();
    expect_near(qn::to_vector(of_l), of_matrix, 1e-13);
    expect_near(qn::to_vector(of_mu), of_mean, 1e-13);
  });
}
