// Arrays and loops' results that the primal's launch keeps: which, and that derivatives are right.
#include "autodiff/plans/kept_results.h"

#include <quern/autodiff.h>
#include <quern/host.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <type_traits>
#include <vector>

#include "autodiff/reverse/reverse.h"
#include "quern/ir/lower.h"
#include "tests/autodiff/numbers.h"
#include "tests/dsl/record.h"
#include "tests/end_to_end/devices.h"
#include "tests/end_to_end/output.h"

#include <quern/else.h>

using namespace qn::lang;
using qn::autodiff::Augment;
using qn::autodiff::Reverse;
using qn::ir::Op;

namespace {

constexpr qn::Options unchecked = {.checked = false};
constexpr int parts = 8, waves = 30;

/// Σ_j sin((c + j) x): the cost of a term.
F64 term_of(F64 x, I32 c) {
  Var<double> sum = 0;
  for (auto j : range(waves)) sum += sin(cast<double>(c + j) * x);
  return sum;
}
/// With its derivative.
struct Term {
  double value = 0, slope = 0;
  Term(double x, int c) {
    for (int j = 0; j < waves; j++) {
      value += std::sin((c + j) * x);
      slope += (c + j) * std::cos((c + j) * x);
    }
  }
};

/// log Σ exp of them, which array elements hold.
template <class Terms>
F64 log_of_sum(const Terms& term) {
  Var<double> most = term[0];
  for (auto c : serial(range(parts))) most = max(most, F64(term[c]));
  Var<double> sum = 0;
  for (auto c : serial(range(parts))) sum += exp(term[c] - most);
  return most + log(sum);
}

/// Of each x.
void find_log_of_sum(const qn::Field<double>& x, const qn::Field<double>& y) {
  qn::Kernel f{[&] {
                 for (auto i : y) {
                   Var<Array<double, parts>> term;
                   for (auto c : range(parts)) term[c] = term_of(x[i], c);
                   y[i] = log_of_sum(term);
                 }
               },
               unchecked};
  f();
}
double slope_of_log_of_sum(double x) {
  double sum = 0, slope = 0;
  for (int c = 0; c < parts; c++) {
    const Term term(x, c);
    sum += std::exp(term.value);
    slope += std::exp(term.value) * term.slope;
  }
  return slope / sum;
}

template <class F>
Reverse reverse_of(Augment augment, F&& body) {
  auto kernel = qn::test::record(std::forward<F>(body));
  qn::ir::finish_recording(*kernel);
  kernel->modes.checked = false;
  return qn::autodiff::reverse(*kernel, {kernel->modes, {1, 2}}, {true, true}, {}, false, false,
                               augment);
}

int count(const qn::ir::Kernel& kernel, Op op) {
  int n = 0;
  qn::ir::walk(kernel.body, [&](const qn::ir::Inst* inst) { n += inst->is(op); });
  return n;
}

const std::vector<double> points = {0.5, -0.25, 1.75, 0.03125, -2, 0.625, 1};

/// y[i] of x[i], by a tape, in each of the ways.
void expect_slopes(
    const std::function<void(const qn::Field<double>&, const qn::Field<double>&)>& run,
    const std::function<double(double)>& slope) {
  on_every_device([&](const qn::Device& device) {
    auto x = numbers(device, points);
    qn::Field<double> y{device, {points.size()}};
    for (int again = 0; again < 2; again++) {
      x.grad().fill(0);
      qn::Tape tape;
      run(x, y);
      y.grad().fill(1);
      tape.backward();
      for (size_t i = 0; i < points.size(); i++)
        CHECK(x.grad().at(int64_t(i)) == Approx(slope(points[i])).epsilon(1e-10));
    }
  });
}

}  // namespace

TEST_CASE("terms that the primal's launch has kept are not computed again") {
  const auto body = [](qn::Field<double> x, qn::Field<double> y) {
    for (auto i : y) {
      Var<Array<double, parts>> term;
      for (auto c : range(parts)) term[c] = term_of(x[i], c);
      y[i] = log_of_sum(term);
    }
  };
  const Reverse plain = reverse_of(Augment::never, body),
                kept = reverse_of(Augment::where_it_pays, body);
  CHECK_FALSE(plain.augmented);
  CHECK(count(*plain.kernel, Op::sin) == 1);
  CHECK(count(*plain.kernel, Op::slot) == 2);  // the terms, and their adjoints
  REQUIRE(kept.augmented);
  CHECK(count(*kept.kernel, Op::sin) == 0);
  CHECK(count(*kept.kernel, Op::slot) == 1);
  CHECK(count(*kept.kernel, Op::exp) == 1);
  REQUIRE(kept.augmented.sites.size() == 2);  // the terms, and the sum of their exponentials
  CHECK(count(*kept.augmented.kernel, Op::store) == 1 + 2);
}

