// Derivatives of decompositions, inverses and solutions of systems, against identities that the
// derivatives of what they decompose or solve have, and against differences.
#include <quern/autodiff.h>
#include <quern/decompose.h>
#include <quern/else.h>
#include <quern/matrix.h>
#include <quern/sample.h>

#include <cmath>
#include <random>

#include "tests/autodiff/numbers.h"
#include "tests/end_to_end/devices.h"

using namespace qn::lang;
using qn::Mat;
using qn::Vec;

namespace {

template <class T, int R, int C>
double component(const Mat<T, R, C>& m, int k) {
  return double(m(k / C, k % C));
}
template <class T, int N>
double component(const Vec<T, N>& v, int k) {
  return double(v[k]);
}
template <class T, int R, int C>
void set_component(Mat<T, R, C>& m, int k, double v) {
  m(k / C, k % C) = T(v);
}
template <class T, int N>
void set_component(Vec<T, N>& w, int k, double v) {
  w[k] = T(v);
}
template <class E>
inline constexpr int components = 0;
template <class T, int R, int C>
inline constexpr int components<Mat<T, R, C>> = R * C;
template <class T, int N>
inline constexpr int components<Vec<T, N>> = N;

template <class E>
E drawn(std::mt19937& random) {
  std::normal_distribution<double> normal;
  E e;
  for (int k = 0; k < components<E>; k++) set_component(e, k, normal(random));
  return e;
}
template <class E>
double product(const E& a, const E& b) {
  double sum = 0;
  for (int k = 0; k < components<E>; k++) sum += component(a, k) * component(b, k);
  return sum;
}
/// The largest component.
template <class E>
double size(const E& e) {
  double most = 0;
  for (int k = 0; k < components<E>; k++) {
    const double v = std::fabs(component(e, k));
    if (!(v <= most)) most = v;  // NaN, too
  }
  return most;
}
template <class E>
bool is_finite(const E& e) {
  for (int k = 0; k < components<E>; k++)
    if (!std::isfinite(component(e, k))) return false;
  return true;
}

template <class T, int N>
Mat<T, N, N> diagonal_of(const Vec<T, N>& s) {
  Mat<T, N, N> m;
  for (int k = 0; k < N; k++) m(k, k) = s[k];
  return m;
}
template <class T, int N>
Mat<T, N, N> identity() {
  Mat<T, N, N> m;
  for (int k = 0; k < N; k++) m(k, k) = T(1);
  return m;
}
template <class T, int N>
Mat<T, N, N> symmetric(const Mat<T, N, N>& m) {
  Mat<T, N, N> out = m;
  for (int r = 0; r < N; r++)
    for (int c = 0; c < r; c++) out(r, c) = m(c, r);
  return out;
}

/// Matrices without, and with, equal singular values or ranks below the full one.
template <class T, int N>
std::vector<Mat<T, N, N>> regular() {
  std::mt19937 random(7);
  std::vector<Mat<T, N, N>> all;
  for (int k = 0; k < 20; k++) all.push_back(drawn<Mat<T, N, N>>(random));
  return all;
}
/// Rotations and reflections, of any size.
template <class T, int N>
std::vector<Mat<T, N, N>> isometries() {
  std::vector<Mat<T, N, N>> all = {identity<T, N>(), T(-2) * identity<T, N>()};
  for (const auto& m : regular<T, N>()) all.push_back(qn::polar(m).r);
  Mat<T, N, N> mirror = identity<T, N>();
  mirror(0, 0) = T(-1);
  all.push_back(mirror);
  return all;
}
template <class T, int N>
std::vector<Mat<T, N, N>> singular() {
  std::mt19937 random(9);
  const auto a = drawn<Vec<T, N>>(random), b = drawn<Vec<T, N>>(random);
  Mat<T, N, N> corner;
  corner(0, 0) = T(1);
  return {Mat<T, N, N>{}, corner, qn::outer(a, b), T(1e-30) * identity<T, N>()};
}
template <class M>
std::vector<M> joined(std::initializer_list<std::vector<M>> parts) {
  std::vector<M> all;
  for (const auto& p : parts) all.insert(all.end(), p.begin(), p.end());
  return all;
}

template <class T>
constexpr double rounding = sizeof(T) == 4 ? 1.2e-7 : 2.3e-16;

template <class E>
qn::Field<E> field_of(const qn::Device& device, const std::vector<E>& v) {
  qn::Field<E> x{device, {v.size()}};
  x.copy_from(v);
  return x;
}
template <class E>
std::vector<E> read(const qn::Field<E>& x) {
  std::vector<E> v(size_t(x.size()));
  x.copy_to(v);
  return v;
}
template <class F>
auto draw(const F& x, std::mt19937& random) {
  auto v = read(x);
  for (auto& e : v) e = drawn<std::decay_t<decltype(e)>>(random);
  x.copy_from(v);
  return v;
}

/// Σ over the elements of a field of <a, b>, and the sum of the terms' sizes.
struct Product {
  double sum = 0, terms = 0;
  template <class E>
  void add(const std::vector<E>& a, const std::vector<E>& b) {
    for (size_t k = 0; k < a.size(); k++) {
      sum += product(a[k], b[k]);
      terms += std::fabs(product(a[k], b[k]));
    }
  }
};

/// <J v, w> = <v, Jᵀ w>, J the derivative of the kernel from field(s) to fields.
template <class K, class... In, class... Out>
void check_transposed(double tolerance, const K& kernel, std::tuple<In...> in,
                      std::tuple<Out...> out) {
  std::mt19937 random(21);
  const auto along =
      std::apply([&](const auto&... x) { return std::make_tuple(draw(x.dual(), random)...); }, in);
  qn::jvp(kernel)();
  const auto pushed =
      std::apply([&](const auto&... y) { return std::make_tuple(read(y.dual())...); }, out);
  const auto seeds =
      std::apply([&](const auto&... y) { return std::make_tuple(draw(y.grad(), random)...); }, out);
  std::apply([&](const auto&... x) { (x.grad().fill({}), ...); }, in);
  qn::vjp(kernel)()();
  const auto pulled =
      std::apply([&](const auto&... x) { return std::make_tuple(read(x.grad())...); }, in);
  Product there, back;
  [&]<size_t... K2>(std::index_sequence<K2...>) {
    (there.add(std::get<K2>(pushed), std::get<K2>(seeds)), ...);
  }(std::index_sequence_for<Out...>{});
  [&]<size_t... K2>(std::index_sequence<K2...>) {
    (back.add(std::get<K2>(along), std::get<K2>(pulled)), ...);
  }(std::index_sequence_for<In...>{});
  CHECK(std::isfinite(there.sum));
  CHECK(std::fabs(there.sum - back.sum) <= tolerance * (there.terms + back.terms + 1));
}

/// Calls body.operator()<T, N>() for f32 and f64, 2×2 and 3×3.
template <class F>
void for_decomposed(F body) {
  body.template operator()<float, 2>();
  body.template operator()<float, 3>();
  body.template operator()<double, 2>();
  body.template operator()<double, 3>();
}

}  // namespace

