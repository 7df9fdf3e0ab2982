// Adjoints against derivatives that are known, and against tangents.
#include <quern/algorithms.h>
#include <quern/autodiff.h>
#include <quern/runtime/observer.h>

#include <cmath>
#include <random>
#include <set>

#include "tests/autodiff/numbers.h"
#include "tests/end_to_end/devices.h"
#include "tests/message_of.h"

using namespace qn::lang;
using qn::test::message_of;

namespace {
std::vector<double> drawn(int n, int seed) {
  std::mt19937 random{unsigned(seed)};
  std::normal_distribution<double> normal;
  std::vector<double> v(size_t(n), 0);
  for (double& e : v) e = normal(random);
  return v;
}

double product(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t k = 0; k < a.size(); k++) sum += a[k] * b[k];
  return sum;
}
}  // namespace

TEST_CASE("adjoints of straight code") {
  on_every_device([](const qn::Device& device) {
    const std::vector<double> at = {0.3, 1.2, -0.7}, seed = {1, -2, 0.5};
    auto x = numbers(device, at);
    qn::Field<double> y{device, {3}};
    qn::Kernel f = [&] {
      for (auto i : x) y[i] = sin(x[i]) * exp(2.0 * x[i]) + 3.0 / (x[i] + 4.0);
    };
    y.grad().copy_from(seed);
    x.grad().fill(10.0);  // what is there stays
    qn::vjp(f)()();
    for (int k = 0; k < 3; k++) {
      const double v = at[size_t(k)];
      const double slope =
          std::exp(2 * v) * (std::cos(v) + 2 * std::sin(v)) - 3 / ((v + 4) * (v + 4));
      CHECK(y.at(k) == Approx(std::sin(v) * std::exp(2 * v) + 3 / (v + 4)).epsilon(1e-12));
      CHECK(x.grad().at(k) == Approx(10 + slope * seed[size_t(k)]).epsilon(1e-12));
      CHECK(y.grad().at(k) == 0);  // it was overwritten
    }
  });
}

TEST_CASE("adjoints of arguments and results, sums and elements that many read") {
  on_every_device([](const qn::Device& device) {
    auto x = numbers(device, {1, 2, 3, 4});
    qn::Field<double> bins{device, {2}};
    bins.grad().copy_from(std::vector<double>{5, 7});
    qn::Kernel f = [&](F64 scale, I32 from) {
      Var<double> sum = 0;
      for (auto i : x) {
        atomic_add(bins[i % 2], scale * x[i]);
        If(i >= from) { sum += x[i] * x[i] * x[0]; }
      }
      return result(Val<double>(sum * scale), x.dim(0));
    };
    auto back = qn::vjp(f)(2.0, 1);
    CHECK(back.result().get<0>() == 2 * (4 + 9 + 16));
    auto adjoint = back(3.0, 0);
    // L = 3·scale·Σ_{i≥1} x_i²·x_0 + scale·(5·(x_0 + x_2) + 7·(x_1 + x_3))
    CHECK(adjoint.get<0>() == 3 * 29 + 5 * 4 + 7 * 6);
    const double expected[] = {3 * 2 * 29 + 2 * 5, 3 * 2 * 2 * 2 + 2 * 7, 3 * 2 * 2 * 3 + 2 * 5,
                               3 * 2 * 2 * 4 + 2 * 7};
    for (int k = 0; k < 4; k++) CHECK(x.grad().at(k) == expected[k]);
    CHECK(bins.grad().at(0) == 5);  // what was added to had a part in what followed
  });
}

