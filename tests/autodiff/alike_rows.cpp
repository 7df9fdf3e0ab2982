// Logs of local arrays and fields whose rows all iterations have alike: which rows they are, who logs them,
// and that gradients are those of forward differentiation.
#include <quern/autodiff.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "autodiff/reverse/reverse.h"
#include "quern/ir/lower.h"
#include "tests/autodiff/numbers.h"
#include "tests/dsl/record.h"
#include "tests/end_to_end/devices.h"

#include <quern/else.h>

using namespace qn::lang;
using qn::autodiff::Reverse;
using qn::ir::Op;

namespace {

/// Of a kernel over a field of doubles and a number.
template <class F>
Reverse reverse_of(F&& body) {
  auto kernel = qn::test::record(std::forward<F>(body));
  qn::ir::finish_recording(*kernel);
  return qn::autodiff::reverse(*kernel, {kernel->modes, {1, 0}}, {true, false});
}

/// x̄ of what the kernel gives is its derivative along each unit vector.
template <class K>
void expect_forward(K& kernel, qn::Field<double>& x, int n) {
  const auto grad = qn::value_and_grad(kernel, qn::wrt(x))(n);
  const double value = grad.value();
  CHECK(value == Approx(double(kernel(n))).epsilon(1e-12));
  double size = 0;
  for (int64_t k = 0; k < x.size(); k++) {
    x.dual().fill(0);
    x.dual().set(k, 1);
    const double slope = qn::jvp(kernel)(n).tangent();
    INFO("by element " << k);
    CHECK(x.grad().at(k) == Approx(slope).epsilon(1e-11).margin(1e-13));
    size += std::abs(slope);
  }
  CHECK((size > 0) == (value != 0));
}

/// Values of binomial trees (Cox, Ross and Rubinstein, 1979), by rounds of fewer and fewer elements.
template <class X>
auto triangle(const X& x) {
  return [&x](I32 n) -> F64 {
    Var<double> sum = 0.0;
    for (auto i : x) {
      Var<Array<double, 9>> v;
      for (auto j : range(9)) v[j] = x[i] * cast<double>(j + 1);
      for (auto t : range(n))
        for (auto j : range(n - t)) v[j] = 0.4 * v[j + 1] * cos(v[j + 1]) + sin(v[j]);
      sum += v[0];
    }
    return sum;
  };
}

}  // namespace

TEST_CASE("an iteration logs what it reads of its own arrays where it is gone back through") {
  const Reverse reverse = reverse_of([](qn::Field<double> x, I32 n) -> F64 {
    Var<double> sum = 0.0;
    for (auto i : x) {
      Var<Array<double, 4>> h;
      for (auto t : range(n))
        for (auto j : range(4)) h[j] = sin(h[(j + 1) % 4] + x[i]);
      sum += h[0];
    }
    return sum;
  });
  CHECK(reverse.log.sizes);
  CHECK(!reverse.log.count);
  CHECK(!reverse.log.record);
  // Rows lie by number, then iteration: none asks where those of its iteration begin.
  for (const qn::autodiff::LogField& field : reverse.log.fields)
    CHECK(field.rule != qn::autodiff::LogField::counted);
}

TEST_CASE("what nobody wants is not logged, nor run again") {
  const auto linear = [](qn::Field<double> x, I32 n) -> F64 {
    Var<double> sum = 0.0;
    for (auto i : x) {
      Var<Array<double, 9>> v;
      for (auto j : range(9)) v[j] = x[i] * cast<double>(j + 1);
      for (auto t : range(n))
        for (auto j : range(8)) v[j] = 0.4 * v[j + 1] + 0.3 * v[j];
      sum += v[0];
    }
    return sum;
  };
  const Reverse reverse = reverse_of(linear);
  CHECK(!reverse.log.sizes);
  qn::ir::walk(reverse.kernel->body, [&](const qn::ir::Inst* inst) {
    CHECK(!(inst->is(Op::load) && inst->binding() == 0));  // x
  });
  const Reverse half = reverse_of([](qn::Field<double> x, I32 n) -> F64 {
    Var<double> sum = 0.0;
    for (auto i : x) {
      Var<Array<double, 9>> v, w;
      for (auto j : range(9)) v[j] = x[i] * cast<double>(j + 1);
      for (auto t : range(n))
        for (auto j : range(8)) {
          v[j] = 0.4 * v[j + 1] + 0.3 * v[j];
          w[j] = sin(w[j + 1] + x[i]);
        }
      sum += v[0] + w[0];
    }
    return sum;
  });
  CHECK(half.log.sizes);
  const auto used = [](const qn::autodiff::LogField& f) {
    return f.rule != qn::autodiff::LogField::unused;
  };
  CHECK(std::ranges::count_if(half.log.fields, used) == 1);  // what sin is of
  on_every_device([&](const qn::Device& device) {
    auto x = numbers(device, {0.1, 0.7, 0.3, -0.2, 0.5, 0.4, 0.9, -0.6, 0.2, 0.8, 0.35});
    qn::Kernel kernel = [&](I32 n) -> F64 { return linear(x, n); };
    for (int n : {0, 1, 5}) expect_forward(kernel, x, n);
  });
}

