// Launches that only add to a number, and compute what that gives to adjoints beside it.
#include "autodiff/reverse/at_once.h"

#include <quern/autodiff.h>
#include <quern/host.h>

#include <cmath>
#include <limits>
#include <vector>

#include "autodiff/reverse/reverse.h"
#include "quern/ir/lower.h"
#include "tests/autodiff/numbers.h"
#include "tests/dsl/record.h"
#include "tests/end_to_end/devices.h"

#include <quern/else.h>

using namespace qn::lang;
using qn::autodiff::Augment;
using qn::autodiff::Reverse;
using qn::ir::Op;

namespace {

constexpr qn::Options unchecked = {.checked = false};
constexpr int samples = 3000, dimensions = 6;

double input(int i, int d) { return std::sin(1.0 + 7 * i + 3 * d); }
double label(int i) { return i % 3 == 0 ? -1 : 1; }

/// Σ log(1 + exp(-y (w·x + b))) over the samples, with its derivatives.
struct ByHand {
  double value = 0, by_bias = 0;
  std::vector<double> by_weights = std::vector<double>(dimensions);
  std::vector<double> by_inputs = std::vector<double>(samples * dimensions);
  ByHand(const std::vector<double>& w, double bias) {
    for (int i = 0; i < samples; i++) {
      double sum = bias;
      for (int d = 0; d < dimensions; d++) sum += w[size_t(d)] * input(i, d);
      value += std::log(1 + std::exp(-label(i) * sum));
      const double slope = -label(i) / (1 + std::exp(label(i) * sum));
      by_bias += slope;
      for (int d = 0; d < dimensions; d++) {
        by_weights[size_t(d)] += slope * input(i, d);
        by_inputs[size_t(i * dimensions + d)] = slope * w[size_t(d)];
      }
    }
  }
};

const std::vector<double> weights = {0.5, -1.25, 0.75, 0.125, -0.5, 1};
constexpr double bias = 0.25;

/// Fields that may be views: the code is the same.
template <class X, class W>
void add_losses(const X& x, const W& w, const qn::Field<double, 0>& b,
                const qn::Field<double, 0>& loss, const qn::Field<double>& y) {
  for (auto i : range(samples)) {
    Var<double> sum = b();
    for (auto d : range(dimensions)) sum += w(d) * x(i, d);
    loss() += log(1 + exp(-y[i] * sum));
  }
}

struct Fields {
  qn::Field<double, 2> x;
  qn::Field<double> w, y;
  qn::Field<double, 0> b, loss;
  qn::Kernel<void()> run;
  explicit Fields(const qn::Device& device)
      : x{device, {samples, dimensions}},
        w(numbers(device, weights)),
        y{device, {samples}},
        b{device},
        loss{device},
        run{[this] { add_losses(x, w, b, loss, y); }, unchecked} {
    std::vector<double> all, labels;
    for (int i = 0; i < samples; i++) {
      labels.push_back(label(i));
      for (int d = 0; d < dimensions; d++) all.push_back(input(i, d));
    }
    x.copy_from(all);
    y.copy_from(labels);
    b.fill(bias);
  }
  void expect_weights(double share, double before = 0) const {
    const ByHand by_hand(weights, bias);
    for (int d = 0; d < dimensions; d++)
      CHECK(w.grad().at(d) ==
            Approx(before + share * by_hand.by_weights[size_t(d)]).epsilon(1e-11));
    CHECK(b.grad().at({}) == Approx(before + share * by_hand.by_bias).epsilon(1e-11));
  }
};

template <class F>
Reverse reverse_of(F body, std::vector<bool> inputs, bool strict = false, bool checked = false) {
  auto kernel = qn::test::record(body);
  qn::ir::finish_recording(*kernel);
  kernel->modes.checked = checked;
  kernel->modes.strict = strict;
  std::vector<uint32_t> apart;
  for (uint32_t k = 0; k < kernel->bindings.size(); k++) apart.push_back(k + 1);
  return qn::autodiff::reverse(*kernel, {kernel->modes, apart}, std::move(inputs), {}, false, false,
                               Augment::where_it_pays);
}

size_t count_of(const qn::ir::Kernel& kernel, Op op) {
  size_t n = 0;
  qn::ir::walk(kernel.body, [&](const qn::ir::Inst* inst) { n += inst->is(op); });
  return n;
}

/// The tape keeps the gradient alone, of so many bytes; going back the other way would want none.
void expect_at_once(const qn::Tape& tape, uint64_t bytes) {
  CHECK(tape.memory() >= bytes);
  CHECK(tape.memory() <= bytes + 2 * 64);
}

using Number = qn::Field<double, 0>;
using Row = qn::Field<double>;

}  // namespace