TEST_CASE("what spares little is computed again, unless nothing else will do") {
  const auto body = [](qn::Field<double> x, qn::Field<double> y) {
    for (auto i : y) {
      Var<Array<double, parts>> term;
      for (auto c : range(parts)) term[c] = sin(cast<double>(c) * x[i]);
      y[i] = log_of_sum(term);
    }
  };
  CHECK_FALSE(reverse_of(Augment::where_it_pays, body).augmented);
  CHECK(reverse_of(Augment::wherever_possible, body).augmented);
}

namespace {

constexpr int summed = 14;

/// A sum that going back wants, and one that it does not, in one loop.
void sums_of_rounds(const qn::Field<double>& x, const qn::Field<double>& y, int iterations) {
  for (auto i : range(iterations)) {
    Var<double> sum = 2, right = 0;
    for (auto c : range(summed)) {
      sum += exp(0.1 * cast<double>(c) * x[i]);
      right += cast<double>(c) * x[i];
    }
    y[i] = log(sum) - right;
  }
}

}  // namespace

TEST_CASE("what few iterations spare is computed again, and kept by a thousand") {
  const auto of = [](int iterations) {
    return reverse_of(Augment::where_it_pays, [=](qn::Field<double> x, qn::Field<double> y) {
      sums_of_rounds(x, y, iterations);
    });
  };
  const Reverse few = of(20), many = of(1000);
  CHECK_FALSE(few.augmented);
  CHECK(count(*few.kernel, Op::exp) == 2);
  REQUIRE(many.augmented);
  CHECK(many.augmented.sites.size() == 1);
  CHECK(count(*many.kernel, Op::exp) == 1);
  CHECK(count(*many.augmented.kernel, Op::store) == 1 + 1);
}

TEST_CASE("gradients through one of a loop's results that the primal's launch keeps") {
  on_every_device([](const qn::Device& device) {
    constexpr int n = 1000;
    std::vector<double> at(n);
    for (int i = 0; i < n; i++) at[size_t(i)] = std::sin(0.3 * i);
    auto x = numbers(device, at);
    qn::Field<double> y{device, {n}};
    qn::Kernel f{[&] { sums_of_rounds(x, y, n); }, unchecked};
    qn::Tape tape;
    f();
    y.grad().fill(1);
    tape.backward();
    int wrong = 0;
    const std::vector<double> found = qn::to_vector(x.grad());
    for (int i = 0; i < n; i++) {
      double sum = 2, by_sum = 0, right = 0;
      for (int c = 0; c < summed; c++) {
        sum += std::exp(0.1 * c * at[size_t(i)]);
        by_sum += 0.1 * c * std::exp(0.1 * c * at[size_t(i)]);
        right += c;
      }
      wrong += std::abs(found[size_t(i)] - (by_sum / sum - right)) > 1e-10;
    }
    CHECK(wrong == 0);
  });
}

TEST_CASE(
    "what nobody wants of a kept loop is there where variables of the kernel are made of it") {
  on_every_device([](const qn::Device& device) {
    constexpr int n = 1000;
    auto x = numbers(device, std::vector<double>(n, 0.5));
    qn::Field<double> y{device, {n}}, z{device, {n}};
    qn::Kernel f{[&] {
                   Var<double> total = 0;
                   Var<int> many = 0;
                   for (auto i : range(n)) {
                     Var<double> sum = 2, right = 0;
                     Var<int> count = 0;
                     for (auto c : range(summed)) {
                       sum += exp(0.1 * cast<double>(c) * x[i]);
                       right += cast<double>(c) * x[i];
                       count += cast<int>(cast<double>(c) * x[i]) % 2;
                     }
                     y[i] = log(sum);
                     total += right;
                     If(count > 2) many += 1;
                   }
                   for (auto i : range(n)) z[i] = x[i] * total * cast<double>(many);
                 },
                 unchecked};
    qn::Tape tape;
    f();
    z.grad().fill(1);
    tape.backward();
    // Σ z = (Σ x)² Σ c · many, where x is 1/2 and all counts are 6.
    const double slope = 2 * (0.5 * n) * (summed * (summed - 1) / 2) * n;
    for (double found : qn::to_vector(x.grad())) REQUIRE(found == Approx(slope).epsilon(1e-10));
  });
}

