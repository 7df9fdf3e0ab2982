// Loops between constants whose rounds the primal's launch keeps, as running them again takes
// longer.
#include <quern/autodiff.h>

#include <cmath>
#include <vector>

#include "autodiff/reverse/augmented.h"
#include "autodiff/reverse/reverse.h"
#include "quern/ir/lower.h"
#include "tests/autodiff/numbers.h"
#include "tests/dsl/record.h"
#include "tests/end_to_end/devices.h"

using namespace qn::lang;
using qn::autodiff::Augment;
using qn::autodiff::Reverse;
using qn::ir::Op;
using qn::ir::Type;
using Types = std::vector<Type>;

namespace {

constexpr qn::Options unchecked = {.checked = false};

/// Of a kernel over two fields of doubles, the second of which it writes.
template <class F>
Reverse reverse_of(F&& body, Augment augment, bool with_values = false) {
  auto kernel = qn::test::record(std::forward<F>(body));
  qn::ir::finish_recording(*kernel);
  kernel->modes.checked = false;
  return qn::autodiff::reverse(*kernel, {kernel->modes, {1, 2}}, {true, true}, {}, with_values,
                               false, augment);
}

size_t count_of(const qn::ir::Kernel& kernel, Op op) {
  size_t n = 0;
  qn::ir::walk(kernel.body, [&](const qn::ir::Inst* inst) { n += inst->is(op); });
  return n;
}

F64 next(F64 v) { return sin(v) * exp(-v * v); }

/// `rounds` of next().
auto rounds_of(int rounds) {
  return [=](qn::Field<double> x, qn::Field<double> y) {
    for (auto i : y) {
      Var<double> v = x[i];
      for (auto t : range(rounds)) {
        (void)t;
        v = next(v);
      }
      y[i] = v;
    }
  };
}

}  // namespace

TEST_CASE("rounds between constants are kept by the primal's launch where that spares much") {
  const Reverse again = reverse_of(rounds_of(200), Augment::never),
                kept = reverse_of(rounds_of(200), Augment::where_it_pays);
  CHECK_FALSE(again.augmented);
  CHECK(count_of(*again.kernel, Op::exp) == 1);
  CHECK(count_of(*again.kernel, Op::loop) == 2);
  REQUIRE(kept.augmented);
  CHECK(count_of(*kept.kernel, Op::exp) == 0);
  CHECK(count_of(*kept.kernel, Op::loop) == 1);
  CHECK(count_of(*kept.kernel, Op::slot) == 0);
  REQUIRE(kept.augmented.sites.size() == 1);
  CHECK(kept.augmented.sites[0].rows == Types(4, Type::f64));  // v, sin v, its slope, exp

  // Few rounds are not worth one more kernel; nor a launch that is run for the value anyway.
  CHECK_FALSE(reverse_of(rounds_of(5), Augment::where_it_pays).augmented);
  CHECK(reverse_of(rounds_of(5), Augment::wherever_possible).augmented);
  const auto value = [](qn::Field<double> x, qn::Field<double>) -> F64 {
    Var<double> sum = 0.0;
    for (auto i : x) {
      Var<double> v = x[i];
      for (auto t : range(200)) {
        (void)t;
        v = next(v);
      }
      sum += v;
    }
    return sum;
  };
  const Reverse at_once = reverse_of(value, Augment::where_it_pays, true);
  CHECK(at_once.yields_values);
  CHECK_FALSE(at_once.augmented);
}

TEST_CASE("rounds between constants that leave an array are run again") {
  const auto fills = [](qn::Field<double> x, qn::Field<double> y) {
    for (auto i : y) {
      Var<double> v = x[i];
      Var<Array<double, 8>> last;
      for (auto t : range(50)) {
        v = next(v);
        last[t % 8] = v;
      }
      y[i] = v * last[cast<int>(i) % 8];
    }
  };
  CHECK_FALSE(reverse_of(fills, Augment::wherever_possible).augmented);
}

TEST_CASE("a row holds no result that is the same for all iterations") {
  const auto decays = [](bool by_iteration) {
    return [=](qn::Field<double> x, qn::Field<double> y) {
      for (auto i : y) {
        Var<double> v = x[i];
        for (auto t : range(100)) {
          F64 from = by_iteration ? F64(cast<double>(i)) : F64(0.5);
          v = sin(v) * exp(-0.01 * (cast<double>(t) + from));
        }
        y[i] = v;
      }
    };
  };
  const Reverse shared = reverse_of(decays(false), Augment::where_it_pays),
                own = reverse_of(decays(true), Augment::where_it_pays);
  REQUIRE(shared.augmented);
  REQUIRE(own.augmented);
  // The slope of the sine, and the exponential or not; sin v itself nobody wants.
  CHECK(shared.augmented.sites[0].rows == Types(1, Type::f64));
  CHECK(count_of(*shared.kernel, Op::exp) == 1);
  CHECK(own.augmented.sites[0].rows == Types(2, Type::f64));
  CHECK(count_of(*own.kernel, Op::exp) == 0);
}