TEST_CASE(
    "a launch that only adds to a number computes its gradient, which going back multiplies") {
  const Reverse found = reverse_of(
      [](Row x, Number w, Number sum) {
        for (auto i : x) sum() += exp(x[i] * w());
      },
      {true, true, true});
  REQUIRE(found.augmented.at_once);
  CHECK(found.augmented.at_once->kept.size() == 2);
  CHECK(count_of(*found.augmented.kernel, Op::exp) == 1);
  CHECK(count_of(*found.kernel, Op::exp) == 0);
  CHECK(found.reads == std::vector<bool>(3, false));  // no snapshots
}

TEST_CASE("what does more than add to a number is gone back through as a whole") {
  const auto is_at_once = [](auto body, std::vector<bool> inputs) {
    return bool(reverse_of(body, std::move(inputs)).augmented.at_once);
  };
  const auto sum_of = [](Row x, Row, Number sum) {
    for (auto i : x) sum() += exp(x[i]);
  };
  CHECK(is_at_once(sum_of, {true, false, true}));
  CHECK_FALSE(reverse_of(sum_of, {true, false, true}, true).augmented.at_once);
  CHECK_FALSE(reverse_of(sum_of, {true, false, true}, false, true).augmented.at_once);
  CHECK_FALSE(is_at_once(
      [](Row x, Row y, Number sum) {
        for (auto i : x) {
          y[i] = exp(x[i]);
          sum() += exp(x[i]);
        }
      },
      {true, true, true}));
  CHECK_FALSE(is_at_once(
      [](Row x, Number other, Number sum) {
        for (auto i : x) {
          other() += x[i];
          sum() += exp(x[i]);
        }
      },
      {true, true, true}));
  CHECK_FALSE(is_at_once(
      [](Row x, Row, Number sum) {
        for (auto i : x) sum() -= exp(x[i]);
        sum() = 2 * sum();
      },
      {true, false, true}));
  CHECK_FALSE(is_at_once(
      [](Row x, Row, Number sum) {
        for (auto i : x) atomic_min(sum(), exp(x[i]));
      },
      {true, false, true}));
  CHECK_FALSE(is_at_once(  // how much work there is only the device knows
      [](Row x, Row y, Number sum) {
        for (auto i : range(cast<int>(y[0]))) sum() += exp(x[i]);
      },
      {true, false, true}));
  CHECK_FALSE(is_at_once(
      [](Row x, Row y, Number) {
        for (auto i : x) y[0] += exp(x[i]);
      },
      {true, true, true}));
}

TEST_CASE("results of the math library are computed once where the value is wanted too") {
  const auto exponentials = [](int rounds, bool known) {
    const Reverse found = reverse_of(
        [=](Row x, Row w, Number sum) {
          for (auto i : x) {
            Var<double> all = 0;
            const I32 end = known ? I32(rounds) : I32(cast<int>(w.dim(0)));
            for (auto c : range(end)) all += exp(x[i] * w[c]);
            sum() += log(all);
          }
        },
        {true, true, true});
    REQUIRE(found.augmented.at_once);
    return count_of(*found.augmented.kernel, Op::exp);
  };
  CHECK(exponentials(20, true) == 1);
  CHECK(exponentials(1000, true) == 1);
  CHECK(exponentials(5000, true) == 2);  // too many to keep in each iteration
  CHECK(exponentials(0, false) == 2);
}

