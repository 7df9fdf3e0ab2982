// What a program does not run has no part in its derivative, though the compiler may run it.
#include <quern/autodiff.h>

#include <cmath>
#include <limits>
#include <vector>

#include "quern/ir/lower.h"
#include "tests/autodiff/numbers.h"
#include "tests/dsl/record.h"
#include "tests/end_to_end/devices.h"

#include <quern/else.h>

using namespace qn::lang;
using qn::ir::Op;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity(),
                 missing = std::numeric_limits<double>::quiet_NaN();

/// z̄ = 1 gives these x̄ and ȳ.
void expect_adjoints(const qn::Kernel<void()>& f, const qn::Field<double>& x,
                     const qn::Field<double>& y, const qn::Field<double>& z,
                     const std::vector<double>& by_x, const std::vector<double>& by_y) {
  x.grad().fill(0);
  y.grad().fill(0);
  z.grad().fill(1);
  qn::vjp(f)()();
  CHECK(qn::to_vector(x.grad()) == by_x);
  CHECK(qn::to_vector(y.grad()) == by_y);
}

}  // namespace

TEST_CASE("a branch that is not taken gives no derivative, whatever stands before it") {
  on_every_device([](const qn::Device& device) {
    const auto x = numbers(device, {inf, 3, missing}), y = numbers(device, {2, 2, 2});
    qn::Field<double> z{device, {3}};
    qn::Field<int> n{device, {3}};
    n.copy_from(std::vector<int>{0, 1, 0});
    qn::Kernel times = [&] {
      for (auto i : x) {
        F64 s = x[i];
        Var<double> r = y[i];
        If(n[i] > 0) { r = s * r; }
        z[i] = r;
      }
    };
    times();
    CHECK(qn::to_vector(z) == std::vector<double>{2, 6, 2});
    expect_adjoints(times, x, y, z, {0, 2, 0}, {1, 3, 1});

    qn::Kernel otherwise = [&] {
      for (auto i : x) {
        F64 s = x[i], t = y[i];
        Var<double> r = t;
        If(n[i] == 0) { r = t + t; }
        Else { r = fma(s, t, s * s); }
        z[i] = r;
      }
    };
    expect_adjoints(otherwise, x, y, z, {0, 2 + 2 * 3, 0}, {2, 3, 2});

    // Data that is missing, of which nothing is to be learnt.
    qn::Kernel masked = [&] {
      for (auto i : x) {
        F64 off = y[i] - x[i];
        Var<double> loss = 0.0;
        If(isfinite(x[i])) { loss = off * off; }
        z[i] = loss;
      }
    };
    expect_adjoints(masked, x, y, z, {0, 2, 0}, {0, -2, 0});

    qn::Kernel left = [&] {
      for (auto i : x) {
        F64 s = x[i];
        Var<double> r = y[i];
        for (auto k : range(4)) {
          If(k >= n[i]) { Break(); }
          r = s * r;
        }
        z[i] = r;
      }
    };
    expect_adjoints(left, x, y, z, {0, 2, 0}, {1, 3, 1});
  });
}

TEST_CASE("a loop without rounds gives no derivative, whatever stands before it") {
  on_every_device([](const qn::Device& device) {
    const auto x = numbers(device, {inf, 3, missing}), y = numbers(device, {2, 2, 2});
    qn::Field<double> z{device, {3}};
    qn::Field<int> n{device, {3}};
    n.copy_from(std::vector<int>{0, 2, 0});
    qn::Kernel counted = [&] {
      for (auto i : x) {
        F64 s = x[i], t = y[i];
        Var<double> r = t;
        for (auto k : range(n[i])) {
          (void)k;
          r = s * t;
        }
        z[i] = r;
      }
    };
    counted();
    CHECK(qn::to_vector(z) == std::vector<double>{2, 6, 2});
    expect_adjoints(counted, x, y, z, {0, 2, 0}, {1, 3, 1});

    qn::Kernel asked = [&] {
      for (auto i : x) {
        F64 s = x[i], t = y[i];
        Var<double> r = t;
        Var<int> c = 0;
        While(c < n[i]) {
          r = hypot(s + 1.0, t + 1.0) + sin(s - 3.0);
          c += 1;
        }
        z[i] = r;
      }
    };
    asked();
    CHECK(qn::to_vector(z) == std::vector<double>{2, 5, 2});
    expect_adjoints(asked, x, y, z, {0, 4.0 / 5 + 1, 0}, {1, 3.0 / 5, 1});
  });
}