TEST_CASE("derivatives of singular values and vectors") {
  on_every_device([](const qn::Device& device) {
    for_decomposed([&]<class T, int N>() {
      using M = Mat<T, N, N>;
      auto a = field_of(device, regular<T, N>());
      const size_t n = size_t(a.size());
      qn::Field<M> u{device, {n}}, v{device, {n}};
      qn::Field<Vec<T, N>> s{device, {n}};
      qn::Kernel f = [&] {
        for (auto i : a) {
          auto [left, values, right] = svd(a[i]);
          u[i] = left;
          s[i] = values;
          v[i] = right;
        }
      };
      std::mt19937 random(3);
      const std::vector<M> da = draw(a.dual(), random);
      qn::jvp(f)();
      for (size_t k = 0; k < n; k++) {
        const M left = u.at(int(k)), right = v.at(int(k)), du = u.dual().at(int(k)),
                dv = v.dual().at(int(k));
        const M sigma = diagonal_of(s.at(int(k))), ds = diagonal_of(s.dual().at(int(k)));
        const M again = du * sigma * transpose(right) + left * ds * transpose(right) +
                        left * sigma * transpose(dv);
        const double scale = 1 + size(du) + size(dv);
        CHECK(size(again - da[k]) <= 60 * rounding<T> * scale * (1 + size(sigma)));
        const M of_u = transpose(left) * du, of_v = transpose(right) * dv;
        CHECK(size(of_u + transpose(of_u)) <= 60 * rounding<T> * scale);
        CHECK(size(of_v + transpose(of_v)) <= 60 * rounding<T> * scale);
      }
      check_transposed(sizeof(T) == 4 ? 2e-5 : 1e-13, f, std::tuple(a), std::tuple(u, s, v));
    });
  });
}