TEST_CASE("what a function's rule does not read to give what varies is not kept for it") {
  // w + t (v - w), linear in v: its rule reads v for the derivative by t alone.
  const auto blends = [](bool t_varies) {
    return [=](qn::Field<double> x, qn::Field<double> y) {
      auto blend = qn::differentiable([](F64 v, F64 w, F64 t) { return w + t * (v - w); },
                                      qn::pullback([](F64 v, F64 w, F64 t, F64, F64 dy) {
                                        return result(t * dy, (1.0 - t) * dy, (v - w) * dy);
                                      }));
      for (auto i : y) {
        Var<double> v = x[i];
        F64 t = t_varies ? F64(x[0]) : F64(0.25);
        for (auto n : range(1000)) v = blend(v, cast<double>(n), t);
        y[i] = v;
      }
    };
  };
  const Reverse fixed = reverse_of(blends(false), Augment::never),
                varying = reverse_of(blends(true), Augment::never);
  CHECK(fixed.rows.empty());
  CHECK(count_of(*fixed.kernel, Op::slot) == 0);
  CHECK(varying.rows == std::vector<Types>(1, Types(1, Type::f64)));
}

namespace {

/// The number, after which nothing is lost of how it began, and its derivative by the one before.
double after(double v, double scale) {
  return v + 0.05 * scale * std::sin(3 * v) * std::exp(-v * v);
}
double slope_at(double v, double scale) {
  return 1 + 0.05 * scale * (3 * std::cos(3 * v) - 2 * v * std::sin(3 * v)) * std::exp(-v * v);
}

}  // namespace

TEST_CASE("gradients through rounds between constants that the primal's launch keeps") {
  on_every_device([](const qn::Device& device) {
    constexpr int rounds = 80;
    constexpr double scale = 0.875;
    const std::vector<double> starts = {0.5, -0.25, 0.75, 1.25, -0.5};
    auto x = numbers(device, starts);
    qn::Field<double> y{device, {starts.size()}}, trace{device, {rounds}};
    qn::Kernel<void(F64)> run{[&](F64 s) {
                                for (auto i : y) {
                                  Var<double> v = x[i];
                                  If(i != 3) {
                                    for (auto t : range(rounds)) {
                                      v = v + 0.05 * s * sin(3.0 * v) * exp(-v * v) +
                                          0.01 * exp(-0.1 * cast<double>(t));
                                      If(i == 1) { trace[t] = v; }
                                    }
                                  }
                                  y[i] = v * v;
                                }
                              },
                              unchecked};
    std::vector<double> values, by_start;
    double by_scale = 0;
    for (size_t i = 0; i < starts.size(); i++) {
      std::vector<double> v = {starts[i]};
      for (int t = 0; i != 3 && t < rounds; t++)
        v.push_back(after(v.back(), scale) + 0.01 * std::exp(-0.1 * t));
      double by_v = 2 * v.back();
      for (size_t t = v.size() - 1; t-- > 0;) {
        if (i == 1) by_v += 0.5;
        by_scale += by_v * 0.05 * std::sin(3 * v[t]) * std::exp(-v[t] * v[t]);
        by_v *= slope_at(v[t], scale);
      }
      values.push_back(v.back() * v.back());
      by_start.push_back(by_v);
    }
    const auto clear = [&] {
      trace.grad().fill(0.5);
      y.grad().fill(1);
      x.grad().fill(0);
    };
    const auto expect_gradient = [&] {
      for (size_t i = 0; i < starts.size(); i++) {
        CHECK(y.at(int64_t(i)) == Approx(values[i]).epsilon(1e-12));
        CHECK(x.grad().at(int64_t(i)) == Approx(by_start[i]).epsilon(1e-11));
      }
    };
    clear();
    auto back = qn::vjp(run)(scale);
    CHECK(back().get<0>() == Approx(by_scale).epsilon(1e-11));
    expect_gradient();
    clear();
    qn::Tape tape;
    run(scale);
    CHECK(tape.memory() >= rounds * starts.size() * 4 * sizeof(double));
    tape.backward();
    expect_gradient();
  });
}

TEST_CASE("rounds between constants that memory has no room for are run again") {
  const qn::Device device("cpu");
  constexpr int64_t many = 200'000;  // times 120 rounds of 16 bytes, which are more than 256 MiB
  qn::Field<float> x{device, {many}}, y{device, {many}};
  qn::Kernel<void()> run{[&] {
                           for (auto i : y) {
                             Var<float> v = x[i];
                             for (auto t : range(120)) {
                               (void)t;
                               v = v + 0.05f * sin(3.0f * v) * exp(-v * v);
                             }
                             y[i] = v;
                           }
                         },
                         unchecked};
  x.fill(0.5f);
  x.grad().fill(0);
  y.grad().fill(1);
  qn::Tape tape;
  run();
  CHECK(tape.memory() < uint64_t(many) * 120);
  tape.backward();
  double v = 0.5, slope = 1;
  for (int t = 0; t < 120; t++) {
    slope *= slope_at(v, 1);
    v = after(v, 1);
  }
  CHECK(std::abs(slope) > 1e-4);
  CHECK(x.grad().at(0) == Approx(slope).epsilon(1e-3));
  CHECK(x.grad().at(many - 1) == x.grad().at(0));
}

TEST_CASE("a loop in a branch that floats decide on is run again, and others are not for that") {
  const auto two = [](int rounds_of_branch) {
    return [=](qn::Field<double> x, qn::Field<double> y) {
      for (auto i : y) {
        Var<double> v = x[i];
        for (auto t : range(x.dim(0))) {
          (void)t;
          v = next(v);
        }
        If(v > 0.25) {
          for (auto t : range(rounds_of_branch)) {
            (void)t;
            v = next(v);
          }
        }
        y[i] = v;
      }
    };
  };
  for (int rounds : {10, 200}) {
    const Reverse reverse = reverse_of(two(rounds), Augment::where_it_pays);
    REQUIRE(reverse.augmented);
    CHECK(reverse.augmented.sites.size() == 1);
    CHECK_FALSE(reverse.count);
  }
}