TEST_CASE("what an iteration reads of fields behind its writes is logged by a launch before") {
  const Reverse reverse = reverse_of([](qn::Field<double> x, I32 n) -> F64 {
    Var<double> sum = 0.0;
    for (auto i : x) {
      for (auto t : range(n)) x[i] = sin(x[i]);
      sum += x[i] * x[i];
    }
    return sum;
  });
  CHECK(reverse.log.record);
  CHECK(!reverse.log.count);  // all iterations have as many
}

TEST_CASE("rows are counted where iterations have different numbers of them") {
  const Reverse reverse = reverse_of([](qn::Field<double> x, I32 n) -> F64 {
    Var<double> sum = 0.0;
    for (auto i : x) {
      Var<Array<double, 2>> h;
      for (auto t : range(n + i)) h[t % 2] = sin(h[(t + 1) % 2] + x[i]);
      sum += h[0];
    }
    return sum;
  });
  CHECK(reverse.log.count);
  CHECK(!reverse.log.record);  // but integers alone decide
}

TEST_CASE("gradients of local arrays in rounds of any form are those of forward differentiation") {
  on_every_device([](const qn::Device& device) {
    auto x = numbers(device, {0.1, 0.7, 0.3, -0.2, 0.5, 0.4, 0.9, -0.6, 0.2, 0.8, 0.35});
    const auto expect = [&](const auto& kernel) {
      for (int n : {0, 1, 2, 8}) {
        INFO(n << " rounds");
        expect_forward(kernel, x, n);
      }
    };
    qn::Kernel fewer{triangle(x)};
    expect(fewer);
    qn::Kernel deeper = [&](I32 m) -> F64 {
      Var<double> sum = 0.0;
      for (auto i : x) {
        Var<Array<double, 3>> v;
        v[0] = x[i];
        v[1] = 1.0;
        for (auto a : range(m))
          for (auto b : range(a, m))
            for (auto c : range(b)) v[(a + c) % 3] = sin(v[(b + c) % 3] + 0.1 * v[a % 3]);
        sum += v[0] * v[1] + v[2] + x[i];
      }
      return sum;
    };
    expect(deeper);
    qn::Kernel asked = [&](I32 m) -> F64 {  // some loops are only run where all run them
      Var<double> sum = 0.0;
      for (auto i : x) {
        Var<Array<double, 3>> v;
        v[0] = x[i];
        for (auto a : range(m)) {
          If((a % 2) == 0) {
            for (auto b : range(a + 1)) v[b % 3] = cos(v[(b + 1) % 3] * x[i]);
          }
          Else {
            for (auto b : range(-2, 5 - m, 3)) v[(b + 2) % 3] = v[(b + 3) % 3] * x[i] + v[0];
          }
        }
        sum += v[0] + v[1] * v[2] + x[i];
      }
      return sum;
    };
    expect(asked);
    qn::Kernel uneven = [&](I32 m) -> F64 {  // each iteration has its own number
      Var<double> sum = 0.0;
      for (auto i : x) {
        Var<Array<double, 3>> v;
        v[0] = x[i];
        for (auto a : range(m + i % 3)) {
          v[(a + 1) % 3] = sin(v[a % 3] * 1.5 + x[i]);
          Var<int> k = 0;
          While(k < a) {
            v[k % 3] = v[k % 3] * cos(v[a % 3]);
            k += 1;
          }
        }
        sum += v[0] + v[1] * v[2] + x[i];
      }
      return sum;
    };
    expect(uneven);
    qn::Kernel alone =
        [&](I32 m) -> F64 {  // rows are alike, but other rounds are an iteration's own
      Var<double> sum = 0.0;
      for (auto i : x) {
        Var<Array<double, 4>> v;
        for (auto j : range(4)) v[j] = x[i] * cast<double>(j + 1) + 2.0;
        for (auto t : range(m)) {
          for (auto j : range(3)) v[j] = 0.5 * v[j + 1] * v[j] + 1.0;
          Var<double> root = v[0];  // Newton's steps, as many as it takes
          While(abs(root * root - v[0]) > 1e-13 * v[0]) { root = 0.5 * (root + v[0] / root); }
          v[0] = root;
        }
        sum += v[0] + v[1];
      }
      return sum;
    };
    expect(alone);
  });
}