TEST_CASE("what is smooth in a matrix with equal singular values has its derivative by svd") {
  on_every_device([](const qn::Device& device) {
    for_decomposed([&]<class T, int N>() {
      using M = Mat<T, N, N>;
      auto a = field_of(device, isometries<T, N>());
      const size_t n = size_t(a.size());
      qn::Field<M> r{device, {n}};
      qn::Field<T> volume{device, {n}};
      qn::Kernel f = [&] {
        for (auto i : a) {
          auto [u, s, v] = svd(a[i]);
          r[i] = u * transpose(v);
          Var<T> all = s[0] * s[1];
          if constexpr (N == 3) all *= s[2];
          volume[i] = all;
        }
      };
      std::mt19937 random(4);
      const std::vector<M> da = draw(a.dual(), random);
      const std::vector<M> at = read(a);
      qn::jvp(f)();
      for (size_t k = 0; k < n; k++) {
        // a = c·q with orthogonal q: ṙ is the part of ȧ / c along rotations of q.
        const M q = r.at(int(k));
        const T c = at[k](0, 0) == T(-2) ? T(2) : T(1);
        const M expected = T(0.5) / c * (da[k] - q * transpose(da[k]) * q);
        CHECK(size(r.dual().at(int(k)) - expected) <= 100 * rounding<T>);
      }
      // ∂|det a| / ∂a = |det a| · a⁻ᵀ
      volume.grad().fill(T(1));
      r.grad().fill({});
      a.grad().fill({});
      qn::vjp(f)()();
      for (size_t k = 0; k < n; k++) {
        const M expected =
            T(std::fabs(double(qn::determinant(at[k])))) * transpose(qn::inverse(at[k]));
        CHECK(size(a.grad().at(int(k)) - expected) <= 100 * rounding<T>);
      }
    });
  });
}

TEST_CASE("derivatives of polar decompositions") {
  on_every_device([](const qn::Device& device) {
    for_decomposed([&]<class T, int N>() {
      using M = Mat<T, N, N>;
      auto a = field_of(device, joined({regular<T, N>(), isometries<T, N>()}));
      const size_t n = size_t(a.size());
      qn::Field<M> r{device, {n}}, s{device, {n}};
      qn::Kernel f = [&] {
        for (auto i : a) {
          auto [turn, stretch] = polar(a[i]);
          r[i] = turn;
          s[i] = stretch;
        }
      };
      std::mt19937 random(5);
      const std::vector<M> da = draw(a.dual(), random);
      qn::jvp(f)();
      for (size_t k = 0; k < n; k++) {
        const M dr = r.dual().at(int(k)), ds = s.dual().at(int(k));
        const double scale = (1 + size(dr)) * (1 + size(s.at(int(k))));
        CHECK(size(dr * s.at(int(k)) + r.at(int(k)) * ds - da[k]) <= 60 * rounding<T> * scale);
        const M turn = transpose(r.at(int(k))) * dr;
        CHECK(size(turn + transpose(turn)) <= 60 * rounding<T> * scale);
        CHECK(size(ds - transpose(ds)) == 0);
      }
      check_transposed(sizeof(T) == 4 ? 2e-5 : 1e-13, f, std::tuple(a), std::tuple(r, s));
    });
  });
}

TEST_CASE("derivatives of a polar decomposition equal differences") {
  on_every_device([](const qn::Device& device) {
    const auto at = regular<double, 3>();
    auto a = field_of(device, at);
    std::mt19937 random(6);
    const auto w = drawn<dmat3>(random);
    qn::Field<double> y{device, {at.size()}};
    qn::Kernel f = [&] {
      for (auto i : a) {
        const auto r = polar(a[i]).r;
        Var<double> sum = 0;
        for (int k = 0; k < 9; k++) sum += r(k / 3, k % 3) * w(k / 3, k % 3);
        y[i] = sum;
      }
    };
    y.grad().fill(1.0);
    qn::vjp(f)()();
    const double h = 1e-3;
    for (size_t k = 0; k < at.size(); k++) {
      // Where two singular values nearly cancel differences say little.
      const auto values = qn::svd(at[k]).s;
      if (values[1] + values[2] < 0.3) continue;
      for (int e = 0; e < 9; e++) {
        const auto moved = [&](double by) {
          dmat3 m = at[k];
          m(e / 3, e % 3) += by;
          return product(qn::polar(m).r, w);
        };
        const double expected =
            (8 * (moved(h) - moved(-h)) - (moved(2 * h) - moved(-2 * h))) / (12 * h);
        CHECK(a.grad().at(int(k))(e / 3, e % 3) == Approx(expected).epsilon(1e-6).margin(1e-6));
      }
    }
  });
}

