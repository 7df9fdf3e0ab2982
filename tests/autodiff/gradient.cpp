// Gradients of kernels with one result, against derivatives that are known.
#include <quern/autodiff.h>
#include <quern/runtime/observer.h>

#include <cmath>
#include <limits>
#include <vector>

#include "quern/ir/ir.h"
#include "tests/autodiff/numbers.h"
#include "tests/end_to_end/devices.h"
#include "tests/message_of.h"

using namespace qn::lang;
using qn::test::message_of;

namespace {

/// Of a kernel the operations and what it is passed.
struct Size {
  size_t operations = 0;
  int companions = 0;  ///< of adjoints
};

/// What is launched last while it lives.
struct Watch : qn::runtime::LaunchObserver {
  Size last;
  qn::runtime::Observation observation{*this, qn::runtime::Observation::kernels};
  void before(const qn::runtime::LaunchEvent& event) override {
    last = {};
    qn::ir::walk(event.recording->body, [&](const qn::ir::Inst*) { last.operations++; });
    for (const auto& p : event.parameters) last.companions += p.name.starts_with("the adjoints of");
  }
};

}  // namespace

TEST_CASE("the gradient of a function of scalars and of vectors") {
  on_every_device([](const qn::Device& device) {
    qn::Field<double> unused{device, {1}};  // says where the kernel runs
    // f = x² sin(y) + |v|² x
    qn::Kernel f = [&](F64 x, I32 n, F64 y, Val<dvec3> v) -> F64 {
      unused[0] = cast<double>(n);
      return x * x * sin(y) + dot(v, v) * x;
    };
    auto all = qn::value_and_grad(f)(3.0, 1, 0.5, dvec3(1, 2, -2));
    CHECK(all.value() == Approx(9 * std::sin(0.5) + 27).epsilon(1e-13));
    CHECK(all.get<0>() == Approx(6 * std::sin(0.5) + 9).epsilon(1e-13));
    CHECK(all.get<1>() == 0);
    CHECK(all.get<2>() == Approx(9 * std::cos(0.5)).epsilon(1e-13));
    CHECK(all.get<3>() == dvec3(6, 12, -12));
    CHECK(unused.at(0) == 1);

    auto some = qn::value_and_grad<2, 3>(f)(3.0, 2, 0.5, dvec3(1, 2, -2));
    CHECK(some.get<2>() == all.get<2>());
    CHECK(some.get<3>() == dvec3(6, 12, -12));
    CHECK(unused.at(0) == 2);
    const double one = qn::grad<0>(f)(3.0, 3, 0.5, dvec3(1, 2, -2));
    CHECK(one == all.get<0>());
    CHECK(unused.at(0) == 3);
  });
}

TEST_CASE("what a kernel does not use has the derivative 0, in its place") {
  on_every_device([](const qn::Device& device) {
    qn::Field<double> there{device, {1}};
    const auto at = [&] { return there[0]; };  // says where the kernels run
    qn::Kernel f = [&](F64 a, F64, F64 b, F64 c) -> F64 { return a * a + 3 * b + 5 * c + at(); };
    const auto r = qn::value_and_grad(f)(1.0, 1.0, 1.0, 1.0);
    CHECK(r.get<0>() == 2);
    CHECK(r.get<1>() == 0);
    CHECK(r.get<2>() == 3);
    CHECK(r.get<3>() == 5);
    const auto h = qn::hessian_vector(f)(qn::Dual<double>(1.0, 1.0), 1.0, 1.0, 1.0);
    CHECK(h.get<3>() == 5);
    CHECK(h.product<0>() == 2);
    CHECK(h.product<3>() == 0);

    qn::Kernel parts = [&](Val<dvec3> v, Val<dmat2> m, F64 b) -> F64 {
      return v.x * v.y + m(0, 0) + m(1, 1) + 3 * b + at();
    };
    const auto p = qn::value_and_grad(parts)(dvec3(5, 7, 11), dmat2(1, 2, 3, 4), 2.0);
    CHECK(p.get<0>() == dvec3(7, 5, 0));
    CHECK(p.get<1>() == dmat2(1, 0, 0, 1));
    CHECK(p.get<2>() == 3);

    qn::Kernel none = [&](F64, F64) -> F64 { return at(); };
    CHECK(qn::value_and_grad(none)(1.0, 2.0).get<1>() == 0);
  });
}