TEST_CASE("what a loop of sums keeps is that of its rounds, whatever these begin with") {
  on_every_device([](const qn::Device& device) {
    constexpr int n = 500, from = -3, to = 26, step = 4;
    const Row a = numbers(device, {0.125, -0.25});
    const Number sum{device};
    const qn::Kernel<void()> run{[&] {
                                   for (auto i : range(n)) {
                                     Var<double> all = 0;
                                     F64 x = cast<double>(i) / n;
                                     for (auto c : range(from, to, step)) {
                                       F64 v = cast<double>(c) * a[0] * x;
                                       all += exp(v) * sin(a[1] * v);
                                     }
                                     sum() += all * all;
                                   }
                                 },
                                 unchecked};
    sum.fill(0);
    sum.grad().fill(1);
    a.grad().fill(0);
    qn::Tape tape;
    run();
    expect_at_once(tape, 2 * 8);
    tape.backward();
    double value = 0, by_0 = 0, by_1 = 0;
    for (int i = 0; i < n; i++) {
      double all = 0, slope_0 = 0, slope_1 = 0;
      for (int c = from; c < to; c += step) {
        const double factor = c * double(i) / n, v = factor * 0.125;
        all += std::exp(v) * std::sin(-0.25 * v);
        slope_0 += factor * std::exp(v) * (std::sin(-0.25 * v) - 0.25 * std::cos(-0.25 * v));
        slope_1 += v * std::exp(v) * std::cos(-0.25 * v);
      }
      value += all * all;
      by_0 += 2 * all * slope_0;
      by_1 += 2 * all * slope_1;
    }
    CHECK(sum.at({}) == Approx(value).epsilon(1e-12));
    CHECK(a.grad().at(0) == Approx(by_0).epsilon(1e-11));
    CHECK(a.grad().at(1) == Approx(by_1).epsilon(1e-11));
  });
}

TEST_CASE("loops that the primal's launch goes through keep nothing for who goes back") {
  on_every_device([](const qn::Device& device) {
    constexpr int n = 400;
    const Row a = numbers(device, {0.25, 0.75});
    // The sums are kept by the primal's launch, as what is carried takes rows of a field.
    const qn::Kernel<double()> run{[&]() -> F64 {
                                     Var<double> sum = 0.0;
                                     for (auto i : range(n)) {
                                       Var<double> q = 0.0;
                                       for (auto c : range(5))
                                         q += exp(a[0] * cast<double>(i % 7 + c) * 0.1);
                                       Var<double> v = a[0];
                                       for (auto r : range(i % 5)) {
                                         (void)r;
                                         v = sin(v * a[1]) + 0.1 * q;
                                       }
                                       sum += v;
                                     }
                                     return sum;
                                   },
                                   unchecked};
    const double found = qn::value_and_grad(run, qn::wrt(a))().value();
    double value = 0, by_0 = 0, by_1 = 0;
    for (int i = 0; i < n; i++) {
      double q = 0, q_0 = 0;
      for (int c = 0; c < 5; c++) {
        q += std::exp(0.25 * (i % 7 + c) * 0.1);
        q_0 += (i % 7 + c) * 0.1 * std::exp(0.25 * (i % 7 + c) * 0.1);
      }
      double v = 0.25, v_0 = 1, v_1 = 0;
      for (int r = 0; r < i % 5; r++) {
        const double slope = std::cos(v * 0.75);
        v_1 = slope * (v_1 * 0.75 + v);
        v_0 = slope * v_0 * 0.75 + 0.1 * q_0;
        v = std::sin(v * 0.75) + 0.1 * q;
      }
      value += v;
      by_0 += v_0;
      by_1 += v_1;
    }
    CHECK(found == Approx(value).epsilon(1e-12));
    CHECK(a.grad().at(0) == Approx(by_0).epsilon(1e-11));
    CHECK(a.grad().at(1) == Approx(by_1).epsilon(1e-11));
  });
}

