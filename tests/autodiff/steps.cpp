// Loops in time that keep a few states: how often steps run, what is kept, and that gradients are those
// of a tape that keeps all.
#include <quern/autodiff.h>

#include <array>
#include <cmath>

#include "dsl/objects.h"
#include "tests/autodiff/numbers.h"
#include "tests/end_to_end/devices.h"
#include "tests/message_of.h"

using namespace qn::lang;
using qn::test::message_of;

namespace {

/// The least number of steps run besides the last run of each, by trying all places of the next
/// state that is kept.
int64_t least(int n, int snapshots) {
  std::vector<std::vector<int64_t>> t(size_t(n) + 1,
                                      std::vector<int64_t>(size_t(snapshots) + 1, 0));
  for (size_t l = 2; l <= size_t(n); l++)
    for (size_t s = 1; s <= size_t(snapshots); s++) {
      t[l][s] = int64_t(l * (l - 1) / 2);
      for (size_t m = 1; s > 1 && m < l; m++)
        t[l][s] = std::min(t[l][s], int64_t(m) + t[l - m][s - 1] + t[m][s]);
    }
  return t[size_t(n)][size_t(snapshots)];
}

/// r n - C(s + r, r - 1), with the smallest r for which C(s + r, s) >= n.
int64_t by_formula(int n, int s) {
  const auto choose = [](int from, int k) {
    double v = 1;
    for (int j = 1; j <= k; j++) v = v * (from - k + j) / j;
    return k < 0 ? int64_t(0) : int64_t(std::llround(v));
  };
  int r = 0;
  while (choose(s + r, s) < n) r++;
  return int64_t(r) * n - choose(s + r, r - 1);
}

}  // namespace

TEST_CASE("steps run as seldom as their snapshots allow") {
  on_every_device([](const qn::Device& device) {
    auto x = numbers(device, {0.5});
    qn::Field<double, 0> loss{device};
    qn::Kernel step = [&] {
      for (auto i : x) x[i] = x[i] * x[i] + 0.1;
    };
    qn::Kernel measure = [&] {
      for (auto i : x) atomic_add(loss(), x[i]);
    };
    const int cases[][2] = {{1, 1},  {1, 4},   {2, 1},   {2, 2},  {3, 1},  {3, 2},
                            {9, 1},  {10, 3},  {20, 3},  {21, 3}, {35, 4}, {36, 2},
                            {40, 5}, {12, 11}, {12, 12}, {12, 50}};
    for (const auto& [n, snapshots] : cases) {
      x.fill(0.5);
      x.grad().fill(0.0);
      loss.grad().fill(1.0);
      std::vector<int> runs(size_t(n), 0);
      qn::Tape tape;
      qn::steps(
          tape, n,
          [&](int t) {
            runs[size_t(t)]++;
            step();
          },
          qn::state(x), snapshots);
      CHECK(runs == std::vector<int>(size_t(n), 1));
      measure();
      tape.backward();
      int64_t all = 0;
      for (int r : runs) all += r;
      INFO(n << " steps, " << snapshots << " snapshots");
      CHECK(all == n + least(n, snapshots));
      CHECK(all == n + by_formula(n, snapshots));
      double v = 0.5, d = 1;
      for (int t = 0; t < n; t++) d *= 2 * v, v = v * v + 0.1;
      CHECK(x.grad().at(0) == Approx(d).epsilon(1e-12));
      if (n > 1) CHECK(x.at(0) == 0.5);
    }
  });
}