TEST_CASE("the value beside the gradient is the kernel's, wherever its sum is added to") {
  const std::vector<double> at = {1, -2, 3, 4};
  const auto branch = [](F64 v, Var<double>& sum) {
    If(v > 0.0) { sum += v; }
  };
  const auto skipped = [](F64 v, Var<double>& sum) {
    If(v < 0.0) { Continue(); }
    sum += v;
  };
  const auto rounds = [](F64 v, Var<double>& sum) {
    for (auto j : range(3)) sum += v * cast<double>(j);
  };
  const auto tested = [](F64 v, Var<double>& sum) {
    Var<double> left = v;
    While(left > 0.0) {
      sum += left;
      left -= 1.0;
    }
  };
  const auto both = [&](F64 v, Var<double>& sum) {
    branch(v, sum);
    sum += 2 * v;
    rounds(v, sum);
  };
  on_every_device([&](const qn::Device& device) {
    const auto expect = [&](auto add, double value, const std::vector<double>& gradient) {
      auto x = numbers(device, at);
      const auto record = [&](auto options) {
        qn::Kernel f{[&]() -> F64 {
                       Var<double> sum = 100.0;
                       for (auto i : x) add(x[i], sum);
                       return sum - 3.0;
                     },
                     options};
        x.grad().fill(1000.0);
        CHECK(f() == Approx(97 + value));
        CHECK(qn::value_and_grad(f)().value() == Approx(97 + value));
        CHECK(qn::to_vector(x.grad()) == gradient);
      };
      record(qn::Options{.checked = false});
      record(qn::Options{.checked = true});
    };
    expect(branch, 8, {1, 0, 1, 1});
    expect(skipped, 8, {1, 0, 1, 1});
    expect(rounds, 18, {3, 3, 3, 3});
    expect(tested, 1 + 6 + 10, {1, 0, 3, 4});
    expect(both, 8 + 12 + 18, {6, 5, 6, 6});
  });
}

TEST_CASE("sums that loops reduce within a branch or a round of the kernel") {
  on_every_device([](const qn::Device& device) {
    auto x = numbers(device, {1, 2, 3});
    qn::Field<double, 0> loss{device};
    const auto square_of_sum = [&] {
      Var<double> sum = 0;
      for (auto i : x) sum += x[i];
      return F64(sum * sum);
    };
    qn::Kernel rounds = [&] {
      for (auto t : serial(range(2))) loss() += square_of_sum() * cast<double>(t + 1);
    };
    qn::Kernel branch = [&](I32 k) {
      If(k > 0) { loss() += square_of_sum(); }
    };
    const auto gradient = [&](auto&& back) {
      x.grad().fill(0.0);
      loss.grad().fill(1.0);
      back();
      return qn::to_vector(x.grad());
    };
    CHECK(gradient([&] { qn::vjp(rounds)()(); }) == std::vector<double>(3, 36));
    CHECK(gradient([&] { qn::vjp(branch)(1)(); }) == std::vector<double>(3, 12));
    CHECK(gradient([&] { qn::vjp(branch)(0)(); }) == std::vector<double>(3, 0));
    qn::Kernel total{[&]() -> F64 {
                       Var<double> all = 0;
                       for (auto t : serial(range(2))) all += square_of_sum() * cast<double>(t + 1);
                       return all;
                     },
                     {.checked = false}};
    CHECK(qn::value_and_grad(total)().value() == 108);
    CHECK(qn::to_vector(x.grad()) == std::vector<double>(3, 36));
  });
}

