// Derivatives that the user says: values that are constants to them, functions with rules of their
// own.
#include <quern/autodiff.h>
#include <quern/else.h>
#include <quern/matrix.h>

#include <cmath>
#include <optional>

#include "tests/autodiff/numbers.h"
#include "tests/end_to_end/devices.h"
#include "tests/message_of.h"

using namespace qn::lang;
using qn::test::message_of;

TEST_CASE("derivatives take a stopped value for a constant") {
  on_every_device([](const qn::Device& device) {
    auto x = numbers(device, {0.5, -1.5, 2});
    qn::Field<double> y{device, {3}};
    qn::Field<vec3> p{device, {3}};
    qn::Field<float> far{device, {3}};
    for (int k = 0; k < 3; k++) p.set(k, {1, 2, 2});
    qn::Kernel f = [&](F64 scale) -> F64 {
      Var<double> sum = 0;
      for (auto i : x) {
        Var<double> v = x[i];
        // x as it is, with the gradient of its cube
        y[i] = v * v * v + stop_gradient(v - v * v * v);
        far[i] = dot(stop_gradient(p[i]), p[i]);
        sum += stop_gradient(x[i]) * x[i] * stop_gradient(scale);
      }
      return stop_gradient(sum) * scale + sum;
    };
    x.dual().fill(1.0);
    for (int k = 0; k < 3; k++) p.dual().set(k, {1, 10, 100});
    const auto pushed = qn::jvp(f)({2.0, 3.0});
    CHECK(pushed.value() == 2 * (0.25 + 2.25 + 4) * 3);
    CHECK(pushed.tangent() == 2 * (0.5 - 1.5 + 2) + 3 * 2 * (0.25 + 2.25 + 4));
    y.grad().fill(1.0);
    far.grad().fill(1.0f);
    auto back = qn::vjp(f)(2.0);
    CHECK(double(back.result()) == 2 * (0.25 + 2.25 + 4) * 3);
    CHECK(back(1.0).get<0>() == 2 * (0.25 + 2.25 + 4));
    const double at[] = {0.5, -1.5, 2};
    for (int k = 0; k < 3; k++) {
      CHECK(y.at(k) == Approx(at[k]));
      CHECK(y.dual().at(k) == 3 * at[k] * at[k]);
      CHECK(x.grad().at(k) == 3 * at[k] * at[k] + 2 * at[k]);
      CHECK(far.at(k) == 9);
      CHECK(far.dual().at(k) == 1 + 20 + 200);
      CHECK(p.grad().at(k) == vec3(1, 2, 2));
    }
  });
}

TEST_CASE("any value may be stopped, on the host too") {
  const qn::Device device("cpu");
  static_assert(stop_gradient(2.5) == 2.5);
  CHECK(stop_gradient(vec2(1, 2)) == vec2(1, 2));
  qn::Field<int> n{device, {1}};
  qn::Field<mat2> m{device, {1}};
  qn::Field<qn::half> h{device, {1}};
  m.set(0, mat2(1, 2, 3, 4));
  h.set(0, qn::half(0.5f));
  qn::Kernel f = [&] {
    for (auto i : n) {
      n[i] = stop_gradient(i + 7);
      If(stop_gradient(i == 0)) { m[i] = stop_gradient(m[i]) * m[i]; }
      h[i] = stop_gradient(h[i]) + h[i];
    }
  };
  f();
  CHECK(n.at(0) == 7);
  CHECK(m.at(0) == mat2(7, 10, 15, 22));
  CHECK(float(h.at(0)) == 1);
}

