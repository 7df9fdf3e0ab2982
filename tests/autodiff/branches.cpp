// What going back through branches leaves out: what has no adjoint, and elements that only a branch
// not taken would have added to.
#include <quern/autodiff.h>

#include <cmath>
#include <limits>
#include <vector>

#include "autodiff/reverse/reverse.h"
#include "quern/ir/lower.h"
#include "quern/ir/text.h"
#include "tests/autodiff/numbers.h"
#include "tests/dsl/record.h"
#include "tests/end_to_end/devices.h"
#include "tests/end_to_end/output.h"

#include <quern/else.h>

using namespace qn::lang;
using qn::ir::Op;

namespace {

/// A sum over those that are near, which takes long enough to stay a branch.
void near_pairs(const qn::Field<double>& x, const qn::Field<double>& y) {
  for (auto i : y) {
    Var<double> sum = 0.0;
    for (auto j : range(4)) {
      Val<double> off = x[i] - x[j];
      If(j != i && sqrt(off * off) < 1.0) { sum += off * exp(off); }
    }
    y[i] = sum;
  }
}

/// The gradient of Σ y that `f` has by its derivatives d(y_i)/d(x_k).
template <class D>
std::vector<double> sums(int n, D&& d) {
  std::vector<double> all(size_t(n), 0.0);
  for (int i = 0; i < n; i++)
    for (int k = 0; k < n; k++) all[size_t(k)] += d(i, k);
  return all;
}

template <class F>
void expect_gradient(const qn::Device& device, const std::vector<double>& at, F&& body,
                     const std::vector<double>& expected) {
  auto x = numbers(device, at);
  qn::Field<double> y{device, {int64_t(at.size())}};
  qn::Kernel f = [&] { body(x, y); };
  y.grad().fill(1.0);
  x.grad().fill(0.0);
  qn::vjp(f)()();
  for (size_t k = 0; k < expected.size(); k++) {
    INFO(k);
    CHECK(x.grad().at(int64_t(k)) == Approx(expected[k]).epsilon(1e-12).margin(1e-15));
  }
}

using Body = void(const qn::Field<double>&, const qn::Field<double>&);

qn::autodiff::Reverse reverse_of(Body& body) {
  auto kernel = qn::test::record([&](qn::Field<double> x, qn::Field<double> y) { body(x, y); });
  qn::ir::finish_recording(*kernel);
  return qn::autodiff::reverse(*kernel, {kernel->modes, {1, 2}}, {true, true});
}

/// Atomics that stand directly in a construct of that kind.
int atomics(const qn::autodiff::Reverse& reverse, Op around) {
  int n = 0;
  qn::ir::walk(reverse.kernel->body, [&](const qn::ir::Inst* inst) {
    n += inst->is(Op::atomic) && inst->parent->parent->is(around);
  });
  return n;
}

}  // namespace

TEST_CASE("going back through a loop of pairs adds to elements of those alone that meet") {
  const auto reverse = reverse_of(near_pairs);
  INFO(qn::ir::print(*reverse.kernel));
  CHECK(atomics(reverse, Op::loop) == 0);
  CHECK(atomics(reverse, Op::if_) >= 1);
  int roots = 0;
  qn::ir::walk(reverse.kernel->body,
               [&](const qn::ir::Inst* inst) { roots += inst->is(Op::sqrt); });
  CHECK(roots == 1);  // what is compared has no adjoint
}

TEST_CASE("adjoints of pairs, of which few meet") {
  on_every_device([](const qn::Device& device) {
    const std::vector<double> at = {0.25, 1.0, 3.5, 3.5};  // two at one place: a root of 0
    const auto d = [&](int i, int k) {
      double sum = 0;
      for (int j = 0; j < 4; j++) {
        const double off = at[size_t(i)] - at[size_t(j)];
        if (j == i || std::fabs(off) >= 1) continue;
        sum += (1 + off) * std::exp(off) * ((k == i) - (k == j));
      }
      return sum;
    };
    expect_gradient(device, at, near_pairs, sums(4, d));
  });
}

TEST_CASE(
    "adjoints of what a branch in a loop uses, the other one, both, and what is around them") {
  on_every_device([](const qn::Device& device) {
    const std::vector<double> at = {0.5, -2, 1.5};
    // y_i = Σ_k g(w) with w = x_i x_k: `term` adds g(w), `slope` is g'.
    const auto expect_sums = [&](auto&& term, auto&& slope) {
      std::vector<double> expected(3, 0.0);
      for (size_t i = 0; i < 3; i++)
        for (size_t k = 0; k < 3; k++) {
          expected[i] += slope(at[i] * at[k]) * at[k];
          expected[k] += slope(at[i] * at[k]) * at[i];
        }
      const auto body = [&](const qn::Field<double>& x, const qn::Field<double>& y) {
        for (auto i : y) {
          Var<double> sum = 0.0;
          for (auto k : range(3)) {
            Val<double> w = x[i] * x[k];
            term(w, sum);
          }
          y[i] = sum;
        }
      };
      expect_gradient(device, at, body, expected);
    };
    expect_sums(
        [](F64 w, Var<double>& sum) {
          If(w > 0) { sum += 1.0; }
          Else { sum += exp(w) * w; }
        },
        [](double w) { return w > 0 ? 0 : (1 + w) * std::exp(w); });
    expect_sums(
        [](F64 w, Var<double>& sum) {
          If(w > 0) { sum += sin(w); }
          Else { sum += w * w; }
        },
        [](double w) { return w > 0 ? std::cos(w) : 2 * w; });
    expect_sums(
        [](F64 w, Var<double>& sum) {
          If(w > 0) { sum += exp(w) * w; }
          sum += 5 * w;
        },
        [](double w) { return w > 0 ? (1 + w) * std::exp(w) + 5 : 5; });
    // Two branches, one of them in the other, with what lies between.
    expect_sums(
        [](F64 w, Var<double>& sum) {
          Val<double> half = 0.5 * w;
          If(w > -2) {
            Val<double> v = exp(half);
            If(v < 2) { sum += v * sin(v); }
          }
          If(w > 2) { sum += log(w); }
        },
        [](double w) {
          const double v = std::exp(0.5 * w);
          const double inner = w > -2 && v < 2 ? (std::sin(v) + v * std::cos(v)) * 0.5 * v : 0;
          return inner + (w > 2 ? 1 / w : 0);
        });
  });
}

TEST_CASE("what a branch does not take is not gone back through, also where it is not finite") {
  // 1 / (x_k - x_k) and inf - inf are nobody's part.
  Body& one_of_three = *+[](const qn::Field<double>& x, const qn::Field<double>& y) {
    for (auto i : range(1)) {
      Var<double> sum = 0.0;
      for (auto k : range(3)) {
        Val<double> off = x[k] - x[i], share = 1 / off;
        If(k == 1) { sum += log(share); }
      }
      y[i] = sum;
    }
  };
  CHECK(atomics(reverse_of(one_of_three), Op::loop) == 0);
  on_every_device([&](const qn::Device& device) {
    const double far = std::numeric_limits<double>::infinity();
    expect_gradient(device, {1, 3, far}, one_of_three, {0.5, -0.5, 0});  // log(1 / 2)
  });
}