TEST_CASE("arrays are kept that are full before they are read, and change no more") {
  const auto sites = [](auto fill, auto use) {
    const auto body = [&](qn::Field<double> x, qn::Field<double> y) {
      for (auto i : y) {
        Var<Array<double, parts>> term;
        fill(term, F64(x[i]));
        y[i] = use(term);
      }
    };
    return reverse_of(Augment::wherever_possible, body).augmented.sites.size();
  };
  const auto all = [](auto& term, F64 x) {
    for (auto c : range(parts)) term[c] = term_of(x, c);
  };
  const auto product = [](auto& term) -> F64 { return term[1] * term[2]; };
  CHECK(sites(all, product) == 1);
  // Not all are written.
  CHECK(sites(
            [](auto& term, F64 x) {
              for (auto c : range(parts - 1)) term[c] = term_of(x, c);
            },
            product) == 0);
  CHECK(sites(
            [](auto& term, F64 x) {
              for (auto c : range(1, parts)) term[c] = term_of(x, c);
            },
            product) == 0);
  CHECK(sites(
            [](auto& term, F64 x) {
              for (auto c : range(parts)) term[c / 2] = term_of(x, c);
            },
            product) == 0);
  // One is written where it is read.
  CHECK(sites(all, [](auto& term) -> F64 {
          Var<double> sum = 0;
          for (auto c : range(parts)) {
            sum += term[c] * term[c];
            term[c] = sum;
          }
          return sum;
        }) == 0);
  // Whether all are depends on the point.
  CHECK(sites(
            [](auto& term, F64 x) {
              If(x > 0) {
                for (auto c : range(parts)) term[c] = term_of(x, c);
              }
            },
            product) == 0);
}

TEST_CASE("places are known before the launch, and are one for each element") {
  // How many iterations there are may be rounded otherwise by each kernel.
  const auto by_float = [](qn::Field<double> x, qn::Field<double> y) {
    I32 count = cast<int>(floor(x[0] * x[1] - 1.0));
    for (auto i : range(count)) {
      Var<Array<double, parts>> term;
      for (auto c : range(parts)) term[c] = term_of(x[i], c);
      y[i] = term[1] * term[2];
    }
  };
  CHECK_FALSE(reverse_of(Augment::wherever_possible, by_float).augmented);
  // Above 2048 a half has no odd numbers, and 7 bits hold 128.
  const auto filled = [](auto elements, auto index) {
    constexpr int count = decltype(elements)::value;
    const auto body = [&](qn::Field<double> x, qn::Field<double> y) {
      for (auto i : y) {
        Var<Array<int, count>> step;
        for (auto c : range(count)) step[cast<int>(index(I32(c)))] = c * c % 7;
        Var<double> sum = 0;
        for (auto c : range(count)) sum += sin(x[i + step[c]]);
        y[i] = sum;
      }
    };
    return bool(reverse_of(Augment::wherever_possible, body).augmented);
  };
  using std::integral_constant;
  CHECK(filled(integral_constant<int, 128>(), [](I32 c) { return cast<int8_t>(c); }));
  CHECK_FALSE(filled(integral_constant<int, 129>(), [](I32 c) { return cast<int8_t>(c); }));
  CHECK_FALSE(filled(integral_constant<int, 4094>(), [](I32 c) { return cast<qn::half>(c); }));
}