TEST_CASE("a function's own rules are used in place of its code") {
  on_every_device([](const qn::Device& device) {
    // log(1 + eˣ), whose code overflows, and whose derivative is not that of the code
    auto softplus = qn::differentiable(
        [](F64 x) { return select(x > 30.0, x, log(1.0 + exp(x))); },
        qn::pullback([](F64 x, F64, F64 dy) { return dy / (1.0 + exp(-x)); }),
        qn::pushforward([](F64 x, F64, F64 dx) { return dx / (1.0 + exp(-x)); }));
    auto x = numbers(device, {-800, -1, 0, 2, 800});
    qn::Field<double> y{device, {5}};
    qn::Kernel f = [&] {
      for (auto i : x) {
        Var<double> v = x[i];
        for (int k = 0; k < 2; k++) v = softplus(v) - 0.5;
        y[i] = v;
      }
    };
    x.dual().fill(1.0);
    qn::jvp(f)();
    y.grad().fill(2.0);
    qn::vjp(f)()();
    const double at[] = {-800, -1, 0, 2, 800};
    const auto sigma = [](double v) { return 1 / (1 + std::exp(-v)); };
    for (int k = 0; k < 5; k++) {
      const double once = at[k] > 30 ? at[k] : std::log1p(std::exp(at[k])),
                   slope = sigma(at[k]) * sigma(once - 0.5);
      CHECK(y.dual().at(k) == Approx(slope).epsilon(1e-13));
      CHECK(x.grad().at(k) == Approx(2 * slope).epsilon(1e-13));
    }
  });
}

TEST_CASE("rules of several arguments and results, of vectors, integers and halves") {
  on_every_device([](const qn::Device& device) {
    // Adjoints of 10, 100 … times what they would be, so that nothing else can have made them.
    auto f = qn::differentiable(
        [](Vec2 a, I32 n, F16 h, Mat2 m) {
          return result(m * a, n + 1, cast<float>(h) * cast<float>(n));
        },
        qn::pullback([](Vec2 a, I32 n, F16 h, Mat2 m, Vec2 ma, I32 n1, F32 hn, Vec2 dma, F32 dhn) {
          const Vec2 da = 10 * (transpose(m) * dma);
          const F32 dh = 100 * dhn * cast<float>(n1 - 1) + 0 * cast<float>(h) + 0 * hn + 0 * ma.x;
          const Mat2 dm = 1000 * outer(dma, a) + 0.0f * cast<float>(n) * m;
          return result(da, dh, dm);
        }),
        qn::pushforward([](auto, auto n, auto, auto m, auto, auto, auto, auto da, auto dh, auto) {
          return result(m * da, cast<float>(n) * dh);
        }));
    qn::Field<vec2> a{device, {1}}, ma{device, {1}};
    qn::Field<qn::half> h{device, {1}};
    qn::Field<mat2> m{device, {1}};
    qn::Field<float> hn{device, {1}};
    qn::Field<int> n{device, {1}};
    a.set(0, {2, 3});
    h.set(0, qn::half(0.5f));
    m.set(0, mat2(1, 2, 3, 4));
    qn::Kernel k = [&](I32 count) {
      for (auto i : a) {
        auto [p, q, r] = f(a[i], count, h[i], m[i]);
        ma[i] = p;
        n[i] = q;
        hn[i] = r;
      }
    };
    a.dual().set(0, {5, 7});
    h.dual().set(0, 0.25f);
    qn::jvp(k)(6);
    CHECK(ma.at(0) == vec2(8, 18));
    CHECK(n.at(0) == 7);
    CHECK(hn.at(0) == 3);
    CHECK(ma.dual().at(0) == vec2(19, 43));
    CHECK(hn.dual().at(0) == 1.5f);
    ma.grad().set(0, {1, -1});
    hn.grad().set(0, 2);
    qn::vjp(k)(6)();
    CHECK(a.grad().at(0) == vec2(-20, -20));
    CHECK(h.grad().at(0) == 100 * 2 * 6);
    CHECK(m.grad().at(0) == mat2(2000, 3000, -2000, -3000));
  });
}

