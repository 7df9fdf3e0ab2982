// Values that the loop before keeps in adjoints: how often they are computed, and that derivatives
// are right.
#include "autodiff/reverse/kept_in_adjoints.h"

#include <quern/algorithms.h>
#include <quern/autodiff.h>

#include <cmath>
#include <vector>

#include "autodiff/reverse/reverse.h"
#include "quern/ir/lower.h"
#include "tests/autodiff/numbers.h"
#include "tests/dsl/record.h"
#include "tests/end_to_end/devices.h"
#include "tests/end_to_end/output.h"

using namespace qn::lang;
using qn::ir::Op;

namespace {

/// How often the operation stands in a gradient's kernel. Of a kernel over two fields.
template <class F>
int count(Op op, F&& body) {
  auto kernel = qn::test::record(std::forward<F>(body));
  qn::ir::finish_recording(*kernel);
  const auto reverse =
      qn::autodiff::reverse(*kernel, {kernel->modes, {1, 2}}, {true, false}, {}, true);
  int n = 0;
  qn::ir::walk(reverse.kernel->body, [&](const qn::ir::Inst* inst) { n += inst->is(op); });
  return n;
}

}  // namespace

TEST_CASE("what a sum is made of is computed once, where its adjoints wait for the sum") {
  CHECK(count(Op::exp, [](qn::Field<double> x, qn::Field<double>) -> F64 {
          Var<double> sum = 0;
          for (auto i : x) sum += exp(x[i]);
          return log(sum);
        }) == 1);
  CHECK(count(Op::exp, [](qn::Field<float> x, qn::Field<float>) -> F32 {
          Var<float> sum = 0;
          for (auto i : x) sum += exp(x[i]);
          return log(sum);
        }) == 1);
  // Of the other field's elements, which nobody writes.
  CHECK(count(Op::exp, [](qn::Field<double> x, qn::Field<double> y) -> F64 {
          Var<double> sum = 0;
          for (auto i : x) sum += x[i] * exp(y[i]);
          return log(sum);
        }) == 1);
}

TEST_CASE(
    "what costs less than to keep it is computed again, and what is of another type or loop") {
  CHECK(count(Op::sqrt, [](qn::Field<double> x, qn::Field<double>) -> F64 {
          Var<double> sum = 0;
          for (auto i : x) sum += sqrt(x[i]);
          return log(sum);
        }) == 2);
  CHECK(count(Op::exp, [](qn::Field<float> x, qn::Field<float>) -> F64 {
          Var<double> sum = 0;
          for (auto i : x) sum += exp(cast<double>(x[i]));
          return log(sum);
        }) == 2);
  // Whose iterations are of a field with another shape, for all that is known.
  CHECK(count(Op::exp, [](qn::Field<double> x, qn::Field<double> y) -> F64 {
          Var<double> sum = 0, square = 0;
          for (auto i : y) sum += exp(x[i]);
          for (auto i : x) square += exp(x[i]) * sum;
          return square;
        }) >= 2);
}

TEST_CASE("gradients of log Σ exp of several sizes, twice in a row") {
  on_every_device([](const qn::Device& device) {
    for (const int n : {1, 3, 5000}) {
      std::vector<double> at(static_cast<size_t>(n));
      for (int i = 0; i < n; i++) at[size_t(i)] = std::sin(0.37 * i);
      auto x = numbers(device, at);
      qn::Kernel f = [&](F64 scale) -> F64 {
        Var<double> sum = 0;
        for (auto i : x) sum += exp(scale * x[i]);
        return log(sum);
      };
      auto both = qn::value_and_grad(f, qn::wrt(x));
      for (double scale : {1.0, -0.5}) {
        double sum = 0;
        for (double v : at) sum += std::exp(scale * v);
        CHECK(both(scale).value() == Approx(std::log(sum)).epsilon(1e-13));
        for (int i = 0; i < n; i += 617)
          CHECK(x.grad().at(i) ==
                Approx(scale * std::exp(scale * at[size_t(i)]) / sum).epsilon(1e-13));
      }
    }
  });
}

TEST_CASE("each component of an element has its room") {
  on_every_device([](const qn::Device& device) {
    qn::Field<dvec2> x{device, {4}};
    for (int i = 0; i < 4; i++) x.set(i, dvec2(0.25 * i, 1 - 0.5 * i));
    qn::Kernel f = [&]() -> F64 {
      Var<double> a = 0, b = 0;
      for (auto i : x) {
        a += exp(x[i].x);
        b += sinh(x[i].y) * x[i].x;
      }
      return log(a) * b;
    };
    auto both = qn::value_and_grad(f, qn::wrt(x));
    double a = 0, b = 0;
    for (int i = 0; i < 4; i++) {
      a += std::exp(0.25 * i);
      b += std::sinh(1 - 0.5 * i) * 0.25 * i;
    }
    CHECK(both().value() == Approx(std::log(a) * b).epsilon(1e-13));
    for (int i = 0; i < 4; i++) {
      const double u = 0.25 * i, v = 1 - 0.5 * i;
      const dvec2 found = x.grad().at(i);
      CHECK(found.x == Approx(std::exp(u) / a * b + std::log(a) * std::sinh(v)).epsilon(1e-13));
      CHECK(found.y == Approx(std::log(a) * std::cosh(v) * u).epsilon(1e-13).margin(1e-300));
    }
  });
}

TEST_CASE("a kernel that is passed what lies where the adjoints do reads what was there") {
  on_every_device([](const qn::Device& device) {
    auto x = numbers(device, {0.5, -1, 2});
    const std::vector<double> y = {2, 3, -1};
    x.grad().copy_from(y);
    qn::Kernel f = [&](qn::Field<double> other) -> F64 {
      Var<double> sum = 0;
      for (auto i : x) sum += exp(x[i] * other[(i + 1) % 3]);
      return log(sum);
    };
    double sum = 0;
    for (int i = 0; i < 3; i++) sum += std::exp(x.at(i) * y[size_t(i + 1) % 3]);
    auto both = qn::value_and_grad(f, qn::wrt(x))(x.grad());
    CHECK(both.value() == Approx(std::log(sum)).epsilon(1e-13));
    for (int i = 0; i < 3; i++) {
      const double factor = y[size_t(i + 1) % 3];
      CHECK(x.grad().at(i) == Approx(factor * std::exp(x.at(i) * factor) / sum).epsilon(1e-13));
    }
  });
}