TEST_CASE("loops in a loop whose result is kept take rows of their own") {
  on_every_device([](const qn::Device& device) {
    constexpr int n = 3000;
    std::vector<double> at(n);
    std::vector<int> rounds(n);
    for (int i = 0; i < n; i++) {
      at[size_t(i)] = 0.1 + std::sin(0.7 * i);
      rounds[size_t(i)] = 1 + 7 * i % 5;
    }
    auto x = numbers(device, at);
    qn::Field<double> y{device, {n}};
    qn::Field<int> r{device, {n}};
    r.copy_from(rounds);
    qn::Kernel f{[&] {
                   for (auto i : y) {
                     Var<double> sum = 0;
                     for (auto c : serial(range(16))) {
                       Var<double> p = 1;
                       for (auto k : serial(range(r[i]))) p = sin(p * x[i] + cast<double>(c + k));
                       sum += p;
                     }
                     y[i] = sum * sum;
                   }
                 },
                 unchecked};
    qn::Tape tape;
    f();
    y.grad().fill(1);
    tape.backward();
    const std::vector<double> found = qn::to_vector(x.grad());
    int wrong = 0;
    for (int i = 0; i < n; i++) {
      const double v = at[size_t(i)];
      double sum = 0, slope = 0;
      for (int c = 0; c < 16; c++) {
        double p = 1, by_v = 0;
        for (int k = 0; k < rounds[size_t(i)]; k++) {
          const double angle = p * v + c + k;
          by_v = std::cos(angle) * (by_v * v + p);
          p = std::sin(angle);
        }
        sum += p;
        slope += by_v;
      }
      wrong += std::abs(found[size_t(i)] - 2 * sum * slope) > 1e-10;
    }
    CHECK(wrong == 0);
  });
}

TEST_CASE("gradients through arrays that the primal's launch keeps") {
  expect_slopes(find_log_of_sum, slope_of_log_of_sum);
}

TEST_CASE("gradients through an array that two loops fill, of which the second overwrites a half") {
  expect_slopes(
      [](const qn::Field<double>& x, const qn::Field<double>& y) {
        qn::Kernel f{[&] {
                       for (auto i : y) {
                         Var<Array<double, parts>> term;
                         for (auto c : range(parts)) term[c] = term_of(x[i], c);
                         for (auto c : range(parts / 2)) term[2 * c] = term_of(x[i], c + parts);
                         Var<double> sum = 0;
                         for (auto c : range(parts)) sum += term[c] * term[c];
                         y[i] = sum * sum;
                       }
                     },
                     unchecked};
        f();
      },
      [](double x) {
        double sum = 0, slope = 0;
        for (int c = 0; c < parts; c++) {
          const Term term(x, c % 2 ? c : c / 2 + parts);
          sum += term.value * term.value;
          slope += 2 * term.value * term.slope;
        }
        return 2 * sum * slope;
      });
}

TEST_CASE("gradients through a loop's result that is used, and summed over all iterations too") {
  on_every_device([](const qn::Device& device) {
    auto x = numbers(device, points);
    qn::Field<double> y{device, {points.size()}}, total{device, {1}};
    qn::Kernel f{[&] {
                   Var<double> all = 0;
                   for (auto i : y) {
                     Var<Array<double, parts>> term;
                     for (auto c : range(parts)) term[c] = term_of(x[i], c);
                     Var<double> sum = 0;
                     for (auto c : range(parts)) sum += term[c] * term_of(x[i], c + 1);
                     all += sum;
                     y[i] = sum * term[3];
                   }
                   total[0] = all * all;
                 },
                 unchecked};
    qn::Tape tape;
    f();
    y.grad().fill(1);
    total.grad().fill(0.5);
    tape.backward();
    double all = 0;
    std::vector<double> sums, slopes;
    for (double v : points) {
      double sum = 0, slope = 0;
      for (int c = 0; c < parts; c++) {
        const Term a(v, c), b(v, c + 1);
        sum += a.value * b.value;
        slope += a.slope * b.value + a.value * b.slope;
      }
      sums.push_back(sum);
      slopes.push_back(slope);
      all += sum;
    }
    CHECK(total.at(0) == Approx(all * all).epsilon(1e-11));
    for (size_t i = 0; i < points.size(); i++) {
      const Term third(points[i], 3);
      const double expected = slopes[i] * third.value + sums[i] * third.slope + all * slopes[i];
      CHECK(x.grad().at(int64_t(i)) == Approx(expected).epsilon(1e-10));
    }
  });
}

TEST_CASE("a tape counts the terms that it keeps") {
  qn::Device device("interpreter");
  auto x = numbers(device, {0.5});
  qn::Field<double> y{device, {1}};
  qn::Tape tape;
  const uint64_t before = tape.memory();
  find_log_of_sum(x, y);
  // One iteration takes whole places; the terms, and the sum.
  CHECK(tape.memory() - before >= (parts + 1) * sizeof(double));
  y.grad().fill(1);
  tape.backward();
  CHECK(x.grad().at(0) == Approx(slope_of_log_of_sum(0.5)).epsilon(1e-11));
}
