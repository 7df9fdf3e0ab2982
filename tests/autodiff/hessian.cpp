// Second derivatives against those that are known.
#include <quern/autodiff.h>

#include <cmath>

#include "tests/autodiff/numbers.h"
#include "tests/end_to_end/devices.h"

using namespace qn::lang;

TEST_CASE("the Hessian of a quadratic form is its symmetric matrix") {
  on_every_device([](const qn::Device& device) {
    const std::vector<double> at = {-1.2, 1, 0.5, 2}, v = {1, -3, 0.25, 2};
    auto x = numbers(device, at);
    x.dual().copy_from(v);
    qn::Field<double, 2> a{device, {4, 4}};
    std::vector<double> entries;
    for (int i = 0; i < 4; i++)
      for (int j = 0; j < 4; j++) entries.push_back(i == j ? 3 + i : 0.5 * i - 0.25 * j);
    a.copy_from(entries);
    qn::Kernel form = [&]() -> F64 {
      Var<double> sum = 0;
      for (auto [i, j] : a) sum += 0.5 * x[i] * a(i, j) * x[j];
      return sum;
    };
    x.grad().fill(9.0);
    x.grad().dual().fill(9.0);
    auto hv = qn::hessian_vector(form, qn::wrt(x));
    for (int twice = 0; twice < 2; twice++) {
      auto r = hv();
      double value = 0;
      for (size_t i = 0; i < 4; i++) {
        double g = 0, h = 0;
        for (size_t j = 0; j < 4; j++) {
          const double symmetric = 0.5 * (entries[4 * i + j] + entries[4 * j + i]);
          g += symmetric * at[j];
          h += symmetric * v[j];
          value += 0.5 * at[i] * entries[4 * i + j] * at[j];
        }
        CHECK(x.grad().at(int(i)) == Approx(g).epsilon(1e-13));
        CHECK(x.grad().dual().at(int(i)) == Approx(h).epsilon(1e-13));
      }
      CHECK(r.value() == Approx(value).epsilon(1e-13));
    }
  });
}

TEST_CASE("the Hessian of Rosenbrock's function along a direction, by scalars and by a field") {
  on_every_device([](const qn::Device& device) {
    auto place = numbers(device, {0});
    const double x = -1.2, y = 1, u = 0.75, v = -2;
    // f = 100 (y - x²)² + (1 - x)²: f_xx = 1200 x² - 400 y + 2, f_xy = -400 x, f_yy = 200
    const double hu = (1200 * x * x - 400 * y + 2) * u - 400 * x * v, hv = -400 * x * u + 200 * v;
    const double gx = -400 * x * (y - x * x) - 2 * (1 - x), gy = 200 * (y - x * x);
    qn::Kernel f = [&](F64 a, F64 b) -> F64 {
      place[0] = a;
      F64 d = b - a * a;
      return 100.0 * d * d + (1.0 - a) * (1.0 - a);
    };
    auto r = qn::hessian_vector<0, 1>(f)({x, u}, {y, v});
    CHECK(r.value() == Approx(100 * (y - x * x) * (y - x * x) + (1 - x) * (1 - x)));
    CHECK(r.get<0>() == Approx(gx).epsilon(1e-12));
    CHECK(r.get<1>() == Approx(gy).epsilon(1e-12));
    CHECK(r.product<0>() == Approx(hu).epsilon(1e-12));
    CHECK(r.product<1>() == Approx(hv).epsilon(1e-12));
    // A direction of what is not chosen has no part.
    auto by_y = qn::hessian_vector<1>(f)({x, u}, {y, v});
    CHECK(by_y.product<1>() == Approx(200 * v).epsilon(1e-12));

    qn::Kernel g = [&](qn::Field<double> p) -> F64 {
      Var<double> sum = 0;
      for (auto i : range(p.dim(0) - 1)) {
        F64 d = p[i + 1] - p[i] * p[i];
        sum += 100.0 * d * d + (1.0 - p[i]) * (1.0 - p[i]);
        p[i] = 0.0;  // behind what is read of it
      }
      return sum;
    };
    auto p = numbers(device, {x, y});
    p.dual().copy_from(std::vector<double>{u, v});
    qn::hessian_vector(g)(p);
    CHECK(p.grad().at(0) == Approx(gx).epsilon(1e-12));
    CHECK(p.grad().dual().at(0) == Approx(hu).epsilon(1e-12));
    CHECK(p.grad().dual().at(1) == Approx(hv).epsilon(1e-12));
    CHECK(p.at(0) == 0);
  });
}

TEST_CASE("second derivatives through branches and loops of any number of rounds") {
  on_every_device([](const qn::Device& device) {
    const std::vector<double> at = {2, 9, 0.25, 3}, v = {1, 2, -1, 0.5};
    auto a = numbers(device, at);
    a.dual().copy_from(v);
    qn::Field<int> n{device, {4}};
    n.copy_from(std::vector<int>{3, 0, 1, 5});
    // Σ scale √a + a^n, and a³ where a > 1
    qn::Kernel f = [&](F64 scale) -> F64 {
      Var<double> sum = 0;
      for (auto i : a) {
        Var<double> r = 1.0;
        While(abs(r * r - a[i]) > 1e-13 * a[i]) { r = 0.5 * (r + a[i] / r); }
        Var<double> p = 1.0;
        for ([[maybe_unused]] auto k : range(n[i])) p = p * a[i];
        Var<double> cube = 0.0;
        If(a[i] > 1.0) {
          cube = a[i];
          for ([[maybe_unused]] auto k : range(2)) cube = cube * a[i];
        }
        sum += scale * r + p + cube;
      }
      return sum;
    };
    const int powers[] = {3, 0, 1, 5};
    auto r = qn::hessian_vector(f)({0.5, 0.25});
    double by_scale = 0;
    for (int i = 0; i < 4; i++) {
      const double x = at[size_t(i)], d = v[size_t(i)];
      const int k = powers[i];
      double slope = 0.5 * 0.5 / std::sqrt(x), second = -0.5 * 0.25 * std::pow(x, -1.5);
      if (k > 0) slope += k * std::pow(x, k - 1);
      if (k > 1) second += k * (k - 1) * std::pow(x, k - 2);
      if (x > 1) slope += 3 * x * x, second += 6 * x;
      const double mixed = 0.5 / std::sqrt(x);
      by_scale += mixed * d;
      CHECK(a.grad().at(i) == Approx(slope).epsilon(1e-9));
      CHECK(a.grad().dual().at(i) == Approx(second * d + mixed * 0.25).epsilon(1e-9));
    }
    CHECK(r.get<0>() == Approx(std::sqrt(2.0) + 3 + 0.5 + std::sqrt(3.0)).epsilon(1e-9));
    CHECK(r.product<0>() == Approx(by_scale).epsilon(1e-9));
  });
}