TEST_CASE("a rule that gives nothing stops derivatives") {
  on_every_device([](const qn::Device& device) {
    auto stop = qn::differentiable([](F64 x) { return x; }, qn::pullback([](F64, F64, F64) {}),
                                   qn::pushforward([](F64, F64, F64) {}));
    auto x = numbers(device, {3});
    qn::Field<double> y{device, {1}};
    qn::Kernel f = [&] {
      for (auto i : x) y[i] = x[i] * stop(x[i]);
    };
    x.dual().fill(1.0);
    y.grad().fill(1.0);
    qn::jvp(f)();
    CHECK(y.at(0) == 9);
    CHECK(y.dual().at(0) == 3);
    qn::vjp(f)()();
    CHECK(x.grad().at(0) == 3);
  });
}

TEST_CASE("rules call functions, of which some have rules, and have loops and branches") {
  on_every_device([](const qn::Device& device) {
    qn::Func cube = [](F64 x) { return x * x * x; };
    // x⁴, and 7 in place of its slope where x is negative
    auto fourth = qn::differentiable([&](F64 x) { return cube(x) * x; },
                                     qn::pullback([&](F64 x, F64, F64 dy) {
                                       Var<double> slope = 0;
                                       If(x < 0.0) { slope = 7.0; }
                                       Else {
                                         for (auto k : range(4)) slope += cube(x);
                                       }
                                       return dy * slope;
                                     }));
    qn::Func outside = [&](F64 x) { return fourth(2.0 * x) + x; };
    // Of a Func: a rule that applies another function with a rule.
    auto twice =
        qn::differentiable(outside, qn::pullback([&](F64 x, F64, F64 dy) {
                             return dy * fourth(x) + 0.0 * inverse(DMat2(2.0, 0.0, 0.0, 2.0))(0, 0);
                           }));
    auto x = numbers(device, {0.5, -1, 2});
    qn::Field<double> y{device, {3}}, z{device, {3}};
    qn::Kernel f = [&] {
      for (auto i : x) {
        y[i] = outside(x[i]);
        z[i] = twice(x[i]);
      }
    };
    const double at[] = {0.5, -1, 2};
    y.grad().fill(1.0);
    qn::vjp(f)()();
    for (int k = 0; k < 3; k++) {
      CHECK(y.at(k) == 16 * std::pow(at[k], 4) + at[k]);
      CHECK(z.at(k) == y.at(k));
      CHECK(x.grad().at(k) == (at[k] < 0 ? 14 : 64 * std::pow(at[k], 3)) + 1);
    }
    x.grad().fill(0.0);
    z.grad().fill(1.0);
    qn::vjp(f)()();
    for (int k = 0; k < 3; k++) CHECK(x.grad().at(k) == std::pow(at[k], 4));
  });
}

TEST_CASE("functions with rules, and rules, keep numbers in local arrays that constants index") {
  on_every_device([](const qn::Device& device) {
    const double at[] = {0.5, -1.5, 2};
    auto x = numbers(device, {0.5, -1.5, 2});
    qn::Field<double> y{device, {3}};
    // 1 + v + v² + v³, and its derivative by the same powers
    auto sum = qn::differentiable(
        [](F64 v) {
          Var<Array<double, 4>> power;
          power[0] = 1;
          for (int k = 1; k < 4; k++) power[k] = power[k - 1] * v;
          Var<double> all = 0;
          for (int k = 0; k < 4; k++) all += power[k];
          return F64(all);
        },
        qn::pullback([](F64 v, F64, F64 dy) {
          Var<Array<double, 3>> power;
          power[0] = dy;
          for (int k = 1; k < 3; k++) power[k] = power[k - 1] * v;
          return power[0] + 2 * power[1] + 3 * power[2];
        }));
    qn::Kernel f = [&] {
      for (auto i : x) y[i] = sum(x[i]);
    };
    y.grad().fill(1.0);
    qn::vjp(f)()();
    for (int k = 0; k < 3; k++) {
      const double v = at[k];
      CHECK(y.at(k) == Approx(1 + v + v * v + v * v * v));
      CHECK(x.grad().at(k) == Approx(1 + 2 * v + 3 * v * v));
    }
  });
}