TEST_CASE("the gradient by fields is set: quadratic form and Rosenbrock's function") {
  on_every_device([](const qn::Device& device) {
    const std::vector<double> at = {-1.2, 1, 0.5, 2};
    auto x = numbers(device, at);
    qn::Field<double, 2> a{device, {4, 4}};
    std::vector<double> entries;
    for (int i = 0; i < 4; i++)
      for (int j = 0; j < 4; j++) entries.push_back(i == j ? 3 + i : 0.5 * i - 0.25 * j);
    a.copy_from(entries);
    qn::Kernel form = [&](F64 scale) -> F64 {
      Var<double> sum = 0;
      for (auto [i, j] : a) sum += x[i] * a(i, j) * x[j];
      return scale * sum;
    };
    x.grad().fill(1000.0);  // dropped
    a.grad().fill(1000.0);
    auto r = qn::value_and_grad(form)(0.5);
    double value = 0;
    for (size_t i = 0; i < 4; i++) {
      double g = 0;  // ½ (A + Aᵀ) x
      for (size_t j = 0; j < 4; j++) {
        g += 0.5 * (entries[4 * i + j] + entries[4 * j + i]) * at[j];
        value += 0.5 * at[i] * entries[4 * i + j] * at[j];
        CHECK(a.grad().at({int(i), int(j)}) == Approx(0.5 * at[i] * at[j]).epsilon(1e-13));
      }
      CHECK(x.grad().at(int(i)) == Approx(g).epsilon(1e-13));
    }
    CHECK(r.value() == Approx(value).epsilon(1e-13));
    CHECK(r.get<0>() == Approx(2 * value).epsilon(1e-13));

    qn::Kernel rosenbrock = [](qn::Field<double> p, F64 weight) -> F64 {
      Var<double> sum = 0;
      for (auto i : range(p.dim(0) - 1)) {
        F64 d = p[i + 1] - p[i] * p[i];
        F64 e = 1.0 - p[i];
        sum += weight * d * d + e * e;
      }
      return sum;
    };
    auto valley = qn::value_and_grad<0>(rosenbrock);
    for (int twice = 0; twice < 2; twice++) {
      double f = 0;
      std::vector<double> g(4);
      for (size_t i = 0; i < 3; i++) {
        const double d = at[i + 1] - at[i] * at[i];
        f += 100 * d * d + (1 - at[i]) * (1 - at[i]);
        g[i] += -400 * at[i] * d - 2 * (1 - at[i]);
        g[i + 1] += 200 * d;
      }
      CHECK(valley(x, 100.0).value() == Approx(f).epsilon(1e-13));
      for (int i = 0; i < 4; i++)
        CHECK(x.grad().at(i) == Approx(g[size_t(i)]).epsilon(1e-12).margin(1e-12));
    }
  });
}

TEST_CASE("adjoints that get one term are set, not cleared and added to") {
  // Does the reverse kernel, which is launched last, add to anything?
  struct Adds : qn::runtime::LaunchObserver {
    bool any = false;
    qn::runtime::Observation observation{*this, qn::runtime::Observation::kernels};
    void before(const qn::runtime::LaunchEvent& event) override {
      any = false;
      qn::ir::walk(event.recording->body,
                   [&](const qn::ir::Inst* inst) { any |= inst->is(qn::ir::Op::atomic); });
    }
  };
  on_every_device([](const qn::Device& device) {
    for (int n : {0, 1, 2, 50}) {
      auto x = numbers(device, std::vector<double>(size_t(n), 2.0));
      const auto adjoints = [&](const auto& f, bool is_set) {
        x.grad().fill(7);
        Adds adds;
        qn::value_and_grad(f, qn::wrt(x))();
        if (n > 0) CHECK(adds.any != is_set);  // else no loop is recorded
        return qn::to_vector(x.grad());
      };
      qn::Kernel once = [&]() -> F64 {
        Var<double> sum = 0;
        for (auto i : x) sum += x[i] * x[i] * x[i];
        return sum;
      };
      for (double found : adjoints(once, true)) CHECK(found == 12);
      qn::Kernel twice = [&]() -> F64 {
        Var<double> sum = 0;
        for (auto i : x) sum += x[i] * x[i] * x[i];
        for (auto i : x) sum += x[i];
        return sum;
      };
      for (double found : adjoints(twice, false)) CHECK(found == 13);
      qn::Kernel some = [&]() -> F64 {
        Var<double> sum = 0;
        for (auto i : x) If(i != 1) sum += x[i] * x[i];
        return sum;
      };
      const std::vector<double> found = adjoints(some, false);
      for (int i = 0; i < n; i++) CHECK(found[size_t(i)] == (i == 1 ? 0 : 4));
      if (n < 2) continue;
      auto part = x.slice(0, 1, n);
      qn::Kernel both = [&]() -> F64 {
        Var<double> sum = 0;
        for (auto i : part) sum += 3.0 * part[i] + x[0];
        return sum;
      };
      x.grad().fill(7);
      qn::value_and_grad(both, qn::wrt(x))();
      CHECK(x.grad().at(0) == n - 1);
      for (int i = 1; i < n; i++) CHECK(x.grad().at(i) == 3);
    }
  });
}