TEST_CASE("derivatives of decompositions of singular matrices are finite") {
  on_every_device([](const qn::Device& device) {
    for_decomposed([&]<class T, int N>() {
      using M = Mat<T, N, N>;
      auto a = field_of(device, singular<T, N>());
      const size_t n = size_t(a.size());
      qn::Field<M> u{device, {n}}, v{device, {n}}, r{device, {n}}, s{device, {n}}, e{device, {n}};
      qn::Field<Vec<T, N>> values{device, {n}}, l{device, {n}};
      qn::Kernel f = [&] {
        for (auto i : a) {
          auto [left, all, right] = svd(a[i]);
          u[i] = left;
          values[i] = all;
          v[i] = right;
          auto [turn, stretch] = polar(a[i]);
          r[i] = turn;
          s[i] = stretch;
          auto [eigenvalues, vectors] = sym_eig(a[i] * transpose(a[i]));
          l[i] = eigenvalues;
          e[i] = vectors;
        }
      };
      // Of 1e-30 · 1 a turn is 1e30 times what moves it.
      std::mt19937 random(8);
      draw(a.dual(), random);
      qn::jvp(f)();
      draw(u.grad(), random), draw(v.grad(), random), draw(values.grad(), random);
      draw(r.grad(), random), draw(s.grad(), random), draw(e.grad(), random);
      draw(l.grad(), random);
      qn::vjp(f)()();
      for (int k = 0; k < int(n); k++) {
        CHECK(is_finite(u.dual().at(k)));
        CHECK(is_finite(v.dual().at(k)));
        CHECK(is_finite(values.dual().at(k)));
        CHECK(is_finite(r.dual().at(k)));
        CHECK(is_finite(s.dual().at(k)));
        CHECK(is_finite(l.dual().at(k)));
        CHECK(is_finite(e.dual().at(k)));
        CHECK(is_finite(a.grad().at(k)));
      }
    });
  });
}

TEST_CASE("derivatives of eigenvalues and eigenvectors") {
  on_every_device([](const qn::Device& device) {
    for_decomposed([&]<class T, int N>() {
      using M = Mat<T, N, N>;
      auto a = field_of(device, regular<T, N>());
      const size_t n = size_t(a.size());
      qn::Field<M> v{device, {n}};
      qn::Field<Vec<T, N>> l{device, {n}};
      qn::Kernel f = [&] {
        for (auto i : a) {
          auto [values, vectors] = sym_eig(a[i]);
          l[i] = values;
          v[i] = vectors;
        }
      };
      std::mt19937 random(10);
      const std::vector<M> da = draw(a.dual(), random);
      qn::jvp(f)();
      for (size_t k = 0; k < n; k++) {
        const M at = symmetric(a.at(int(k))), along = symmetric(da[k]);
        const M vectors = v.at(int(k)), dv = v.dual().at(int(k));
        const M values = diagonal_of(l.at(int(k))), dl = diagonal_of(l.dual().at(int(k)));
        const double scale = (1 + size(dv)) * (1 + size(at));
        CHECK(size(along * vectors + at * dv - dv * values - vectors * dl) <=
              60 * rounding<T> * scale);
        const M turn = transpose(vectors) * dv;
        CHECK(size(turn + transpose(turn)) <= 60 * rounding<T> * scale);
      }
      // Their sum is the trace, also where they are equal; below the diagonal nothing is read.
      auto at = regular<T, N>();
      at.push_back(identity<T, N>());
      at.push_back(M{});
      auto b = field_of(device, at);
      qn::Field<T> trace_of{device, {at.size()}};
      qn::Kernel g = [&] {
        for (auto i : b) {
          const auto values = sym_eig(b[i]).values;
          Var<T> all = values[0] + values[1];
          if constexpr (N == 3) all += values[2];
          trace_of[i] = all;
        }
      };
      trace_of.grad().fill(T(1));
      qn::vjp(g)()();
      for (int k = 0; k < int(at.size()); k++)
        CHECK(size(b.grad().at(k) - identity<T, N>()) <= 20 * rounding<T>);
      check_transposed(sizeof(T) == 4 ? 2e-5 : 1e-13, f, std::tuple(a), std::tuple(l, v));
    });
  });
}