TEST_CASE("adjoints go back through branches and rounds") {
  on_every_device([](const qn::Device& device) {
    const std::vector<double> at = {0.5, 1.5, -2, 3};
    auto x = numbers(device, at);
    qn::Field<double> y{device, {4}}, z{device, {4}};
    qn::Field<int> n{device, {4}};
    n.copy_from(std::vector<int>{0, 1, 2, 7});
    qn::Kernel f = [&] {
      for (auto i : x) {
        Var<double> p = x[i];
        for (auto k : range(2, 12, 3)) {  // 2, 5, 8, 11
          If(p > 1.0) { p = sqrt(p) * cast<double>(k); }
          If(p <= 1.0) { p = p * p + x[i]; }
        }
        y[i] = p;
        Var<double> sum = 0;
        for (auto k : range(n[i])) sum += x[i] * cast<double>(k + 1);
        z[i] = sum;
      }
    };
    y.grad().fill(1.0);
    z.grad().fill(2.0);
    qn::vjp(f)()();
    const auto plain = [](double v) {
      double p = v, d = 1;  // forward, by hand
      for (int k = 2; k < 12; k += 3) {
        if (p > 1) d = d * k / (2 * std::sqrt(p)), p = std::sqrt(p) * k;
        if (p <= 1) d = 2 * p * d + 1, p = p * p + v;
      }
      return d;
    };
    const int rounds[] = {0, 1, 2, 7};
    for (int k = 0; k < 4; k++)
      CHECK(x.grad().at(k) ==
            Approx(plain(at[size_t(k)]) + 2.0 * rounds[k] * (rounds[k] + 1) / 2).epsilon(1e-12));
  });
}

TEST_CASE("adjoints go back through loops of any number of rounds") {
  on_every_device([](const qn::Device& device) {
    const std::vector<double> at = {2, 9, 0.25, 100, 3};
    const std::vector<int> counts = {3, 0, 1, 5, 4};
    auto a = numbers(device, at);
    qn::Field<int> n{device, {5}};
    n.copy_from(counts);
    qn::Field<double> root{device, {5}}, tower{device, {5}};
    qn::Kernel f = [&] {
      for (auto i : a) {
        Var<double> r = 1.0;
        While(abs(r * r - a[i]) > 1e-9 * a[i]) { r = 0.5 * (r + a[i] / r); }
        root[i] = r;
        // t <- sin(t + j a) in nested rounds, of which some are left out and some end the loop
        Var<double> t = a[i] * 0.1;
        for (auto j : range(n[i])) {
          for (auto k : range(j + 1)) {
            If(k == 2) { Break(); }
            t = sin(t + cast<double>(j) * a[i]);
          }
          If(j == 1) { Continue(); }
          Var<double> halved = t;
          While(abs(halved) > 0.3) { halved = halved * 0.5; }
          t = t + halved * halved;
        }
        tower[i] = t;
      }
    };
    root.grad().fill(1.0);
    tower.grad().fill(2.0);
    auto back = qn::vjp(f)();
    back();
    const auto plain = [](double v, int rounds) {  // the value and its derivative, forward
      double t = 0.1 * v, d = 0.1;
      for (int j = 0; j < rounds; j++) {
        for (int k = 0; k < j + 1 && k < 2; k++) {
          d = std::cos(t + j * v) * (d + j);
          t = std::sin(t + j * v);
        }
        if (j == 1) continue;
        double h = t, e = d;
        while (std::abs(h) > 0.3) h *= 0.5, e *= 0.5;
        d += 2 * h * e;
        t += h * h;
      }
      return std::pair(t, d);
    };
    for (int k = 0; k < 5; k++) {
      const double v = at[size_t(k)];
      const auto [t, d] = plain(v, counts[size_t(k)]);
      CHECK(tower.at(k) == Approx(t).epsilon(1e-12));
      CHECK(a.grad().at(k) == Approx(0.5 / std::sqrt(v) + 2 * d).epsilon(1e-6));
      a.grad().set(k, 0);
    }
    root.grad().fill(0.0);
    tower.grad().fill(1.0);
    back();  // again, from the same record
    for (int k = 0; k < 5; k++)
      CHECK(a.grad().at(k) == Approx(plain(at[size_t(k)], counts[size_t(k)]).second).epsilon(1e-9));
  });
}