TEST_CASE("many loops of sums keep no more than a few") {
  const auto kept = [](int loops) {
    const Reverse found = reverse_of(
        [=](Row x, Row, Number sum) {
          for (auto i : x) {
            Var<double> all = 0;
            for (int k = 0; k < loops; k++) {
              Var<double> terms = 0;
              for (auto c : range(1000)) terms += exp(x[i] * cast<double>(c + k));
              all += log(terms);
            }
            sum() += all;
          }
        },
        {true, false, true});
    REQUIRE(found.augmented.at_once);
    uint64_t bytes = 0;
    qn::ir::walk(found.augmented.kernel->body, [&](const qn::ir::Inst* inst) {
      if (inst->is(Op::slot)) bytes += inst->imm * qn::ir::byte_size(inst->elem);
    });
    return bytes;
  };
  CHECK(kept(1) >= 8000);
  CHECK(kept(40) >= 16000);
  CHECK(kept(40) <= 17000);
}

TEST_CASE("functions with pullbacks of their own are given the adjoint as it is") {
  on_every_device([](const qn::Device& device) {
    constexpr int n = 4000;
    const qn::Func same = [](F64 v) { return Val<double>(v * 1.0); };
    const auto clipped = qn::differentiable(
        same, qn::pullback([](F64, F64, F64 adjoint) { return min(max(adjoint, -1.0), 1.0); }));
    const Row x = numbers(device, {0.5, 0.25});
    const qn::Field<int> which{device, {n}};
    for (int i = 0; i < n; i++) which.set(i, i % 2);
    const Number sum{device};
    const qn::Kernel<void()> run{[&] {
                                   for (auto i : which) sum() += exp(clipped(x[which[i]]));
                                 },
                                 unchecked};
    sum.fill(0);
    sum.grad().fill(100);
    x.grad().fill(0);
    qn::Tape tape;
    run();
    tape.backward();
    CHECK(x.grad().at(0) == n / 2);  // each at most 1, not each times 100
    CHECK(x.grad().at(1) == n / 2);
  });
}

TEST_CASE("gradients at once are those by hand, times the number's adjoint") {
  on_every_device([](const qn::Device& device) {
    const Fields f(device);
    const ByHand by_hand(weights, bias);
    for (double seed : {1.0, -0.5, 0.0}) {
      INFO(seed);
      f.loss.fill(2);
      f.loss.grad().fill(seed);
      f.w.grad().fill(3);  // is added to
      f.b.grad().fill(3);
      qn::Tape tape(qn::wrt(f.w, f.b));
      f.run();
      CHECK(f.loss.at({}) == Approx(2 + by_hand.value).epsilon(1e-12));
      // Of the weights and the bias, but of no sample.
      expect_at_once(tape, (dimensions + 1) * 8);
      CHECK(tape.memory_for(100).kept == 100 * tape.memory());
      CHECK(tape.memory_for(100).unknown == 0);
      tape.backward();
      CHECK(tape.memory() == 0);
      f.expect_weights(seed, 3);
    }
  });
}

TEST_CASE("launches at once are parts of a program like others") {
  on_every_device([](const qn::Device& device) {
    const Fields f(device);
    const Row start{device, {dimensions}};
    const Number square{device};
    std::vector<double> logarithms;
    for (double w : weights) logarithms.push_back(std::asinh(w));
    start.copy_from(logarithms);
    const qn::Kernel<void()> begin{[&] {
      f.loss() = 0;
      for (auto d : start) f.w[d] = sinh(start[d]);
    }};
    const qn::Kernel<void()> change{[&] {
      for (auto d : f.w) f.w[d] = 0;
    }};
    const qn::Kernel<void()> finish{[&] { square() = f.loss() * f.loss(); }};
    square.grad().fill(1);
    f.loss.grad().fill(0);
    f.w.grad().fill(0);
    start.grad().fill(0);
    qn::Tape tape(qn::wrt(start));
    begin();
    f.run();
    f.run();   // what it added to is added to again
    change();  // it has no part in what was launched before
    finish();
    tape.backward();
    const ByHand by_hand(weights, bias);
    CHECK(square.at({}) == Approx(4 * by_hand.value * by_hand.value).epsilon(1e-12));
    for (int d = 0; d < dimensions; d++) {
      const double slope = std::cosh(std::asinh(weights[size_t(d)]));
      CHECK(start.grad().at(d) ==
            Approx(8 * by_hand.value * by_hand.by_weights[size_t(d)] * slope).epsilon(1e-11));
    }
  });
}

