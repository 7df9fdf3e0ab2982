// Derivatives of what equations define, by the equations, not by the steps that solved them: the
// recipes of docs/guide.md against solutions that are known.
#include <quern/autodiff.h>

#include <cmath>
#include <random>

#include "tests/autodiff/numbers.h"
#include "tests/end_to_end/devices.h"

using namespace qn::lang;

TEST_CASE("the fixed point of an element has the derivative of its equation") {
  on_every_device([](const qn::Device& device) {
    // x = g(x, p), g = cos(p x): ẋ = g_p ṗ / (1 - g_x)
    auto settled = qn::differentiable(
        [](F64 p) {
          Var<double> x = 0.5;
          for (auto k : range(200)) x = cos(p * x);
          return Val<double>(x);
        },
        qn::pullback([](F64 p, F64 x, F64 adjoint) {
          const F64 slope = -sin(p * x);
          return adjoint * slope * x / (1.0 - slope * p);
        }),
        qn::pushforward([](F64 p, F64 x, F64 tangent) {
          const F64 slope = -sin(p * x);
          return tangent * slope * x / (1.0 - slope * p);
        }));
    auto p = numbers(device, {0.2, 0.5, 1.0});
    qn::Field<double> x{device, {3}};
    qn::Kernel f = [&] {
      for (auto i : p) x[i] = settled(p[i]);
    };
    p.dual().fill(1.0);
    qn::jvp(f)();
    x.grad().fill(1.0);
    qn::vjp(f)()();
    for (int k = 0; k < 3; k++) {
      const auto solved = [](double q) {
        long double v = 0.5L;
        for (int n = 0; n < 400; n++) v = cosl((long double)q * v);
        return v;
      };
      const double at = p.at(k), h = 1e-4;
      const double expected = double((solved(at + h) - solved(at - h)) / (2 * h));
      CHECK(x.at(k) == Approx(double(solved(at))).epsilon(1e-14));
      CHECK(x.dual().at(k) == Approx(expected).epsilon(1e-7));
      CHECK(p.grad().at(k) == Approx(expected).epsilon(1e-7));
    }
  });
}

TEST_CASE("the fixed point of a field has the derivative of its equation") {
  on_every_device([](const qn::Device& device) {
    // x = g(x, p): a step of relaxation with a nonlinear source, until it stands still. Back:
    // u = x̄ + g_xᵀ u by as many steps, then p̄ += g_pᵀ u, all by one vjp of the step.
    constexpr int n = 16;
    qn::Field<double> x{device, {n}}, next{device, {n}}, p{device, {n}};
    qn::Field<double, 0> loss{device};
    qn::Kernel step = [](qn::Field<double> from, qn::Field<double> to, qn::Field<double> source) {
      for (auto i : range(1, n - 1))
        to[i] = 0.4 * (from[i - 1] + from[i + 1]) + 0.2 * sin(from[i]) + source[i];
    };
    qn::Kernel measure = [&] {
      for (auto i : x) atomic_add(loss(), x[i] * x[i]);
    };
    std::mt19937 random(3);
    std::normal_distribution<double> normal;
    std::vector<double> at(n), target(n);
    for (double& v : at) v = 0.3 * normal(random);
    constexpr int rounds = 600;
    const auto solve = [&](const qn::Field<double>& solution) {
      for (int k = 0; k < rounds; k += 2) {
        step(solution, next, p);
        step(next, solution, p);
      }
    };
    auto pull = qn::vjp(step);
    const auto solve_back = [&] {
      const std::vector<double> adjoint = [&] {
        std::vector<double> v(n);
        x.grad().copy_to(v);
        return v;
      }();
      std::vector<double> u = adjoint, of_p(n), before(n);
      p.grad().copy_to(before);
      for (int k = 0; k < rounds; k++) {
        p.grad().copy_from(before);  // only the last round's counts
        x.grad().fill(0.0);
        next.grad().copy_from(u);
        pull(x, next, p)();
        x.grad().copy_to(u);
        for (int i = 0; i < n; i++) u[size_t(i)] += adjoint[size_t(i)];
      }
      x.grad().fill(0.0);
    };
    const auto loss_at = [&](const std::vector<double>& v) {
      p.copy_from(v);
      x.fill(0.0);
      next.fill(0.0);
      loss.fill(0.0);
      solve(x);
      measure();
      return loss.at({});
    };
    std::vector<double> expected;
    for (int k : {1, 5, 14}) {
      const double h = 1e-4;
      auto more = at, less = at;
      more[size_t(k)] += h;
      less[size_t(k)] -= h;
      expected.push_back((loss_at(more) - loss_at(less)) / (2 * h));
    }
    p.copy_from(at);
    x.fill(0.0);
    next.fill(0.0);
    loss.fill(0.0);
    qn::Tape tape;
    qn::with_pullback([&] { solve(x); }, solve_back);
    measure();
    loss.grad().fill(1.0);
    tape.backward();
    int found = 0;
    for (int k : {1, 5, 14})
      CHECK(p.grad().at(k) == Approx(expected[size_t(found++)]).epsilon(1e-6).margin(1e-7));
    CHECK(x.grad().at(3) == 0);
  });
}