TEST_CASE("by what is not chosen nothing is computed") {
  on_every_device([](const qn::Device& device) {
    auto x = numbers(device, {1, 2, 3}), y = numbers(device, {4, 5, 6}),
         z = numbers(device, {0, 0, 0});
    qn::Kernel f = [&](qn::Field<double> w, F64 s) -> F64 {
      Var<double> sum = 0;
      for (auto i : x) {
        z[i] = sin(x[i]);
        sum += sin(w[i]) * exp(x[i]) * s + cos(y[i]) * y[i];
      }
      return sum;
    };
    auto w = numbers(device, {0.5, 0.25, -1});
    const auto cost = [&](auto&& gradient) {
      for (auto field : {x, y, z, w}) field.grad().fill(7.0);
      Watch watch;
      gradient(w, 2.0);
      return watch.last;
    };
    const auto touched = [](const qn::Field<double>& field) { return field.grad().at(0) != 7; };
    const Size all = cost(qn::value_and_grad(f));
    CHECK(all.companions == 3);
    CHECK((touched(x) && touched(y) && !touched(z) && touched(w)));
    const Size by_w = cost(qn::value_and_grad<0>(f));
    CHECK(by_w.companions == 1);
    CHECK((!touched(x) && !touched(y) && !touched(z) && touched(w)));
    CHECK(w.grad().at(1) == Approx(std::cos(0.25) * std::exp(2.0) * 2).epsilon(1e-13));
    const Size by_y = cost(qn::grad(f, qn::wrt(y)));
    CHECK(by_y.companions == 1);
    CHECK(y.grad().at(2) == Approx(std::cos(6.0) - 6 * std::sin(6.0)).epsilon(1e-13));
    const Size by_s = cost(qn::grad<1>(f));
    CHECK(by_s.companions == 0);
    CHECK((!touched(x) && !touched(y) && !touched(z) && !touched(w)));
    const Size by_both = cost(qn::grad<0>(f, qn::wrt(x, y)));
    CHECK(by_both.companions == 3);
    CHECK(x.grad().at(0) == Approx(std::sin(0.5) * std::exp(1.0) * 2).epsilon(1e-13));
    // The terms that only others want are gone: a reverse kernel of one input is shorter than half.
    CHECK(2 * by_w.operations < all.operations + by_s.operations);
    CHECK(by_y.operations < by_both.operations);
    CHECK(by_s.operations < all.operations);
    CHECK(double(qn::grad<1>(f)(w, 2.0)) ==
          Approx(std::sin(0.5) * std::exp(1.0) + std::sin(0.25) * std::exp(2.0) +
                 std::sin(-1.0) * std::exp(3.0))
              .epsilon(1e-13));
  });
}

TEST_CASE("a kernel that reads what its gradient overwrites finds what was there before") {
  on_every_device([](const qn::Device& device) {
    constexpr int n = 1000;
    for (bool checked : {false, true}) {
      INFO("checked: " << checked);
      qn::Field<double> x{device, {n}};
      const auto slope = x.grad();
      std::vector<double> slopes;
      for (int i = 0; i < n; i++) slopes.push_back(i);
      x.fill(2);
      slope.copy_from(slopes);
      qn::Kernel<double()> turned{[&]() -> F64 {
                                    Var<double> sum = 0;
                                    for (auto i : x) sum += x[i] * slope[n - 1 - i];
                                    return sum;
                                  },
                                  {.checked = checked}};
      CHECK(qn::value_and_grad(turned, qn::wrt(x))().value() == n * (n - 1));
      std::vector<double> expected(slopes.rbegin(), slopes.rend());
      CHECK(qn::to_vector(x.grad()) == expected);
      // Along a slope: its adjoints are no zeros before, and are added to.
      slope.copy_from(slopes);
      qn::Kernel<double(F64)> along{[&](F64 far) -> F64 {
                                      Var<double> sum = 0;
                                      for (auto i : x) sum += x[i] - far * slope[i];
                                      for (auto i : x) sum += x[i] * x[i];
                                      return sum;
                                    },
                                    {.checked = checked}};
      auto search = qn::value_and_grad(along);
      for (int twice = 0; twice < 2; twice++) {
        slope.copy_from(slopes);
        const auto found = search(0.5);
        CHECK(found.value() == 6 * n - 0.25 * n * (n - 1));
        CHECK(found.get<0>() == -0.5 * n * (n - 1));
        CHECK(qn::to_vector(x.grad()) == std::vector<double>(n, 5.0));
      }
    }
  });
}