TEST_CASE("what a rule may not do is refused at its line") {
  const qn::Device device("cpu");
  auto x = numbers(device, {1, 2});
  int line = 0;
  const auto refused = [&](auto make, const char* what) {
    const std::string found = message_of(make);
    INFO(found);
    CHECK(found.find("custom.cpp:" + std::to_string(line) +
                     ": a function with a derivative of its own, or its rule, " + what) !=
          std::string::npos);
  };
  const auto of = [](auto f) {
    qn::differentiable(f, qn::pullback([](F64, F64, F64 dy) { return dy; }));
  };
  const auto with = [](auto pull) {
    qn::differentiable([](F64 v) { return v; }, qn::pullback(pull));
  };
  refused(
      [&] {
        of([&](F64 v) {
          line = __LINE__ + 1;
          return v + x[0];
        });
      },
      "uses a field");
  refused(
      [&] {
        with([&](F64, F64, F64 dy) {
          line = __LINE__ + 1;
          x[0] = dy;
          return dy;
        });
      },
      "uses a field");
  refused(
      [&] {
        with([&](F64 v, F64, F64 dy) {
          line = __LINE__ + 1;
          print("{}", v);
          return dy;
        });
      },
      "prints");
  refused(
      [&] {
        of([&](F64 v) {
          line = __LINE__ + 1;
          check(v > 0.0, "not positive");
          return v;
        });
      },
      "checks a condition");
  refused(
      [&] {
        of([&](F64 v) {
          line = __LINE__ + 1;
          return v * random<double>();
        });
      },
      "draws a random number");
  refused(
      [&] {
        with([&](F64 v, F64, F64 dy) {
          Var<Array<double, 3>> t;
          for (int k = 0; k < 3; k++) t[k] = dy;
          line = __LINE__ + 1;
          for (auto k : range(3)) t[k] *= v;
          return F64(t[0]);
        });
      },
      "indexes a local array by what is no constant");
  qn::Func truncated = [&](F64 v) {
    line = __LINE__ + 1;
    return cast<double>(cast<int>(v));
  };
  refused([&] { of([&](F64 v) { return truncated(v); }); }, "casts a float to an integer");
}

TEST_CASE("a direction without a rule is refused where the function is called") {
  const qn::Device device("cpu");
  auto x = numbers(device, {1, 2});
  auto back = qn::differentiable([](F64 v) { return v; },
                                 qn::pullback([](F64, F64, F64 dy) { return dy; }));
  auto ahead = qn::differentiable([](F64 v) { return v; },
                                  qn::pushforward([](F64, F64, F64 dx) { return dx; }));
  const int line = __LINE__ + 2;
  qn::Kernel a = [&] {
    for (auto i : x) x[i] = back(x[i]);
  };
  qn::Kernel b = [&] {
    for (auto i : x) x[i] = ahead(x[i]);
  };
  const auto says = [](const std::string& found, int where, const char* what) {
    INFO(found);
    CHECK(found.find("custom.cpp:" + std::to_string(where) + ": " + what) != std::string::npos);
  };
  says(message_of([&] { qn::jvp(a); }), line, "a function without a pushforward has no tangent");
  says(message_of([&] { qn::vjp(b)(); }), line + 3, "a function without a pullback has no adjoint");
}

