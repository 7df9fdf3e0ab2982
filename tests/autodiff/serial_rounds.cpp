// Serial loops of the kernel with parallel ones in their rounds.
#include <quern/autodiff.h>

#include <cmath>
#include <vector>

#include "tests/autodiff/numbers.h"
#include "tests/end_to_end/devices.h"

#include <quern/else.h>

using namespace qn::lang;

TEST_CASE("what a round reduces of elements that it has written is that round's") {
  on_every_device([](const qn::Device& device) {
    qn::Field<double> y{device, {3}}, z{device, {3}};
    // total becomes g(Σ (total + p)), n times: f' by the chain rule, p and total beside each other.
    const auto expect = [&](const auto& kernel, int n, auto&& g, auto&& slope) {
      const double p = 0.5;
      double total = 0, by_p = 0;
      for (int t = 0; t < n; t++) {
        const double at = total + p;
        by_p = slope(at) * (by_p + 1);
        total = g(at);
      }
      CHECK(double(kernel(p)) == Approx(total).epsilon(1e-12));
      CHECK(qn::grad<0>(kernel)(p) == Approx(by_p).epsilon(1e-12));
    };
    for (int n : {1, 2, 5}) {
      INFO(n << " rounds");
      qn::Kernel by_sum = [&](F64 p) -> F64 {
        Var<double> total = 0.0;
        for (auto t : serial(range(n))) {
          (void)t;
          for (auto i : y) y[i] = 0.25 * (total + p);
          Var<double> sum = 0.0;
          for (auto i : y) sum += y[i];
          total = sum * sum;
        }
        return total;
      };
      expect(
          by_sum, n, [](double a) { return 0.5625 * a * a; }, [](double a) { return 1.125 * a; });
      qn::Kernel by_two = [&](F64 p) -> F64 {
        Var<double> total = 0.0;
        Var<int> t = 0;
        While(t < n) {
          for (auto i : y) y[i] = total + p;
          for (auto i : z) z[i] = 2.0 * y[i];
          Var<double> sum = 0.0;
          for (auto i : z) sum += z[i] / 6.0;
          total = sin(sum);
          t += 1;
        }
        return total;
      };
      expect(by_two, n, [](double a) { return std::sin(a); }, [](double a) { return std::cos(a); });
      qn::Kernel by_max = [&](F64 p) -> F64 {
        Var<double> total = 0.0;
        for (auto t : serial(range(n))) {
          (void)t;
          for (auto i : y) y[i] = (total + p) * cast<double>(i);
          Var<double> top = -9.0;
          for (auto i : y) atomic_max(top, y[i]);
          total = 0.125 * top * top;
        }
        return total;
      };
      expect(by_max, n, [](double a) { return 0.5 * a * a; }, [](double a) { return a; });
    }
  });
}

TEST_CASE("what a round counts of elements that it has written is that round's") {
  on_every_device([](const qn::Device& device) {
    const std::vector<double> at = {0.1, 0.4, 0.7, 0.9};
    qn::Field<double> x = numbers(device, at), y{device, {4}};
    for (bool is_in_array : {false, true}) {
      INFO((is_in_array ? "in an array" : "in a variable"));
      qn::Kernel f = [&](F64 p) -> F64 {
        Var<double> total = 0.0;
        for (auto t : serial(range(3))) {
          for (auto i : y) y[i] = x[i] + total + cast<double>(t) * p;
          Var<int> above = 0;
          if (is_in_array) {
            Var<Array<int, 2>> counts;
            for (auto i : serial(range(4))) If(y[i] > 0.75) counts[1] = counts[1] + 1;
            above = counts[1];
          } else {
            for (auto i : y) If(y[i] > 0.75) above += 1;
          }
          total = total + 0.125 * p * cast<double>(above);
        }
        return total;
      };
      const double p = 0.5;
      double total = 0, by_p = 0;
      for (int t = 0; t < 3; t++) {
        int above = 0;
        for (double a : at) above += a + total + t * p > 0.75;
        total += 0.125 * p * above;
        by_p += 0.125 * above;
      }
      CHECK(double(f(p)) == Approx(total).epsilon(1e-12));
      CHECK(qn::grad<0>(f)(p) == Approx(by_p).epsilon(1e-12));
    }
  });
}

TEST_CASE("such rounds have the same gradient whatever else has one") {
  on_every_device([](const qn::Device& device) {
    qn::Field<double, 0> b{device};
    qn::Field<double> x = numbers(device, {1, 0.5}), y{device, {2}};
    b.fill(0.25);
    qn::Kernel f = [&]() -> F64 {
      Var<double> total = 0.0;
      for (auto t : serial(range(3))) {
        (void)t;
        for (auto i : y) y[i] = total + b();
        Var<double> sum = 0.0;
        for (auto i : y) sum += x[i] * y[i];
        total = sum * sum;
      }
      return total;
    };
    double total = 0, by_b = 0;
    for (int t = 0; t < 3; t++) {
      by_b = 2 * 1.5 * 1.5 * (total + 0.25) * (by_b + 1);
      total = std::pow(1.5 * (total + 0.25), 2);
    }
    qn::grad(f)();
    CHECK(b.grad().at({}) == Approx(by_b).epsilon(1e-12));
    qn::grad(f, qn::wrt(b))();
    CHECK(b.grad().at({}) == Approx(by_b).epsilon(1e-12));
  });
}