TEST_CASE("a solver of symmetric systems goes back by solving once more") {
  on_every_device([](const qn::Device& device) {
    // A x = b by conjugate gradients: b̄ += λ and Ā -= λ xᵀ, where A λ = x̄.
    constexpr int n = 12;
    qn::Field<double, 2> a{device, {n, n}};
    qn::Field<double> b{device, {n}}, x{device, {n}}, lambda{device, {n}}, r{device, {n}},
        d{device, {n}}, q{device, {n}};
    qn::Field<double, 0> loss{device};
    qn::Kernel begin = [&](qn::Field<double> right, qn::Field<double> solution) -> F64 {
      Var<double> sum = 0;
      for (auto i : right) {
        solution[i] = 0.0;
        r[i] = right[i];
        d[i] = right[i];
        sum += right[i] * right[i];
      }
      return sum;
    };
    qn::Kernel apply = [&]() -> F64 {
      for (auto i : q) {
        Var<double> sum = 0;
        for (auto k : range(n)) sum += a(i, k) * d[k];
        q[i] = sum;
      }
      Var<double> product = 0;
      for (auto i : q) product += d[i] * q[i];
      return product;
    };
    qn::Kernel advance = [&](qn::Field<double> solution, F64 alpha) -> F64 {
      Var<double> sum = 0;
      for (auto i : r) {
        solution[i] = solution[i] + alpha * d[i];
        const F64 left = r[i] - alpha * q[i];
        r[i] = left;
        sum += left * left;
      }
      return sum;
    };
    qn::Kernel turn = [&](F64 beta) {
      for (auto i : d) d[i] = r[i] + beta * d[i];
    };
    const auto solve = [&](const qn::Field<double>& right, const qn::Field<double>& solution) {
      double residual = begin(right, solution);
      while (residual > 1e-26) {
        const double product = apply();
        const double next = advance(solution, residual / product);
        turn(next / residual);
        residual = next;
      }
    };
    auto da = a.grad();
    auto db = b.grad(), dx = x.grad();
    qn::Kernel give = [&] {
      for (auto i : lambda) {
        db[i] += lambda[i];
        for (auto k : range(n)) da(i, k) = da(i, k) - lambda[i] * x[k];
      }
      for (auto i : dx) dx[i] = 0.0;
    };
    qn::Kernel measure = [&] {
      for (auto i : x) atomic_add(loss(), x[i] * x[i] * cast<double>(i + 1));
    };
    std::mt19937 random(5);
    std::normal_distribution<double> normal;
    std::vector<double> half(n * n), full(n * n), right(n);
    for (double& v : half) v = normal(random);
    for (double& v : right) v = normal(random);
    for (int i = 0; i < n; i++)
      for (int k = 0; k < n; k++)
        full[size_t(i * n + k)] =
            0.2 * (half[size_t(i * n + k)] + half[size_t(k * n + i)]) + 4 * (i == k);
    a.copy_from(full);
    b.copy_from(right);
    qn::Tape tape;
    qn::with_pullback([&] { solve(b, x); },
                      [&] {
                        solve(dx, lambda);
                        give();
                      });
    measure();
    loss.grad().fill(1.0);
    tape.backward();
    // By elimination on the host, in long double, and differences.
    const auto loss_of = [&](std::vector<double> m, std::vector<double> v) {
      std::vector<long double> w(m.begin(), m.end()), y(v.begin(), v.end());
      for (int p = 0; p < n; p++)
        for (int i = p + 1; i < n; i++) {
          const long double f = w[size_t(i * n + p)] / w[size_t(p * n + p)];
          for (int k = p; k < n; k++) w[size_t(i * n + k)] -= f * w[size_t(p * n + k)];
          y[size_t(i)] -= f * y[size_t(p)];
        }
      long double sum = 0;
      for (int i = n - 1; i >= 0; i--) {
        for (int k = i + 1; k < n; k++) y[size_t(i)] -= w[size_t(i * n + k)] * y[size_t(k)];
        y[size_t(i)] /= w[size_t(i * n + i)];
        sum += y[size_t(i)] * y[size_t(i)] * (i + 1);
      }
      return sum;
    };
    const double h = 1e-5;
    for (int k = 0; k < n; k++) {
      auto more = right, less = right;
      more[size_t(k)] += h;
      less[size_t(k)] -= h;
      CHECK(db.at(k) ==
            Approx(double((loss_of(full, more) - loss_of(full, less)) / (2 * h))).margin(1e-9));
      auto above = full, below = full;
      const int at = k * n + (k * 5 + 3) % n;
      above[size_t(at)] += h;
      below[size_t(at)] -= h;
      CHECK(da.at(k, (k * 5 + 3) % n) ==
            Approx(double((loss_of(above, right) - loss_of(below, right)) / (2 * h))).margin(1e-9));
    }
  });
}
