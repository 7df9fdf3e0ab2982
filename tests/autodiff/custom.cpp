// Derivatives that the user says: values that are constants to them.
#include <quern/autodiff.h>
#include <quern/else.h>

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