TEST_CASE("steps have the gradient of a tape that keeps all of them to the bit") {
  on_every_device([](const qn::Device& device) {
    constexpr int n = 37, size = 20;
    std::vector<double> start, stiff;
    for (int k = 0; k < size; k++) {
      start.push_back(0.1 * k - 0.7);
      stiff.push_back(1 + 0.05 * k);
    }
    auto p = numbers(device, start), k = numbers(device, stiff);
    qn::Field<double> x{device, {size}}, v{device, {size}}, force{device, {size}};
    qn::Field<double> loss{device, {size}};
    qn::Kernel begin = [&] {
      for (auto i : x) {
        x[i] = p[i] * p[i];
        v[i] = 0.0;
      }
    };
    qn::Kernel push = [&](F64 at) {
      for (auto i : x) force[i] = -k[i] * sin(x[i]) + 0.1 * cos(at);
    };
    qn::Kernel move = [&] {
      for (auto i : x) {
        F64 faster = v[i] + 0.1 * force[i];
        v[i] = faster;
        x[i] = x[i] + 0.1 * faster;
      }
    };
    qn::Kernel measure = [&] {
      for (auto i : x) loss[i] = x[i] * x[i] + v[i];
    };
    const auto body = [&](int t) {
      push(0.1 * t);
      move();
    };
    // The gradients by p and k, with so many snapshots, or all states on the tape.
    const auto gradients = [&](int snapshots) {
      for (const auto& field : {p, k, x, v, force, loss}) field.grad().fill(0.0);
      loss.grad().fill(1.0);
      qn::Tape tape;
      begin();
      if (snapshots > 0)
        qn::steps(tape, n, body, qn::state(x, v), snapshots);
      else
        for (int t = 0; t < n; t++) body(t);
      measure();
      tape.backward();
      return std::array{qn::to_vector(p.grad()), qn::to_vector(k.grad())};
    };
    const auto all = gradients(0);
    CHECK(std::abs(all[0][0]) > 1e-3);
    for (int snapshots : {1, 2, 3, 5, 36, 100}) {
      INFO(snapshots << " snapshots");
      CHECK(gradients(snapshots) == all);
    }
  });
}

TEST_CASE("a harmonic oscillator has the gradient of its matrix") {
  on_every_device([](const qn::Device& device) {
    constexpr int n = 100;
    constexpr double h = 0.05;
    auto x = numbers(device, {1}), v = numbers(device, {0});
    qn::Kernel step = [&] {
      for (auto i : x) {
        F64 faster = v[i] - h * x[i];
        v[i] = faster;
        x[i] = x[i] + h * faster;
      }
    };
    x.grad().fill(2.0);  // of 2 x + 3 v behind the last step
    v.grad().fill(3.0);
    qn::Tape tape;
    qn::steps(tape, n, [&](int) { step(); }, qn::state(x, v), 4);
    tape.backward();
    double a = 2, b = 3;  // (a, b) ← (a, b) M, M of one step
    for (int t = 0; t < n; t++) {
      const double by_v = b + h * a;
      a -= h * by_v;
      b = by_v;
    }
    CHECK(x.grad().at(0) == Approx(a).epsilon(1e-12));
    CHECK(v.grad().at(0) == Approx(b).epsilon(1e-12));
    CHECK(v.at(0) == 0);  // as before the first step
  });
}

TEST_CASE("steps keep as many states as they may") {
  on_every_device([](const qn::Device& device) {
    constexpr int64_t size = 1 << 13;
    constexpr int n = 30;
    qn::Field<double> x{device, {size}};
    x.fill(0.5);
    const int64_t bytes = 8 * size;
    qn::Kernel step = [&] {
      for (auto i : x) x[i] = x[i] * x[i] + 0.1;
    };
    CHECK(qn::state(x).snapshots_in(5 * bytes + 1) == 5);
    const auto& on = device.object()->device;
    const auto most = [&](int snapshots) {
      x.fill(0.5);
      x.grad().fill(1.0);
      const uint64_t before = on->allocated();
      uint64_t peak = before;
      qn::Tape tape;
      const auto body = [&](int) {
        step();
        peak = std::max(peak, on->allocated());
      };
      if (snapshots > 0)
        qn::steps(tape, n, body, qn::state(x), snapshots);
      else
        for (int t = 0; t < n; t++) body(t);
      tape.backward();
      return double(peak - before) / double(bytes);
    };
    most(1);  // compiles
    CHECK(most(0) >= n);
    for (int snapshots : {1, 2, 5, 9}) {
      const double states = most(snapshots);
      INFO(snapshots << " snapshots, " << states << " states");
      CHECK(states >= snapshots);
      CHECK(states < snapshots + 1.5);  // and what the tape of one step keeps
    }
  });
}

