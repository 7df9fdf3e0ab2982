// Derivatives of complex functions and of quaternions' where their code chooses between formulas.
#include <quern/autodiff.h>
#include <quern/complex.h>
#include <quern/quaternion.h>

#include <cmath>
#include <complex>
#include <functional>
#include <vector>

#include "tests/autodiff/numbers.h"
#include "tests/end_to_end/devices.h"

using namespace qn::lang;

namespace {

using C = std::complex<double>;

/// The function has the derivative `slope` at these places, forward and back: that of re and im by re
/// and im are the parts of it (Cauchy and Riemann).
template <class F>
void expect_slopes(F f, const std::function<C(C)>& slope, const std::vector<C>& places) {
  on_every_device([&](const qn::Device& device) {
    qn::Field<double> there{device, {1}};
    qn::Kernel k = [&](F64 x, F64 y) -> Val<dvec2> {
      auto z = f(complex(x + there[0], y));
      return vec(z.re, z.im);
    };
    auto forward = qn::jacobian(k);
    auto back = qn::vjp(k);
    for (const C& z : places) {
      INFO(z.real() << " + " << z.imag() << " i");
      const C expected = slope(z);
      const auto same = [&](double v, double to) {
        CHECK(std::abs(v - to) <= 1e-12 * std::max(std::abs(expected), 1e-200));
      };
      const auto j = forward(z.real(), z.imag());
      const auto of_re = back(z.real(), z.imag())(dvec2(1, 0));
      const auto of_im = back(z.real(), z.imag())(dvec2(0, 1));
      same(j(0, 0), expected.real());
      same(j(0, 1), -expected.imag());
      same(j(1, 0), expected.imag());
      same(j(1, 1), expected.real());
      same(of_re.template get<0>(), expected.real());
      same(of_re.template get<1>(), -expected.imag());
      same(of_im.template get<0>(), expected.imag());
      same(of_im.template get<1>(), expected.real());
    }
  });
}

const std::vector<C> diagonals = {{1, 1}, {0.75, -0.75}, {-0.5, 0.5}, {-2, -2}, {1e-8, 1e-8}};
const std::vector<C> real_axis = {{1, 0}, {-0.625, 0}, {0, 0}};

}  // namespace

TEST_CASE("exp of real numbers varies with the imaginary part") {
  expect_slopes([](auto z) { return exp(z); }, [](C z) { return std::exp(z); }, real_axis);
  expect_slopes([](auto z) { return exp(z * z); }, [](C z) { return 2.0 * z * std::exp(z * z); },
                {{1, 0}, {0, 0.5}, {0.5, 0.25}});
}

TEST_CASE("log and atanh vary with both parts where these are alike, or 1") {
  expect_slopes([](auto z) { return log(z); }, [](C z) { return 1.0 / z; }, diagonals);
  expect_slopes([](auto z) { return atanh(z); }, [](C z) { return 1.0 / (1.0 - z * z); },
                {{1, 1}, {-1, 1}, {1, -0.25}, {-1, -3}, {0, 0}, {0.5, 0}});
  expect_slopes([](auto z) { return atan(z); }, [](C z) { return 1.0 / (1.0 + z * z); },
                {{1, 1}, {-0.5, 1}, {2, -1}, {0, 0}});
}

TEST_CASE("powers of complex numbers, of 0 too") {
  for (const double p : {1.0, 2.0, 3.0})
    expect_slopes([=](auto z) { return pow(z, p); },
                  [=](C z) { return p == 1      ? C(1)
                                    : z == C(0) ? C(0)
                                                : p * std::pow(z, p - 1); },
                  {{0, 0}, {0.5, 0}, {1, 1}, {-2, 2}});
}

TEST_CASE("powers of complex numbers vary with the exponent, at 0 too") {
  expect_slopes([](auto p) { return pow(complex(2.0, 1.0), p); },
                [](C p) { return std::log(C(2, 1)) * std::pow(C(2, 1), p); },
                {{0, 0}, {1, 0}, {0.5, -0.5}});
}