TEST_CASE("adjoints of what a loop does not change, and of what a condition passes on") {
  on_every_device([](const qn::Device& device) {
    auto x = numbers(device, {3, 4});
    qn::Field<double> y{device, {2}}, z{device, {2}};
    qn::Kernel f = [&] {
      for (auto i : x) {
        F64 square = x[i] * x[i];
        Var<double> last = -1.0, a = x[i], b = 1.0;
        for ([[maybe_unused]] auto k : range(3)) last = square;  // of three rounds the last counts
        y[i] = last;
        for ([[maybe_unused]] auto k : range(5)) {  // a and b change places
          F64 old = a * 2.0;
          a = b;
          b = old;
        }
        z[i] = a - 10.0 * b;
      }
    };
    y.grad().fill(1.0);
    z.grad().fill(1.0);
    qn::vjp(f)()();
    // rounds: (a, b) = (x, 1), (1, 2x), (2x, 2), (2, 4x), (4x, 4), (4, 8x)
    CHECK(qn::to_vector(x.grad()) == std::vector<double>{2 * 3 - 80, 2 * 4 - 80});
  });
}

TEST_CASE("a loop that carries a value through rounds of a sum has its known gradient") {
  // What others get wrong: the trip counts differ by iteration and the value is squared.
  on_every_device([](const qn::Device& device) {
    qn::Field<double> x{device, {3}};
    x.copy_from(std::vector<double>{1, 2, 3});
    qn::Kernel f = [&]() -> F64 {
      Var<double> sum = 0;
      for (auto i : x) {
        Var<double> p = 1.0;
        for ([[maybe_unused]] auto k : range(i + 1)) p = p * x[i];
        sum += p;
      }
      return sum;
    };
    auto back = qn::vjp(f)();
    CHECK(double(back.result()) == 1 + 4 + 27);
    back(1.0);
    CHECK(qn::to_vector(x.grad()) == std::vector<double>{1, 4, 27});
  });
}

TEST_CASE("forward and reverse agree: <Jv, w> = <v, Jᵀw>") {
  on_every_device([](const qn::Device& device) {
    constexpr int n = 64;
    const std::vector<double> at = drawn(n, 1), v = drawn(n, 2), w = drawn(n, 3);
    auto x = numbers(device, at);
    qn::Field<double> y{device, {n}}, q{device, {n}};
    qn::Kernel f = [&] {
      for (auto i : range(1, n - 1)) {
        Var<double> s = 0;
        for (auto k : range(-1, 2)) {
          Var<double> t = x[i + k] * 0.5;
          for (auto r : range(3)) t = sin(t * (1.0 + 0.1 * cast<double>(r))) + t * x[i];
          If(t < 0.0) { t = -0.5 * t * t; }
          s += t;
        }
        y[i] = tanh(s) / (1.0 + x[i] * x[i]) + pow(abs(x[i]) + 1.0, 1.7);
      }
    };
    qn::Kernel g = [&] {
      for (auto i : q) q[i] = atan2(y[i], y[(i + 1) % n] + 3.0) * y[(i * 7) % n];
      for (auto i : x) x[i] = x[i] * x[i] * 0.1;  // overwritten behind the read
    };
    x.dual().copy_from(v);
    qn::jvp(f)();
    qn::jvp(g)();
    const std::vector<double> jq = qn::to_vector(q.dual()), jx = qn::to_vector(x.dual());
    x.copy_from(at);
    y.fill(0.0);
    const std::vector<double> u = drawn(n, 4);
    q.grad().copy_from(w);
    x.grad().copy_from(u);
    {
      qn::Tape tape;
      f();
      g();
      tape.backward();
      CHECK(message_of([&] { tape.backward(); }).find("already") != std::string::npos);
    }
    const double forward = product(jq, w) + product(jx, u);
    const double reverse = product(v, qn::to_vector(x.grad()));
    CHECK(std::abs(forward - reverse) <= 1e-12 * std::abs(forward));
    CHECK(std::abs(forward) > 1e-3);
  });
}

