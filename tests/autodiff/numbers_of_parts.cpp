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

/// The function has the second derivative `bend` at these places: of re and im each by both parts.
template <class F>
void expect_bends(F f, const std::function<C(C)>& bend, const std::vector<C>& places) {
  on_every_device([&](const qn::Device& device) {
    qn::Field<double> there{device, {1}};
    qn::Kernel re = [&](F64 x, F64 y) -> F64 { return f(complex(x + there[0], y)).re; };
    qn::Kernel im = [&](F64 x, F64 y) -> F64 { return f(complex(x + there[0], y)).im; };
    auto of_re = qn::hessian(re), of_im = qn::hessian(im);
    for (const C& z : places) {
      INFO(z.real() << " + " << z.imag() << " i");
      const C expected = bend(z);
      const auto same = [&](const auto& h, double by_re, double mixed) {
        const double within = 1e-11 * std::max(std::abs(expected), 1e-3);
        CHECK(std::abs(h(0, 0) - by_re) <= within);
        CHECK(std::abs(h(0, 1) - mixed) <= within);
        CHECK(std::abs(h(1, 0) - mixed) <= within);
        CHECK(std::abs(h(1, 1) + by_re) <= within);
      };
      same(of_re(z.real(), z.imag()), expected.real(), -expected.imag());
      same(of_im(z.real(), z.imag()), expected.imag(), expected.real());
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

TEST_CASE("second derivatives of complex functions are theirs where their code chooses, too") {
  const C one(1);
  const auto exp_of = [](C z) { return std::exp(z); };
  expect_bends([](auto z) { return exp(z); }, exp_of, {{0.5, 0}, {-0.5, 0}, {0, 0}, {0.5, 0.25}});
  expect_bends([](auto z) { return exp(z * z); },
               [](C z) { return (2.0 + 4.0 * z * z) * std::exp(z * z); }, {{0.5, 0}, {0, 0.5}});
  expect_bends([](auto z) { return log(z); }, [](C z) { return -1.0 / (z * z); },
               {{1, 1}, {0.75, -0.75}, {-0.5, 0.5}, {1, 0}});
  expect_bends([](auto z) { return sqrt(z); }, [](C z) { return -0.25 / (z * std::sqrt(z)); },
               {{1, 0}, {0.5, 0.5}, {-1, 0.5}});
  const auto atan_of = [=](C z) { return -2.0 * z / std::pow(one + z * z, 2); };
  const auto atanh_of = [=](C z) { return 2.0 * z / std::pow(one - z * z, 2); };
  expect_bends([](auto z) { return atan(z); }, atan_of, {{1, 1}, {-0.5, 1}, {2, -1}, {0.5, 0}});
  expect_bends([](auto z) { return atanh(z); }, atanh_of,
               {{1, 1}, {-1, 0.25}, {1, -3}, {0.5, 0}, {0.25, 0.5}});
  for (const double p : {1.0, 2.0, 3.0})
    expect_bends([=](auto z) { return pow(z, p); },
                 [=](C z) { return p == 1   ? C(0)
                                   : p == 2 ? C(2)
                                            : 6.0 * z; },
                 {{0, 0}, {0.5, 0}, {1, 1}});
  expect_bends([](auto z) { return pow(z, 1.5); }, [](C z) { return 0.75 / std::sqrt(z); },
               {{2, 0}, {1, 0.5}});
  expect_bends([](auto p) { return pow(complex(2.0, 1.0), p); },
               [](C p) { return std::pow(std::log(C(2, 1)), 2) * std::pow(C(2, 1), p); },
               {{0, 0}, {1, 0}, {0.5, -0.5}});
}

TEST_CASE("complex functions have derivatives where intermediate results are out of range") {
  // A real number whose exponential is infinite, and imaginary parts whose squares are.
  on_every_device([](const qn::Device& device) {
    qn::Field<double> there{device, {1}};
    qn::Kernel re = [&](F64 x, F64 y) -> F64 { return exp(complex(x + there[0], y)).re; };
    qn::Kernel logistic = [&](F64 x, F64 y) -> F64 {
      return (1.0 / (1.0 + exp(complex(x + there[0], y)))).re;
    };
    CHECK(qn::grad(re)(710.0, 0.0).get<1>() == 0);
    CHECK(qn::grad(re)(0.0, 1e200).get<0>() == Approx(std::cos(1e200)).epsilon(1e-12));
    CHECK(qn::grad(re)(0.0, 1e200).get<1>() == Approx(-std::sin(1e200)).epsilon(1e-12));
    CHECK(qn::grad(logistic)(800.0, 0.0).get<1>() == 0);
    qn::Kernel single = [&](F32 x, F32 y) -> F32 {
      return exp(complex(x + cast<float>(there[0]), y)).re;
    };
    CHECK(qn::grad(single)(89.0f, 0.0f).get<1>() == 0);
    CHECK(qn::grad(single)(0.0f, 3e19f).get<0>() == Approx(std::cos(3e19f)).epsilon(1e-5));
    // Of atanh it is 1 / (1 - z²), of its imaginary part by y the real part of that.
    qn::Kernel far = [&](F64 x, F64 y) -> F64 { return atanh(complex(x + there[0], y)).im; };
    for (const C& z : {C(1, 1e15), C(1, -1e150), C(3, 1e9), C(1e9, 1), C(2e8, -1e8), C(0.5, 1e8)}) {
      const C slope = 1.0 / ((1.0 - z) * (1.0 + z));
      const auto g = qn::grad(far)(z.real(), z.imag());
      INFO(z.real() << " " << z.imag());
      CHECK(g.get<0>() == Approx(slope.imag()).epsilon(1e-7).margin(1e-300));
      CHECK(g.get<1>() == Approx(slope.real()).epsilon(1e-7).margin(1e-300));
      CHECK(far(z.real(), z.imag()) == Approx(std::atanh(z).imag()).epsilon(1e-15));
    }
    qn::Kernel far_single = [&](F32 x, F32 y) -> F32 {
      return atanh(complex(x + cast<float>(there[0]), y)).im;
    };
    CHECK(qn::grad(far_single)(1.0f, 1e15f).get<1>() == Approx(1e-30).epsilon(1e-5).margin(1e-36));
    CHECK(qn::grad(far_single)(1.0f, 1e4f).get<1>() == Approx(1e-8).epsilon(1e-5).margin(1e-12));
  });
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

namespace {

/// The second derivatives at v of a number that three decide on are those of `value`, whose own are
/// central differences of fourth order.
template <class F>
void expect_hessian(F f, const std::function<double(double, double, double)>& value,
                    const std::vector<dvec3>& places) {
  on_every_device([&](const qn::Device& device) {
    qn::Field<double> there{device, {1}};
    qn::Kernel k = [&](F64 x, F64 y, F64 z) -> F64 { return f(x + there[0], y, z); };
    auto hessian = qn::hessian(k);
    for (const dvec3& at : places) {
      const auto h = hessian(at.x, at.y, at.z);
      for (int a = 0; a < 3; a++)
        for (int b = 0; b < 3; b++) {
          INFO(at.x << " " << at.y << " " << at.z << ": " << a << " " << b);
          const double d = 2e-3, weight[] = {1.0 / 12, -2.0 / 3, 0, 2.0 / 3, -1.0 / 12};
          double sum = 0;
          for (int i = -2; i <= 2; i++)
            for (int j = -2; j <= 2; j++) {
              dvec3 v = at;
              v[a] += i * d;
              v[b] += j * d;
              sum += weight[i + 2] * weight[j + 2] * value(v.x, v.y, v.z);
            }
          CHECK(h(a, b) == Approx(sum / d / d).epsilon(1e-7).margin(1e-8));
        }
    }
  });
}

}  // namespace

TEST_CASE("second derivatives of exp and log of quaternions are theirs around numbers, too") {
  const auto turned = [](double x, double y,
                         double z) {  // by Rodrigues' formula, of twice the vector
    const double l = std::sqrt(x * x + y * y + z * z), s = l == 0 ? 1 : std::sin(l) / l;
    const double w = std::cos(l), q[] = {x * s, y * s, z * s};
    const double p[] = {1, 2, 3}, along = q[0] * p[0] + q[1] * p[1] + q[2] * p[2];
    const double square = q[0] * q[0] + q[1] * q[1] + q[2] * q[2];
    const double across[] = {q[1] * p[2] - q[2] * p[1], q[2] * p[0] - q[0] * p[2],
                             q[0] * p[1] - q[1] * p[0]};
    double sum = 0;
    const double c[] = {-1, 0.4, 0.7};
    for (int k = 0; k < 3; k++)
      sum += c[k] * (2 * along * q[k] + (w * w - square) * p[k] + 2 * w * across[k]);
    return sum;
  };
  expect_hessian(
      [](F64 x, F64 y, F64 z) {
        auto r = rotate(exp(quaternion(x, y, z, 0.0)), dvec3(1, 2, 3));
        return dot(r, dvec3(-1, 0.4, 0.7));
      },
      turned, {{0, 0, 0}, {1e-6, 0, 0}, {0.1, -0.2, 0.05}, {0.2, 0.2, -0.1}, {1, -0.5, 0.25}});
  const auto log_of = [](double x, double y, double z) {
    const double l = std::sqrt(x * x + y * y + z * z), w = 1.5;
    const double s = l == 0 ? 1 / w : std::atan2(l, w) / l;
    return x * s + 2 * y * s - z * s + 3 * std::log(std::hypot(l, w));
  };
  expect_hessian(
      [](F64 x, F64 y, F64 z) {
        auto q = log(quaternion(x, y, z, 1.5));
        return q.x + 2 * q.y - q.z + 3 * q.w;
      },
      log_of, {{0, 0, 0}, {1e-6, 0, 0}, {0.05, -0.06, 0.02}, {0.1, 0.1, -0.1}, {1, -0.5, 0.25}});
}

TEST_CASE("the logarithm of a quaternion of small or tiny parts") {
  on_every_device([](const qn::Device& device) {
    qn::Field<double> there{device, {1}};
    qn::Kernel angle = [&](F64 x, F64 w) -> F64 {
      return log(quaternion(x + there[0], 0.0, 0.0, w)).x;
    };
    qn::Kernel modulus = [&](F64 x, F64 w) -> F64 {
      return log(quaternion(x + there[0], 0.0, 0.0, w)).w;
    };
    for (const double w : {1.0, 1e-100, 1e-158, 1e-170, 1e-250})
      for (const double tangent : {0.0, 0.01, 0.05}) {
        INFO(w << " " << tangent);
        const double x = tangent * w, by_x = 1 / (1 + tangent * tangent);  // times w
        CHECK(angle(x, w) == Approx(std::atan(tangent)).epsilon(1e-14).margin(1e-300));
        CHECK(qn::grad(angle)(x, w).get<0>() * w == Approx(by_x).epsilon(1e-13));
        CHECK(qn::grad(modulus)(x, w).get<0>() * w == Approx(tangent * by_x).epsilon(1e-13));
        CHECK(qn::grad(modulus)(x, w).get<1>() * w == Approx(by_x).epsilon(1e-13));
      }
    qn::Kernel single = [&](F32 x, F32 w) -> F32 {
      return log(quaternion(x + cast<float>(there[0]), 0.0f, 0.0f, w)).x;
    };
    CHECK(single(1e-23f, 1e-22f) == Approx(std::atan(0.1f)).epsilon(1e-6));
    CHECK(qn::grad(single)(1e-23f, 1e-22f).get<0>() == Approx(1e22 / 1.01).epsilon(1e-5));
    const auto host = log(quaternion(1e-23f, 0.0f, 0.0f, 1e-22f));
    CHECK(host.x == Approx(std::atan(0.1f)).epsilon(1e-6));
  });
}

TEST_CASE("slerp has its second derivatives between quaternions that are alike, too") {
  // Of turns by 0 and v about one axis it is the turn by t v.
  const auto between = [](double v, double t, double) { return std::cos(t * v) + std::sin(t * v); };
  expect_hessian(
      [](F64 v, F64 t, F64 unused) {
        auto q = slerp(quaternion(0 * v, 0.0, 0.0, 1.0), quaternion(sin(v), 0.0, 0.0, cos(v)), t);
        return q.w + q.x + 0 * unused;
      },
      between, {{0, 0.25, 0}, {1e-7, 0.75, 0}, {1e-3, 0.5, 0}, {0.5, 0.25, 0}});
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