TEST_CASE("tanh and tan vary no more where they are 1") {
  const auto none = [](C) { return C(0); };
  expect_slopes([](auto z) { return tanh(z); }, none, {{400, 1}, {-400, 1}, {800, 1}});
  expect_slopes([](auto z) { return tan(z); }, none, {{1, 400}, {1, -400}});
}

namespace {

/// d f / d v at 0 of a quaternion that three numbers v decide on, forward and back.
template <class F>
void expect_at_zero(F f, const double (&expected)[4][3]) {
  on_every_device([&](const qn::Device& device) {
    qn::Field<double> there{device, {1}};
    qn::Kernel k = [&](F64 x, F64 y, F64 z) -> Val<dvec4> {
      auto q = f(x + there[0], y, z);
      return vec(q.x, q.y, q.z, q.w);
    };
    const auto j = qn::jacobian(k)(0.0, 0.0, 0.0);
    for (int r = 0; r < 4; r++) {
      dvec4 seed(0, 0, 0, 0);
      seed[r] = 1;
      const auto back = qn::vjp(k)(0.0, 0.0, 0.0)(seed);
      const double got[] = {back.template get<0>(), back.template get<1>(), back.template get<2>()};
      for (int c = 0; c < 3; c++) {
        INFO("part " << r << " by " << c);
        CHECK(j(r, c) == Approx(expected[r][c]).margin(1e-14));
        CHECK(got[c] == Approx(expected[r][c]).margin(1e-14));
      }
    }
  });
}

}  // namespace

TEST_CASE("the logarithm of a turn varies with it where that is none") {
  const double as_it[4][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {0, 0, 0}};
  expect_at_zero([](F64 x, F64 y, F64 z) { return log(exp(quaternion(x, y, z, 0.0))); }, as_it);
  const double half[4][3] = {{0.5, 0, 0}, {0, 0.5, 0}, {0, 0, 0.5}, {0, 0, 0}};
  expect_at_zero([](F64 x, F64 y, F64 z) { return log(quaternion(x, y, z, 2.0)); }, half);
}

TEST_CASE("the quaternion of a rotation matrix varies with it where two parts are the largest") {
  // Turned by 2 v first, q0 becomes exp(v) q0: its parts vary as v q0 does.
  const double h = std::sqrt(0.5);
  struct Turn {
    double x, y, z, w, m[3][3];
  };
  const Turn turns[] = {
      {h, 0, 0, h, {{1, 0, 0}, {0, 0, -1}, {0, 1, 0}}},         // by 90 degrees about x
      {0, 0, h, h, {{0, -1, 0}, {1, 0, 0}, {0, 0, 1}}},         // about z
      {0.5, 0.5, 0.5, 0.5, {{0, 0, 1}, {1, 0, 0}, {0, 1, 0}}},  // 120 about (1, 1, 1)
      {0, h, h, 0, {{-1, 0, 0}, {0, 0, 1}, {0, 1, 0}}}};        // 180 about (0, 1, 1)
  for (const Turn& t : turns) {
    INFO(t.x << " " << t.y << " " << t.z << " " << t.w);
    // v q0 = (w v + v × u, -v · u), with u the parts i, j, k of q0
    const double expected[4][3] = {
        {t.w, t.z, -t.y}, {-t.z, t.w, t.x}, {t.y, -t.x, t.w}, {-t.x, -t.y, -t.z}};
    expect_at_zero(
        [&](F64 x, F64 y, F64 z) {
          Var<dmat3> m;
          for (int r = 0; r < 3; r++)
            for (int c = 0; c < 3; c++) m(r, c) = t.m[r][c];
          return quaternion(rotation_matrix(exp(quaternion(x, y, z, 0.0))) * m);
        },
        expected);
  }
}