TEST_CASE("gradients at once are taken by views, from any first index") {
  on_every_device([](const qn::Device& device) {
    const Fields f(device);
    const qn::Field<double, 2> wide{device, {dimensions, 2 * samples}};
    const qn::Field<double, 2> x = wide.slice(1, 0, 2 * samples, 2).transposed();
    x.copy_from(qn::to_vector(f.x));
    const Row w = f.w.flipped(0).rebased({-2});
    const qn::Kernel<void()> run{[&] {
                                   for (auto i : range(samples)) {
                                     Var<double> sum = f.b();
                                     for (auto d : range(dimensions))
                                       sum += w(dimensions - 3 - d) * x(i, d);
                                     f.loss() += log(1 + exp(-f.y[i] * sum));
                                   }
                                 },
                                 unchecked};
    f.loss.grad().fill(1);
    for (const Row& row : {f.w}) row.grad().fill(0);
    f.b.grad().fill(0);
    qn::Tape tape(qn::wrt(f.w, f.b));
    run();
    expect_at_once(tape, (dimensions + 1) * 8);
    tape.backward();
    f.expect_weights(1);
  });
}

TEST_CASE("inputs with more elements than work keep no gradient") {
  on_every_device([](const qn::Device& device) {
    const Fields f(device);
    f.loss.grad().fill(1);
    f.x.grad().fill(0);
    f.w.grad().fill(0);
    f.b.grad().fill(0);
    const qn::Field<double, 2> table{device, {100 * samples, dimensions}};
    const qn::Kernel<void()> run{[&] {
                                   for (auto i : range(samples)) {
                                     Var<double> sum = f.b();
                                     for (auto d : range(dimensions))
                                       sum += f.w[d] * table(100 * i, d);
                                     f.loss() += log(1 + exp(-f.y[i] * sum));
                                   }
                                 },
                                 unchecked};
    for (auto& view : {table.slice(0, 0, 100 * samples, 100)}) view.copy_from(qn::to_vector(f.x));
    table.grad().fill(0);
    qn::Tape tape(qn::wrt(table, f.w, f.b));
    run();
    CHECK(tape.memory() < 100'000);  // no gradient of the table
    tape.backward();
    f.expect_weights(1);
    const ByHand by_hand(weights, bias);
    for (int i : {0, 1, 17, samples - 1})
      for (int d = 0; d < dimensions; d++)
        CHECK(table.grad().at({100 * i, d}) ==
              Approx(by_hand.by_inputs[size_t(i * dimensions + d)]).epsilon(1e-12));
  });
}

TEST_CASE("gradients at once go through branches, loops, and what stands outside of loops") {
  on_every_device([](const qn::Device& device) {
    constexpr int n = 4000;
    const Row a = numbers(device, {0.75, 1.5});
    const Number sum{device};
    const qn::Kernel<void()> run{[&] {
                                   for (auto i : range(n)) {
                                     Var<double> v = a[0];
                                     for (auto k : range(12))  // for each binary digit of i
                                       If((i >> k) > 0) { v *= a[1]; }
                                     If(i % 2 == 0) { sum() += sin(v); }
                                     Else { sum() += v * 1e-3; }
                                     sum() += cast<double>(i);  // has no part in the gradient
                                   }
                                   for (auto j : serial(range(3)))
                                     sum() += cast<double>(j) * a[0] * a[0];
                                   If(a[1] > 1) { sum() += exp(a[1]); }
                                 },
                                 unchecked};
    sum.fill(0);
    sum.grad().fill(2);
    a.grad().fill(0);
    qn::Tape tape;
    run();
    expect_at_once(tape, 2 * 8);
    tape.backward();
    double value = 3 * 0.75 * 0.75 + std::exp(1.5), by_0 = 6 * 0.75, by_1 = std::exp(1.5);
    for (int i = 0; i < n; i++) {
      int digits = 0;
      for (int k = i; k > 0; k /= 2) digits++;
      const double power = std::pow(1.5, digits), v = 0.75 * power;
      const double slope = i % 2 == 0 ? std::cos(v) : 1e-3;
      value += (i % 2 == 0 ? std::sin(v) : 1e-3 * v) + i;
      by_0 += slope * power;
      by_1 += slope * 0.75 * digits * std::pow(1.5, digits - 1);
    }
    CHECK(sum.at({}) == Approx(value).epsilon(1e-12));
    CHECK(a.grad().at(0) == Approx(2 * by_0).epsilon(1e-10));
    CHECK(a.grad().at(1) == Approx(2 * by_1).epsilon(1e-10));
  });
}

TEST_CASE("gradients at once have the random numbers of their launch") {
  on_every_device([](const qn::Device& device) {
    constexpr int n = 5000;
    const Number a{device}, sum{device};
    const Row drawn{device, {n}};
    const auto term = [&](F64 r) { return exp(a() * r); };
    const qn::Kernel<void()> run{[&] {
                                   for (auto i : range(n)) {
                                     (void)i;
                                     sum() += term(random<double>());
                                   }
                                 },
                                 unchecked};
    const qn::Kernel<void()> draw{[&] {
      for (auto i : drawn) drawn[i] = random<double>();
    }};
    a.fill(0.5);
    a.grad().fill(0);
    sum.fill(0);
    sum.grad().fill(1);
    device.seed(7);
    draw();
    device.seed(7);
    qn::Tape tape;
    run();
    expect_at_once(tape, 8);
    tape.backward();
    double value = 0, by_a = 0;
    for (double r : qn::to_vector(drawn)) {
      value += std::exp(0.5 * r);
      by_a += r * std::exp(0.5 * r);
    }
    CHECK(sum.at({}) == Approx(value).epsilon(1e-12));
    CHECK(a.grad().at({}) == Approx(by_a).epsilon(1e-12));
  });
}

TEST_CASE("what has no part in a sum gets a zero from any adjoint of it") {
  on_every_device([](const qn::Device& device) {
    const Row x = numbers(device, {0.5, 0.25, 3});
    const qn::Field<int> which{device, {6000}};
    which.fill(0);
    const Number sum{device};
    const qn::Kernel<void()> run{[&] {
                                   for (auto i : which) sum() += exp(x[which[i]]);
                                 },
                                 unchecked};
    for (double seed :
         {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
      sum.fill(0);
      sum.grad().fill(seed);
      x.grad().fill(0);
      qn::Tape tape(qn::wrt(x));
      run();
      expect_at_once(tape, 3 * 8);
      tape.backward();
      CHECK(x.grad().at(2) == 0);
      CHECK_FALSE(std::isfinite(x.grad().at(0)));
    }
  });
}

TEST_CASE("an adjoint of 0 gives zeros, whatever the gradient at once is") {
  on_every_device([](const qn::Device& device) {
    constexpr int n = 3000;
    const Row x = numbers(device, std::vector<double>(n, 1e300));
    const Number a{device}, sum{device};
    const qn::Kernel<void()> run{[&] {
                                   for (auto i : x) sum() += exp(a() * x[i]);
                                 },
                                 unchecked};
    a.fill(1);
    for (double seed : {0.0, 1.0}) {
      a.grad().fill(0);
      sum.fill(0);
      sum.grad().fill(seed);
      qn::Tape tape(qn::wrt(a));
      run();
      expect_at_once(tape, 8);
      tape.backward();
      CHECK(sum.at({}) == std::numeric_limits<double>::infinity());
      CHECK(a.grad().at({}) == (seed == 0 ? 0 : std::numeric_limits<double>::infinity()));
    }
  });
}