TEST_CASE("steps draw the random numbers of their first run again") {
  on_every_device([](const qn::Device& device) {
    constexpr int n = 7, count = 20;
    auto x = numbers(device, {0.5, 1, -0.25, 2, 0.75, -1.5, 0.125});
    const std::vector<double> begun = qn::to_vector(x);
    qn::Field<double, 2> factors{device, {count, n}};
    qn::Field<double> shift{device, {n}};
    qn::Kernel shake = [&](I32 t) {
      for (auto i : x) {
        const F64 r = random<double>();
        factors(t, i) = r;
        shift[i] = r * x[i];
      }
    };
    qn::Kernel move = [&] {
      for (auto i : x) x[i] = x[i] + 0.25 * shift[i] * shift[i];
    };
    const auto body = [&](int t) {
      shake(t);
      if (t % 3 == 0) shake(t);  // draws others
      move();
    };
    const auto row = [&] {
      const std::vector<double> all = qn::to_vector(factors);
      return std::vector<double>(all.begin(), all.begin() + n);
    };
    device.seed(11);
    qn::Tape tape;
    qn::steps(tape, count, body, qn::state(x), 3);
    const std::vector<double> drawn_first = qn::to_vector(factors);
    shake(0);
    const std::vector<double> next = qn::to_vector(shift), end = qn::to_vector(x);
    x.grad().fill(1.0);
    tape.backward();
    CHECK(qn::to_vector(factors) == drawn_first);
    shake(0);
    const std::vector<double> later = row();
    // What goes back counts as no launch.
    device.seed(11);
    x.copy_from(begun);
    for (int t = 0; t < count; t++) body(t);
    CHECK(qn::to_vector(x) == end);
    shake(0);
    CHECK(qn::to_vector(shift) == next);
    shake(0);
    CHECK(row() == later);
    CHECK(row() != std::vector<double>(drawn_first.begin(), drawn_first.begin() + n));

    for (int i = 0; i < n; i++) {
      double at = begun[size_t(i)], slope = 1;
      for (int t = 0; t < count; t++) {
        const double r = drawn_first[size_t(t * n + i)];
        slope *= 1 + 0.5 * r * r * at;
        at += 0.25 * r * r * at * at;
      }
      CHECK(x.grad().at(i) == Approx(slope).epsilon(1e-12));
    }
  });
}

TEST_CASE("steps make fields of their own") {
  on_every_device([](const qn::Device& device) {
    auto x = numbers(device, {0.5, 0.25, -0.5});
    qn::Kernel square = [](qn::Field<double> from, qn::Field<double> to) {
      for (auto i : from) to[i] = from[i] * from[i];
    };
    qn::Kernel move = [](qn::Field<double> by, qn::Field<double> to) {
      for (auto i : to) to[i] = to[i] + 0.5 * by[i];
    };
    const auto body = [&](int) {
      qn::Field<double> squares{device, {3}}, others{device, {3}};
      square(x, squares);
      square(squares, others);
      move(others, x);
    };
    for (const int snapshots : {2, 30}) {
      const std::vector<double> begun = {0.5, 0.25, -0.5};
      x.copy_from(begun);
      x.grad().fill(1.0);
      qn::Tape tape;
      qn::steps(tape, 30, body, qn::state(x), snapshots);
      tape.backward();
      for (size_t i = 0; i < 3; i++) {
        double at = begun[i], slope = 1;
        for (int t = 0; t < 30; t++) {
          slope *= 1 + 2 * at * at * at;
          at += 0.5 * at * at * at * at;
        }
        CHECK(x.grad().at(int64_t(i)) == Approx(slope).epsilon(1e-12));
      }
    }
  });
}