TEST_CASE("second derivatives through what a launch reads behind its own writes") {
  on_every_device([](const qn::Device& device) {
    const std::vector<double> at = {0.3, -0.5, 1.2}, v = {1, -2, 0.5};
    auto x = numbers(device, at), y = numbers(device, {5, 5, 5});
    qn::Field<double> y_part = y.slice(0, 0, 2);  // the same memory
    // y_i = s x_i², then x_i = y_i x_i = s x_i³; f = Σ w_i x_i², w = (2, 2, 1): of y once more
    qn::Kernel f = [&](F64 s) -> F64 {
      for (auto i : x) y[i] = s * x[i] * x[i];
      for (auto i : x) {
        Var<qn::Array<double, 3>> a;
        for (auto k : range(3)) a[k] = y[i] * cast<double>(k);
        x[i] = x[i] * (a[2] - a[1]);
      }
      Var<double> sum = 0;
      for (auto i : x) sum += x[i] * x[i];
      for (auto i : y_part) sum += s * y_part[i] * y_part[i] * y_part[i];  // s⁴ x⁶
      return sum;
    };
    // f = Σ s² x⁶ + Σ_{i<2} s⁴ x⁶
    const double s = 1.5, ds = 0.25;
    x.dual().copy_from(v);
    y.dual().fill(33.0);  // of what is overwritten
    auto hv = qn::hessian_vector(f);
    for (int twice = 0; twice < 2; twice++) {
      x.copy_from(at);
      auto r = hv({s, ds});
      double value = 0, by_s = 0, along_s = 0;
      for (int i = 0; i < 3; i++) {
        const double e = at[size_t(i)], d = v[size_t(i)], p5 = std::pow(e, 5);
        const double c = s * s + (i < 2 ? std::pow(s, 4) : 0);
        const double cs = 2 * s + (i < 2 ? 4 * s * s * s : 0), css = 2 + (i < 2 ? 12 * s * s : 0);
        value += c * e * p5;
        by_s += cs * e * p5;
        along_s += css * e * p5 * ds + cs * 6 * p5 * d;
        CHECK(x.grad().at(i) == Approx(c * 6 * p5).epsilon(1e-12));
        CHECK(x.grad().dual().at(i) ==
              Approx(c * 30 * e * e * e * e * d + cs * 6 * p5 * ds).epsilon(1e-12));
      }
      CHECK(r.value() == Approx(value).epsilon(1e-12));
      CHECK(r.get<0>() == Approx(by_s).epsilon(1e-12));
      CHECK(r.product<0>() == Approx(along_s).epsilon(1e-12));
    }
    CHECK(qn::to_vector(x.dual()) == v);  // directions stay
  });
}

TEST_CASE("a tape goes back through launches that run forward") {
  on_every_device([](const qn::Device& device) {
    const std::vector<double> at = {-1.2, 1, 0.5, 2}, v = {1, -3, 0.25, 2};
    auto x = numbers(device, at), terms = numbers(device, {0, 0, 0});
    x.dual().copy_from(v);
    qn::Field<double, 0> sum{device};
    qn::Kernel rosenbrock = [&] {
      for (auto i : terms) {
        F64 d = x[i + 1] - x[i] * x[i];
        terms[i] = 100.0 * d * d + (1.0 - x[i]) * (1.0 - x[i]);
      }
    };
    qn::Kernel add_up = [&] {
      for (auto i : terms) atomic_add(sum(), terms[i]);
    };
    auto push = qn::jvp(rosenbrock), push_sum = qn::jvp(add_up);
    qn::Tape tape;
    push();
    push_sum();
    sum.dual().grad().fill(1.0);  // of ⟨∇f, v⟩
    tape.backward();
    double along = 0;
    std::vector<double> g(4), hv(4);
    for (size_t i = 0; i < 3; i++) {
      const double p = at[i], d = at[i + 1] - p * p;
      g[i] += -400 * p * d - 2 * (1 - p);
      g[i + 1] += 200 * d;
      hv[i] += (1200 * p * p - 400 * at[i + 1] + 2) * v[i] - 400 * p * v[i + 1];
      hv[i + 1] += -400 * p * v[i] + 200 * v[i + 1];
    }
    for (size_t i = 0; i < 4; i++) along += g[i] * v[i];
    CHECK(sum.dual().at({}) == Approx(along).epsilon(1e-12));
    for (int i = 0; i < 4; i++) {
      CHECK(x.grad().at(i) == Approx(hv[size_t(i)]).epsilon(1e-12));
      CHECK(x.dual().grad().at(i) == Approx(g[size_t(i)]).epsilon(1e-12));
    }
  });
}