TEST_CASE("a loop without rounds applies no function's rule") {
  on_every_device([](const qn::Device& device) {
    qn::Field<mat2> a{device, {2}};
    a.set(0, mat2(1, 1, 1, 1));  // has no inverse
    a.set(1, mat2(2, 0, 0, 4));
    qn::Field<float> z{device, {2}};
    qn::Field<int> n{device, {2}};
    n.copy_from(std::vector<int>{0, 3});
    qn::Kernel inverts = [&] {
      for (auto i : z) {
        Val<mat2> m = a[i];
        Var<float> r = 5.0f;
        for (auto k : range(n[i])) {
          (void)k;
          r = inverse(m)(0, 0);
        }
        z[i] = r;
      }
    };
    a.grad().fill(mat2(0, 0, 0, 0));
    z.grad().fill(1);
    qn::vjp(inverts)()();
    CHECK(z.at(0) == 5);
    CHECK(a.grad().at(0) == mat2(0, 0, 0, 0));
    CHECK(a.grad().at(1) == mat2(-0.25f, 0, 0, 0));
  });
}

TEST_CASE("a second derivative through a branch, where the first is zero") {
  on_every_device([](const qn::Device& device) {
    auto x = numbers(device, {0, 3});
    qn::Field<int> n{device, {1}};
    n.fill(1);
    qn::Kernel half_square = [&]() -> F64 {
      Var<double> sum = 0.0;
      for (auto i : n) {
        F64 a = x[0], b = x[1];
        Var<double> r = 1.0;
        If(n[i] > 0) { r = a * b; }
        sum += 0.5 * r * r;
      }
      return sum;
    };
    x.dual().copy_from(std::vector<double>{1, 0});
    qn::hessian_vector(half_square)();
    CHECK(x.grad().at(0) == 0);
    CHECK(x.grad().dual().at(0) == 9);  // b²
    CHECK(x.grad().dual().at(1) == 0);  // 2ab

    // Not taken, beside a root whose tangent is infinite.
    auto y = numbers(device, {2});
    n.fill(0);
    qn::Kernel rooted = [&]() -> F64 {
      Var<double> sum = 0.0;
      for (auto i : y) {
        F64 s = sqrt(x[i]);
        Var<double> r = y[i];
        If(n[i] > 0) { r = s * r; }
        sum += 0.5 * r * r;
      }
      return sum;
    };
    y.dual().fill(0);
    qn::hessian_vector(rooted)();
    CHECK(y.grad().at(0) == 2);
    CHECK(y.grad().dual().at(0) == 0);
    CHECK(x.grad().at(0) == 0);
  });
}

TEST_CASE("operations that the compiler runs unasked are marked, and others are not") {
  const auto marked = [](auto&& body) {
    auto kernel = qn::test::record(body);
    qn::ir::finish_recording(*kernel);
    kernel->modes.checked = false;
    qn::ir::optimise(*kernel);
    size_t yes = 0, no = 0;
    qn::ir::walk(kernel->body, [&](const qn::ir::Inst* inst) {
      if (inst->is(Op::mul) && qn::ir::is_float(inst->type()))
        (inst->kind & qn::ir::unasked ? yes : no)++;
    });
    return std::pair(yes, no);
  };
  using Counts = std::pair<size_t, size_t>;
  CHECK(marked([](qn::Field<double> x) {
          for (auto i : x) {
            F64 v = x[i];
            Var<double> r = v * v;
            If(v > 0) { r = r * v; }
            x[i] = r;
          }
        }) == Counts(1, 1));
  const auto rounds = [](auto count) {
    return [=](qn::Field<double> x, qn::Field<double> y) {
      for (auto i : y) {
        F64 v = y[i];
        Var<double> sum = 0.0;
        for (auto k : range(count(x))) sum += x[k] + v * v;
        y[i] = sum;
      }
    };
  };
  CHECK(marked(rounds([](auto&&) { return 8; })) == Counts(0, 1));
  CHECK(marked(rounds([](auto& x) { return x.dim(0); })) == Counts(1, 0));
}