TEST_CASE("gradient descent on a tape finds what a field was") {
  on_every_device([](const qn::Device& device) {
    constexpr int n = 16;
    const std::vector<double> target = drawn(n, 9);
    auto t = numbers(device, target);
    qn::Field<double> x{device, {n}}, smooth{device, {n}};
    qn::Field<double, 0> loss{device};
    qn::Kernel blur = [&] {
      for (auto i : smooth) smooth[i] = x[i] + 0.2 * x[(i + 1) % n];
    };
    qn::Kernel wanted = [&] {
      for (auto i : smooth) {
        F64 d = smooth[i] - (t[i] + 0.2 * t[(i + 1) % n]);
        atomic_add(loss(), d * d);
      }
    };
    qn::Kernel descend = [&](qn::Field<double> gradient) {
      for (auto i : x) x[i] -= 0.3 * gradient[i];
    };
    for (int step = 0; step < 60; step++) {
      loss.fill(0.0);
      x.grad().fill(0.0);
      loss.grad().fill(1.0);
      qn::Tape tape;
      blur();
      wanted();
      tape.backward();
      descend(x.grad());
    }
    for (int k = 0; k < n; k++) CHECK(x.at(k) == Approx(target[size_t(k)]).margin(1e-6));
  });
}

TEST_CASE("what goes back through a kernel is made once for all tapes") {
  on_every_device([](const qn::Device& device) {
    struct Recordings : qn::runtime::LaunchObserver {
      void before(const qn::runtime::LaunchEvent& e) override { all.push_back(e.recording); }
      std::vector<std::shared_ptr<const qn::ir::Kernel>> all;
    } launched;
    auto x = numbers(device, {1, 2}), y = numbers(device, {0, 0});
    qn::Kernel step = [&] {
      for (auto i : x) y[i] = x[i] * x[i];
    };
    for (int round = 0; round < 3; round++) {
      qn::Tape tape;
      step();
      qn::runtime::Observation watch(launched);
      tape.backward();
    }
    for (int round = 0; round < 2; round++) {
      auto back = qn::vjp(step)();
      qn::runtime::Observation watch(launched);
      back();
    }
    REQUIRE(launched.all.size() == 5);
    for (const auto& recording : launched.all) CHECK(recording == launched.all[0]);
  });
}

TEST_CASE("gradients by the same inputs share what goes back") {
  on_every_device([](const qn::Device& device) {
    struct Recordings : qn::runtime::LaunchObserver {
      void before(const qn::runtime::LaunchEvent& e) override { all.insert(e.recording); }
      std::set<std::shared_ptr<const qn::ir::Kernel>> all;
    };
    auto x = numbers(device, {1, 2}), p = numbers(device, {3, 4});
    qn::Kernel<double()> energy{[&]() -> F64 {
                                  Var<double> sum = 0.0;
                                  for (auto i : x) sum += x[i] * p[i];
                                  return sum;
                                },
                                {.checked = true}};  // else one launch does both
    const auto launched_by = [&](auto&& inputs) {
      Recordings launched;
      auto gradient = qn::value_and_grad(energy, inputs);
      qn::runtime::Observation watch(launched);
      gradient();
      return launched.all;
    };
    const auto by_x = launched_by(qn::wrt(x)), again = launched_by(qn::wrt(x)),
               by_p = launched_by(qn::wrt(p));
    CHECK(x.grad().at(1) == 4);
    CHECK(p.grad().at(1) == 2);
    CHECK(by_x.size() == 2);  // the kernel, and what goes back
    CHECK(again == by_x);
    CHECK(by_p != by_x);
  });
}