TEST_CASE("gradients of kernels that overwrite what they read are those before the launch") {
  on_every_device([](const qn::Device& device) {
    auto x = numbers(device, {1, 2, 3});
    qn::Field<double> half = x.slice(0, 0, 2);
    qn::Kernel f = [&]() -> F64 {
      Var<double> sum = 0;
      for (auto i : x) {
        sum += x[i] * x[i] * x[i];
        x[i] = 10.0 * x[i];
      }
      return sum;
    };
    CHECK(qn::value_and_grad(f)().value() == 36);
    CHECK(qn::to_vector(x) == std::vector<double>{10, 20, 30});
    CHECK(qn::to_vector(x.grad()) == std::vector<double>{3, 12, 27});
    // A view of what is chosen is chosen with it.
    qn::Kernel g = [&]() -> F64 {
      Var<double> sum = 0;
      for (auto i : half) sum += half[i] * x[i + 1];
      return sum;
    };
    qn::grad(g, qn::wrt(x))();
    CHECK(qn::to_vector(x.grad()) == std::vector<double>{20, 10 + 30, 20});
  });
}

TEST_CASE("gradients of halves and single floats") {
  on_every_device([](const qn::Device& device) {
    qn::Field<qn::half> h{device, {2}};
    h.copy_from(std::vector<qn::half>{qn::half(0.5f), qn::half(3.0f)});
    qn::Kernel f = [&](F32 a) -> F32 {
      Var<float> sum = 0;
      for (auto i : h) sum += a * cast<float>(h[i]) * cast<float>(h[i]);
      return sum;
    };
    auto r = qn::value_and_grad(f)(2.0f);
    CHECK(r.value() == 18.5f);
    CHECK(r.get<0>() == 9.25f);
    CHECK(h.grad().at(0) == 2.0f);
    CHECK(h.grad().at(1) == 12.0f);
  });
}

namespace {
template <class T>
void expect_slopes_of_tanh(const qn::Device& device) {
  constexpr T infinity = std::numeric_limits<T>::infinity();
  const std::vector<T> at = {T(0),   T(-0.0), T(0.3), T(-0.74), T(0.76),  T(3),
                             T(-12), T(43),   T(400), T(-400),  infinity, -infinity};
  qn::Field<T> x{device, {int64_t(at.size())}}, y{device, {int64_t(at.size())}};
  x.copy_from(at);
  qn::Kernel bend = [&] {
    for (auto i : x) y[i] = tanh(x[i]);
  };
  y.grad().fill(T(1));
  qn::Tape tape;
  bend();
  tape.backward();
  const double few_roundings = 16 * double(std::numeric_limits<T>::epsilon());
  for (size_t k = 0; k < at.size(); k++) {
    INFO(sizeof(T) << " bytes, at " << at[k]);
    const double steep = std::cosh(double(at[k]));
    CHECK(double(y.at(int64_t(k))) == Approx(std::tanh(double(at[k]))).epsilon(few_roundings));
    const double slope = double(x.grad().at(int64_t(k)));
    if (std::fabs(at[k]) >= 400)
      CHECK(slope == 0);
    else
      CHECK(slope == Approx(1 / (steep * steep)).epsilon(few_roundings).margin(0));
  }
}
}  // namespace

TEST_CASE("the derivative of tanh from 0 to where it underflows") {
  on_every_device([](const qn::Device& device) {
    expect_slopes_of_tanh<float>(device);
    expect_slopes_of_tanh<double>(device);
  });
}

TEST_CASE("what a gradient cannot be taken by is refused") {
  const qn::Device device("cpu");
  auto x = numbers(device, {1}), y = numbers(device, {1});
  qn::Kernel f = [&](qn::Field<double> p) -> F64 { return x[0] * p[0]; };
  CHECK(message_of([&] { qn::grad(f, qn::wrt(x, y)); }).find("field number 1 of wrt() is none") !=
        std::string::npos);
  qn::Kernel bits = [&]() -> F64 { return x[0] * cast<double>(bitcast<int64_t>(x[0])); };
  auto g = qn::value_and_grad(bits);
  CHECK(message_of([&] { g(); }).find("the bits of a float that varies has no adjoint") !=
        std::string::npos);
}