TEST_CASE("a tape goes back through a run by its pullback") {
  on_every_device([](const qn::Device& device) {
    // The least of all, by an atomic that has no adjoint: it goes to the element that is the least.
    auto x = numbers(device, {3, -1, 2, -5, 4});
    qn::Field<double> y{device, {5}};
    qn::Field<double, 0> least{device}, loss{device};
    qn::Kernel twice = [&] {
      for (auto i : x) y[i] = 2.0 * x[i];
    };
    qn::Kernel find = [&] {
      for (auto i : y) atomic_min(least(), y[i]);
    };
    qn::Kernel square = [&] { loss() = least() * least(); };
    auto dy = y.grad();
    auto dleast = least.grad();
    qn::Kernel find_back = [&] {
      for (auto i : y) {
        If(y[i] == least()) { dy[i] += dleast(); }
      }
      dleast() = 0.0;
    };
    least.fill(100.0);
    qn::Tape tape;
    twice();
    const int found = qn::with_pullback(
        [&] {
          find();
          return 7;
        },
        [&] { find_back(); });
    CHECK(found == 7);
    square();
    loss.grad().fill(1.0);
    tape.backward();
    // loss = (2 x₃)²
    for (int k = 0; k < 5; k++) CHECK(x.grad().at(k) == (k == 3 ? 8 * -5 : 0));
    CHECK(dleast.at({}) == 0);
  });
}

TEST_CASE("runs with a pullback within others are part of them") {
  const qn::Device device("cpu");
  auto x = numbers(device, {1});
  std::vector<int> order;
  qn::Kernel step = [&] {
    for (auto i : x) x[i] = 2.0 * x[i];
  };
  x.grad().fill(1.0);
  qn::Tape tape;
  step();
  qn::with_pullback(
      [&] {
        qn::with_pullback([&] { step(); }, [&] { order.push_back(0); });
        step();
      },
      [&] { order.push_back(1); });
  step();
  qn::with_pullback([&] { step(); }, [&] { order.push_back(2); });
  tape.backward();
  CHECK(order == std::vector<int>{2, 1});
  CHECK(x.at(0) == 32);
  CHECK(x.grad().at(0) == 4);  // of the two steps that were recorded
  // Without a tape nothing is kept.
  qn::with_pullback([&] { step(); }, [&] { order.push_back(3); });
  CHECK(order.size() == 2);
}

TEST_CASE("a tape made within a run with a pullback records") {
  const qn::Device device("cpu");
  auto x = numbers(device, {1}), y = numbers(device, {3});
  qn::Kernel step = [&] {
    for (auto i : x) x[i] = 2.0 * x[i];
  };
  qn::Kernel square = [&] {
    for (auto i : y) y[i] = y[i] * y[i];
  };
  x.grad().fill(1.0);
  y.grad().fill(1.0);
  qn::Tape outer;
  step();
  qn::with_pullback(
      [&] {
        step();
        qn::Tape inner;
        square();
        qn::with_pullback([&] { square(); }, [&] { y.grad().set(0, 10.0 * y.grad().at(0)); });
        inner.backward();
        CHECK(y.grad().at(0) == 10 * 2 * 3);
      },
      [&] { x.grad().set(0, 7.0 * x.grad().at(0)); });
  step();
  outer.backward();
  CHECK(x.grad().at(0) == 2 * 7 * 2);
  CHECK(y.grad().at(0) == 60);
  // One that outlives the run that it was made in is one like others then.
  std::optional<qn::Tape> late;
  qn::with_pullback([&] { late.emplace(); }, [] {});
  step();
  qn::with_pullback([&] { step(); }, [&] { x.grad().set(0, 5.0 * x.grad().at(0)); });
  x.grad().fill(1.0);
  late->backward();
  CHECK(x.grad().at(0) == 10);
}

TEST_CASE("a tape says where a run with a pullback threw") {
  const qn::Device device("cpu");
  auto x = numbers(device, {1});
  qn::Kernel step = [&] {
    for (auto i : x) x[i] = 2.0 * x[i];
  };
  qn::Tape tape;
  step();
  const auto fails = [&] {
    step();
    throw 5;
  };
  int thrown = 0;
  const int line = __LINE__ + 2;
  try {
    qn::with_pullback(fails, [] {});
  } catch (int n) {
    thrown = n;
  }
  CHECK(thrown == 5);
  step();
  const std::string found = message_of([&] { tape.backward(); });
  INFO(found);
  CHECK(found.find("custom.cpp:" + std::to_string(line) + " threw") != std::string::npos);
}