TEST_CASE("what a launch overwrites before it reads it is no part of what steps carry") {
  on_every_device([](const qn::Device& device) {
    const std::vector<double> start = {0.5, -0.75, 0.25};
    auto x = numbers(device, start);
    qn::Field<double, 0> most{device}, loss{device};
    qn::Field<double> sum{device, {2}};
    qn::Kernel largest = [&] {
      most() = 0.0;
      for (auto i : x) atomic_max(most(), x[i] * x[i]);
    };
    qn::Kernel total = [&] {
      for (auto i : sum) sum[i] = 0.25;
      for (auto i : x) atomic_add(sum[1], x[i]);
    };
    qn::Kernel move = [&] {
      for (auto i : x) x[i] = x[i] - 0.1 * most() * x[i] + 0.01 * sum[1] * sum[0];
    };
    qn::Kernel measure = [&] {
      for (auto i : x) atomic_add(loss(), x[i]);
    };
    const auto gradient = [&](auto&& steps) {
      x.copy_from(start);
      for (const auto& field : {x, sum}) field.grad().fill(0.0);
      most.grad().fill(0.0);
      loss.grad().fill(1.0);
      qn::Tape tape;
      steps(tape);
      measure();
      tape.backward();
      return qn::to_vector(x.grad());
    };
    const auto step = [&](int) {
      largest();
      total();
      move();
    };
    const std::vector<double> expected = gradient([&](qn::Tape&) {
      for (int t = 0; t < 6; t++) step(t);
    });
    CHECK(expected[0] != 1);
    CHECK(gradient([&](qn::Tape& tape) { qn::steps(tape, 6, step, qn::state(x), 2); }) == expected);

    // What is read first, or not overwritten as a whole, is.
    qn::Kernel decays = [&] { most() = 0.5 * most(); };
    qn::Kernel some = [&] {
      for (auto i : sum) {
        If(x[i] > 0.0) { sum[i] = 0.0; }
      }
      for (auto i : x) atomic_add(sum[1], x[i]);
    };
    qn::Kernel one = [&] {
      sum[0] = 0.0;
      for (auto i : x) atomic_add(sum[1], x[i]);
    };
    for (const auto& kernel : {decays, some, one}) {
      const std::string found = message_of([&] {
        gradient(
            [&](qn::Tape& tape) { qn::steps(tape, 6, [&](int) { kernel(); }, qn::state(x), 2); });
      });
      INFO(found);
      CHECK(found.find("name it in state()") != std::string::npos);
    }
  });
}

TEST_CASE("steps refuse what they cannot run again") {
  const qn::Device device("cpu");
  auto x = numbers(device, {1, 2}), y = numbers(device, {3, 4});
  qn::Kernel first = [&] {
    for (auto i : x) x[i] = x[i] * y[i];
  };
  qn::Kernel second = [&] {
    for (auto i : y) y[i] = x[i];
  };
  const auto says = [&](auto&& f, const char* what) {
    const std::string found = message_of(f);
    INFO(found);
    CHECK(found.find(what) != std::string::npos);
  };
  const auto both = [&](int) {
    first();
    second();
  };
  {
    qn::Tape tape;
    says([&] { qn::steps(tape, 5, both, qn::state(x), 2); }, "name it in state()");
  }
  {
    qn::Kernel noise = [&] {
      for (auto i : x) x[i] = x[i] * random<double>();
    };
    int runs = 0;
    qn::Tape tape;
    qn::steps(
        tape, 5,
        [&](int) {
          noise();
          if (runs++ >= 5) noise();
        },
        qn::state(x), 2);
    says([&] { tape.backward(); }, "launches more kernels that draw random numbers");
  }
  {
    qn::Tape tape;
    says([&] { qn::steps(tape, 5, both, qn::state(x, y.slice(0, 0, 1)), 2); }, "view");
    says([&] { qn::steps(tape, 5, both, qn::state(x, y), 0); }, "0 are allowed");
    says([&] { qn::steps(tape, -1, both, qn::state(x, y), 1); }, "-1 steps");
    qn::steps(tape, 0, both, qn::state(x, y), 1);
    tape.backward();
    says([&] { qn::steps(tape, 5, both, qn::state(x, y), 1); }, "already");
  }
  {
    qn::Tape tape;
    first();
    x.fill(1.0);
    says([&] { qn::steps(tape, 5, both, qn::state(x, y), 2); },
         "between launches that a tape records");
  }
}