TEST_CASE("a tape refuses what it cannot follow") {
  const qn::Device device("cpu");
  auto x = numbers(device, {1, 2}), y = numbers(device, {0, 0});
  qn::Kernel step = [&] {
    for (auto i : x) y[i] = x[i] * x[i];
  };
  {
    qn::Tape tape;
    step();
    x.fill(3.0);
    CHECK(message_of([&] { step(); }).find("between launches that a tape records") !=
          std::string::npos);
  }
  step();
  {
    // A launch that another observer refuses has not happened.
    struct Refusing : qn::runtime::LaunchObserver {
      bool refuses = false;
      void before(const qn::runtime::LaunchEvent&) override {
        if (refuses) throw qn::Error("no");
      }
    } refusing;
    qn::Kernel more = [&] {
      for (auto i : x) atomic_add(y[i], x[i] * x[i]);
    };
    x.grad().fill(0.0);
    y.grad().fill(1.0);
    qn::Tape tape;
    qn::runtime::Observation second(refusing);
    more();
    refusing.refuses = true;
    CHECK_THROWS_AS(more(), qn::Error);
    refusing.refuses = false;
    tape.backward();
    CHECK(x.grad().at(0) == 6);
  }
  {
    auto pull = qn::vjp(step)();
    qn::Tape tape;
    CHECK(message_of([&] { pull(); }).find("'vjp of kernel', which goes back") !=
          std::string::npos);
  }
  {
    qn::Tape tape;
    step();
    step();  // y is overwritten by what is recorded
    x.swap(y);
    CHECK(message_of([&] { tape.backward(); }).find("was swapped since") != std::string::npos);
  }
  x.swap(y);
  x.grad().fill(0.0);
  y.grad().fill(1.0);
  qn::Tape tape;
  step();
  CHECK(y.at(0) == 9);
  tape.backward();
  CHECK(x.grad().at(1) == 6);
}

TEST_CASE("what has no adjoint is refused at its line") {
  const qn::Device device("cpu");
  auto x = numbers(device, {1, 2, 3});
  qn::Field<double> y{device, {3}};
  const auto refused = [](auto& kernel, int line, const char* what) {
    auto pull = qn::vjp(kernel);
    const std::string found = message_of([&] { pull(); });
    INFO(found);
    CHECK(found.find("reverse.cpp:" + std::to_string(line) + ": ") != std::string::npos);
    CHECK(found.find(what) != std::string::npos);
  };
  int line = 0;
  qn::Kernel racing = [&] {
    for (auto i : x) {
      atomic_add(y[0], x[i]);
      line = __LINE__ + 1;
      x[i] = y[0] * y[0];
    }
  };
  refused(racing, line, "is read here while other iterations may add to it");
  qn::Kernel last = [&] {
    line = __LINE__ + 1;
    for (auto i : x) atomic_exchange(y[0], x[i]);
  };
  refused(last, line, "an atomic exchange of floats");
}

TEST_CASE("going back draws the launch's random numbers again") {
  on_every_device([](const qn::Device& device) {
    constexpr int n = 100;
    auto x = numbers(device, drawn(n, 1));
    qn::Field<double> y{device, {n}}, scale{device, {n}};
    qn::Kernel noisy = [&] {
      for (auto i : x) {
        Var<double> product = 1.0;
        for ([[maybe_unused]] auto k : range(i % 5)) {
          If(random<double>() < 0.5) { product = product * (1.0 + random<double>()); }
        }
        scale[i] = product;
        y[i] = product * x[i] * x[i];
      }
    };
    device.seed(7);
    for (int repeat = 0; repeat < 2; repeat++) {
      x.grad().fill(0);
      y.grad().fill(1);
      scale.grad().fill(0);
      auto back = qn::vjp(noisy)();
      const std::vector<double> drawn_before = qn::to_vector(scale);
      noisy();  // draws others
      CHECK(qn::to_vector(scale) != drawn_before);
      back();
      for (int i = 0; i < n; i++)
        CHECK(x.grad().at(i) == Approx(2 * drawn_before[size_t(i)] * x.at(i)).epsilon(1e-13));
    }
    // What goes back counts as no launch: others draw the same as without it.
    device.seed(7);
    noisy();
    const std::vector<double> first = qn::to_vector(scale);
    device.seed(7);
    qn::vjp(noisy)()();
    CHECK(qn::to_vector(scale) == first);
    noisy();
    const std::vector<double> second = qn::to_vector(scale);
    device.seed(7);
    noisy();
    noisy();
    CHECK(qn::to_vector(scale) == second);
  });
}