namespace {
template <class T, int N>
void check_linear(const qn::Device& device) {
  using M = Mat<T, N, N>;
  using B = Mat<T, N, 2>;
  std::mt19937 random(11);
  std::vector<M> at;
  for (int k = 0; k < 8; k++) at.push_back(drawn<M>(random) + T(3) * identity<T, N>());
  auto a = field_of(device, at);
  const size_t n = at.size();
  qn::Field<M> inverted{device, {n}};
  qn::Field<Vec<T, N>> b{device, {n}}, x{device, {n}};
  qn::Field<B> c{device, {n}}, y{device, {n}};
  draw(b, random);
  draw(c, random);
  qn::Kernel f = [&] {
    for (auto i : a) {
      inverted[i] = inverse(a[i]);
      x[i] = solve(a[i], b[i]);
      y[i] = solve(a[i], c[i]);
    }
  };
  const auto da = draw(a.dual(), random);
  const auto db = draw(b.dual(), random);
  const auto dc = draw(c.dual(), random);
  qn::jvp(f)();
  for (int k = 0; k < int(n); k++) {
    const M m = at[size_t(k)], dm = da[size_t(k)];
    const double scale =
        1 + size(inverted.dual().at(k)) * size(m) + size(x.dual().at(k)) + size(y.dual().at(k));
    CHECK(size(dm * inverted.at(k) + m * inverted.dual().at(k)) <= 100 * rounding<T> * scale);
    CHECK(size(dm * x.at(k) + m * x.dual().at(k) - db[size_t(k)]) <=
          100 * rounding<T> * scale * size(m));
    CHECK(size(dm * y.at(k) + m * y.dual().at(k) - dc[size_t(k)]) <=
          100 * rounding<T> * scale * size(m));
  }
  check_transposed(sizeof(T) == 4 ? 2e-5 : 1e-13, f, std::tuple(a, b, c),
                   std::tuple(inverted, x, y));
}
}  // namespace

TEST_CASE("derivatives of inverses and solutions of systems") {
  on_every_device([](const qn::Device& device) {
    check_linear<float, 2>(device);
    check_linear<float, 3>(device);
    check_linear<float, 4>(device);
    check_linear<double, 2>(device);
    check_linear<double, 3>(device);
    check_linear<double, 4>(device);
  });
}

TEST_CASE("derivatives of the inverse of a matrix of halves") {
  on_every_device([](const qn::Device& device) {
    using H = Mat<qn::half, 2, 2>;
    qn::Field<H> a{device, {1}}, b{device, {1}};
    a.set(0, H(qn::half(2.0f), qn::half(0.0f), qn::half(0.0f), qn::half(4.0f)));
    qn::Kernel f = [&] {
      for (auto i : a) b[i] = inverse(a[i]);
    };
    b.grad().set(0, mat2(1, 2, 3, 4));
    qn::vjp(f)()();
    // -a⁻ᵀ b̄ a⁻ᵀ with a⁻¹ = diag(1/2, 1/4), in f32
    CHECK(a.grad().at(0) == mat2(-0.25f, -0.25f, -0.375f, -0.25f));
    a.dual().set(0, mat2(1, 2, 3, 4));
    qn::jvp(f)();
    CHECK(b.dual().at(0) == mat2(-0.25f, -0.25f, -0.375f, -0.25f));
  });
}

TEST_CASE("rules within branches and loops, and of what varies in part") {
  on_every_device([](const qn::Device& device) {
    // Newton's method in two unknowns: x² + y² = p, x·y = 1, whose solution moves as the equations
    // say, and a matrix of the host's that does not vary.
    auto p = numbers(device, {4.25, 2.5, 10.1});
    qn::Field<dvec2> root{device, {3}}, twice{device, {3}};
    const dmat2 fixed(2, 1, 1, 3);
    qn::Kernel f = [&] {
      for (auto i : p) {
        Var<dvec2> x = dvec2(2.5, 0.6);
        Var<int> rounds = 0;
        While(rounds < 30) {
          DVec2 r(x.x * x.x + x.y * x.y - p[i], x.x * x.y - 1.0);
          DMat2 slope(2.0 * x.x, 2.0 * x.y, x.y, x.x);
          x -= solve(slope, r);
          rounds += 1;
        }
        root[i] = x;
        If(p[i] > 3.0) { twice[i] = inverse(fixed) * solve(fixed, x); }
      }
    };
    root.grad().fill(dvec2(1, 0));
    twice.grad().fill(dvec2(0, 2));
    qn::vjp(f)()();
    const double at[] = {4.25, 2.5, 10.1};
    for (int k = 0; k < 3; k++) {
      const dvec2 x = root.at(k);
      CHECK(x.x * x.x + x.y * x.y == Approx(at[k]).epsilon(1e-14));
      // (2x, 2y; y, x) dx = (dp, 0)
      const double d = 2 * x.x * x.x - 2 * x.y * x.y;
      const double dx = x.x / d, dy = -x.y / d;
      // fixed⁻² = ((3, -1), (-1, 2))² / 25 = ((10, -5), (-5, 5)) / 25
      const double more = at[k] > 3 ? 2 * (-5 * dx + 5 * dy) / 25 : 0;
      CHECK(p.grad().at(k) == Approx(dx + more).epsilon(1e-12));
    }
  });
}