TEST_CASE("what iterations reduce is known before they go back through their logs") {
  on_every_device([](const qn::Device& device) {
    auto x = numbers(device, {0.1, 0.7, 0.3, -0.2, 0.5});
    qn::Kernel squared = [&](I32 n) -> F64 {
      Var<double> sum = 0.0, most = -100.0;
      for (auto i : x) {
        Var<Array<double, 2>> v;
        v[0] = x[i];
        for (auto t : range(n)) v[(t + 1) % 2] = sin(v[t % 2] * 2.0 + v[(t + 1) % 2]);
        sum += v[0] + v[1];
        atomic_max(most, v[0]);
      }
      Var<double> again = 0.0;
      for (auto i : x) {
        Var<Array<double, 2>> v;
        v[0] = x[i] * sum;
        for (auto t : range(n)) v[(t + 1) % 2] = cos(v[t % 2] * most + v[(t + 1) % 2]);
        again += v[0] * v[1] * sum;
      }
      return again * again + sum * sum * sum + most;
    };
    for (int n : {1, 2, 7}) {
      INFO(n << " rounds");
      expect_forward(squared, x, n);
    }
  });
}

TEST_CASE("loops that are run again have rows of their own") {
  on_every_device([](const qn::Device& device) {
    auto x = numbers(device, {0.1, 0.7, 0.3, -0.2, 0.5});
    auto y = numbers(device, {0, 0, 0, 0, 0});
    qn::Kernel kernel = [&](I32 n) -> F64 {
      for (auto s : serial(range(n))) {
        for (auto i : range(s, 5)) {
          Var<Array<double, 2>> v;
          v[0] = x[i] + y[i];
          for (auto t : range(s + 2)) v[(t + 1) % 2] = sin(v[t % 2] * 2.0 + v[(t + 1) % 2]);
          y[i] = v[0] * v[1];
        }
      }
      Var<double> sum = 0.0;
      for (auto i : x) sum += y[i] * y[i] + x[i];
      return sum;
    };
    for (int n : {0, 1, 3, 5}) {
      INFO(n << " rounds");
      const auto run = [&](auto&& launch) {
        y.fill(0.0);
        return launch();
      };
      std::vector<double> slopes;
      for (int k = 0; k < 5; k++) {
        x.dual().fill(0);
        y.dual().fill(0);
        x.dual().set(k, 1);
        slopes.push_back(run([&] { return qn::jvp(kernel)(n).tangent(); }));
      }
      run([&] { return qn::value_and_grad(kernel, qn::wrt(x))(n).value(); });
      for (int k = 0; k < 5; k++)
        CHECK(x.grad().at(k) == Approx(slopes[size_t(k)]).epsilon(1e-11).margin(1e-13));
    }
  });
}

TEST_CASE("iterations of several axes, of none and of one number their rows") {
  on_every_device([](const qn::Device& device) {
    for (const auto& [rows, columns] : {std::pair{3, 4}, {1, 1}, {1, 9}}) {
      INFO(rows << " x " << columns);
      qn::Field<double, 2> x{device, {rows, columns}};
      for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++) x.set({i, j}, 0.1 * i - 0.2 * j + 0.3);
      qn::Kernel kernel = [&](I32 from) -> F64 {
        Var<double> sum = 0.0;
        for (auto [i, j] : grid(range(from, rows), range(from, columns))) {
          Var<Array<double, 2>> v;
          v[0] = x(i, j);
          for (auto t : range(3)) v[(t + 1) % 2] = sin(v[t % 2] * 2.0 + v[(t + 1) % 2]);
          sum += v[0] * v[1];
        }
        return sum;
      };
      // By the chain rule, beside the values.
      const auto slope = [](double at) {
        double v[2] = {at, 0}, d[2] = {1, 0};
        for (int t = 0; t < 3; t++) {
          const double a = v[t % 2] * 2 + v[(t + 1) % 2];
          d[(t + 1) % 2] = std::cos(a) * (2 * d[t % 2] + d[(t + 1) % 2]);
          v[(t + 1) % 2] = std::sin(a);
        }
        return d[0] * v[1] + v[0] * d[1];
      };
      for (int from : {0, 1}) {
        qn::grad(kernel, qn::wrt(x))(from);
        for (int i = 0; i < rows; i++)
          for (int j = 0; j < columns; j++)
            CHECK(x.grad().at({i, j}) ==
                  Approx(i < from || j < from ? 0.0 : slope(x.at({i, j}))).epsilon(1e-12));
      }
    }
  });
}

TEST_CASE("a log that an iteration fills has tangents where second derivatives are taken") {
  on_every_device([](const qn::Device& device) {
    auto x = numbers(device, {0.1, 0.7, 0.3, -0.2, 0.5});
    qn::Kernel kernel{triangle(x)};
    // H v = the slope of the gradient along v, by central differences.
    const std::vector<double> at = qn::to_vector(x), v = {1, -2, 0.5, 0.25, 3};
    const auto gradient = [&](double h) {
      std::vector<double> moved = at;
      for (size_t k = 0; k < v.size(); k++) moved[k] += h * v[k];
      x.copy_from(moved);
      qn::grad(kernel, qn::wrt(x))(5);
      return qn::to_vector(x.grad());
    };
    const std::vector<double> ahead = gradient(1e-5), behind = gradient(-1e-5);
    x.copy_from(at);
    x.dual().copy_from(v);
    qn::hessian_vector(kernel, qn::wrt(x))(5);
    for (size_t k = 0; k < v.size(); k++)
      CHECK(x.grad().dual().at(int64_t(k)) ==
            Approx((ahead[k] - behind[k]) / 2e-5).epsilon(1e-6).margin(1e-7));
  });
}

TEST_CASE("launches on a tape log each what they read, of fields as they found them") {
  on_every_device([](const qn::Device& device) {
    const std::vector<double> at = {0.1, 0.7, 0.3, -0.2, 0.5, 0.4, 0.9, -0.6, 0.2};
    auto x = numbers(device, at);
    qn::Field<double, 0> loss{device};
    qn::Kernel step = [&](I32 n) {
      for (auto i : x) {
        Var<Array<double, 2>> v;
        v[0] = x[i];
        v[1] = 1.0;
        for (auto t : range(n)) v[t % 2] = sin(v[(t + 1) % 2] * 2.0 + v[t % 2]);
        x[i] = v[0] * v[1];
      }
    };
    qn::Kernel measure = [&] {
      loss() = 0.0;
      for (auto i : x) atomic_add(loss(), x[i] * x[i]);
    };
    qn::Tape tape;
    for (int n = 1; n < 5; n++) step(n);
    measure();
    loss.grad().fill(1.0);
    tape.backward();
    for (size_t k = 0; k < at.size(); k++) {
      double value = at[k], slope = 1;  // by the chain rule
      for (int n = 1; n < 5; n++) {
        double v[2] = {value, 1}, d[2] = {slope, 0};
        for (int t = 0; t < n; t++) {
          const int a = t % 2, b = (t + 1) % 2;
          const double of = v[b] * 2 + v[a];
          d[a] = std::cos(of) * (2 * d[b] + d[a]);
          v[a] = std::sin(of);
        }
        value = v[0] * v[1];
        slope = d[0] * v[1] + v[0] * d[1];
      }
      CHECK(x.grad().at(int64_t(k)) == Approx(2 * value * slope).epsilon(1e-12));
    }
  });
}