TEST_CASE(
    "rules have derivatives: second ones of what is made of polar decompositions and inverses") {
  const qn::Device device("cpu");
  // The sum of the singular values of ((a, b), (c, d)) is √((a + d)² + (b - c)²) where the
  // determinant is positive.
  qn::Kernel by_polar = [](F64 a, F64 b, F64 c, F64 d) -> F64 {
    return trace(polar(DMat2(a, b, c, d)).s);
  };
  qn::Kernel by_root = [](F64 a, F64 b, F64 c, F64 d) -> F64 {
    return sqrt((a + d) * (a + d) + (b - c) * (b - c));
  };
  qn::Kernel by_inverse = [](F64 a, F64 b, F64 c, F64 d) -> F64 {
    return inverse(DMat2(a, b, c, d))(0, 1);
  };
  qn::Kernel by_cramer = [](F64 a, F64 b, F64 c, F64 d) -> F64 { return -b / (a * d - b * c); };
  const double at[][4] = {{1, 0, 0, 1}, {2, 0.5, -0.3, 1}, {0.6, -0.8, 0.8, 0.6}};
  for (const auto& p : at) {
    const qn::HostMatrix found = qn::hessian(by_polar)(p[0], p[1], p[2], p[3]),
                         expected = qn::hessian(by_root)(p[0], p[1], p[2], p[3]);
    const qn::HostMatrix of_inverse = qn::hessian(by_inverse)(p[0], p[1], p[2], p[3]),
                         of_cramer = qn::hessian(by_cramer)(p[0], p[1], p[2], p[3]);
    for (int r = 0; r < 4; r++)
      for (int c = 0; c < 4; c++) {
        CHECK(found(r, c) == Approx(expected(r, c)).margin(1e-13));
        CHECK(of_inverse(r, c) == Approx(of_cramer(r, c)).margin(1e-12));
      }
  }
}

TEST_CASE("samples vary with their coordinates, at elements too") {
  on_every_device([](const qn::Device& device) {
    qn::Field<qn::Vec<double, 2>> u{device, {6}};
    for (int i = 0; i < 6; i++) u.set(i, {2.0 * i, 1.0 * i * i});
    u.set(5, {INFINITY, NAN});
    auto x = numbers(device, {3, 3.25, 0, 2});
    qn::Field<qn::Vec<double, 2>> y{device, {4}};
    qn::Kernel f = [&] {
      for (auto i : x) y[i] = sample(u, x[i], border::clamp);
    };
    x.dual().fill(1);
    qn::jvp(f)();
    const double slopes[4][2] = {{2, 7}, {2, 7}, {2, 1}, {2, 5}};  // (i + 1)² - i² = 2i + 1
    for (int k = 0; k < 4; k++)
      for (int c = 0; c < 2; c++) CHECK(y.dual().at(k)[c] == slopes[k][c]);
    y.grad().fill({1, 0.5});
    qn::vjp(f)()();
    for (int k = 0; k < 4; k++) CHECK(x.grad().at(k) == slopes[k][0] + 0.5 * slopes[k][1]);
    CHECK(u.grad().at(3)[0] == 1.75);
    CHECK(u.grad().at(4)[0] == 0.25);
    // At an element beside one that is not finite the sample and its derivative in u are.
    x.copy_from(std::vector<double>{4, 4, 4, 4});
    u.grad().fill({0, 0});
    y.grad().fill({1, 0});
    qn::vjp(f)()();
    CHECK(y.at(0)[1] == 16);
    CHECK(u.grad().at(4)[0] == 4);
  });
}
