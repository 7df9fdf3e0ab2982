// grad() and dual() of a field that is a kernel's parameter.
#include <quern/autodiff.h>
#include <quern/autodiff/check.h>
#include <quern/host.h>

#include "tests/end_to_end/devices.h"
#include "tests/message_of.h"

using namespace qn::lang;
using qn::test::message_of;

namespace {

const auto descend = [](qn::Field<float> x, F32 rate) {
  for (auto i : x) x[i] = x[i] - rate * x.grad()[i];
};

std::vector<float> all_of(float v) { return std::vector<float>(5, v); }

}  // namespace

TEST_CASE("a kernel goes down along the gradients of whatever field it is passed") {
  on_every_device([](const qn::Device& device) {
    qn::Field<float> a{device, {5}}, b{device, {5}};
    qn::Kernel step = descend;
    for (auto x : {a, b}) x.fill(3);
    a.grad().fill(2);
    b.grad().fill(8);
    step(a, 0.5f);
    step(b, 0.25f);
    step(a, 0.25f);
    CHECK(qn::to_vector(a) == all_of(1.5f));
    CHECK(qn::to_vector(b) == all_of(1));
    step(b.slice(0, 1, 3), 1.0f);
    CHECK(qn::to_vector(b) == std::vector<float>{1, -7, -7, 1, 1});
  });
}

TEST_CASE("companions of parameters stand among fields that are captured behind them") {
  on_every_device([](const qn::Device& device) {
    qn::Field<double, 2> first{device, {2, 3}}, second{device, {2, 3}};
    qn::Field<double, 2> x{device, {2, 3}}, y{device, {2, 3}};
    qn::Kernel mix = [&](qn::Field<double, 2> p, F64 factor, qn::Field<double, 2> q) {
      for (auto I : p) {
        p.grad()[I] += factor * first[I];
        q.dual()[I] = p.grad()[I] + second[I] + p.grad().dual()[I];
        q[I] = q.dual()[I] - p.dual()[I];
      }
    };
    first.fill(2);
    second.fill(30);
    x.grad().fill(400);
    x.dual().fill(5000);
    x.grad().dual().fill(60000);
    y.dual().fill(-1);
    mix(x, 3.0, y);
    CHECK(qn::to_vector(x.grad()) == std::vector<double>(6, 406));
    CHECK(qn::to_vector(y.dual()) == std::vector<double>(6, 60436));
    CHECK(qn::to_vector(y) == std::vector<double>(6, 55436));
    CHECK(qn::to_vector(x) == std::vector<double>(6, 0));
    mix(y, 1.0, x);  // the other way around
    CHECK(qn::to_vector(y.grad()) == std::vector<double>(6, 2));
    CHECK(qn::to_vector(x.dual()) == std::vector<double>(6, 32));
    CHECK(qn::to_vector(x) == std::vector<double>(6, 32 - 60436));
  });
}

TEST_CASE("gradients of half precision are f32, those of vectors vectors, for parameters too") {
  on_every_device([](const qn::Device& device) {
    qn::Field<qn::half> x{device, {4}};
    qn::Field<qn::Vec<float, 3>> v{device, {4}};
    qn::Kernel step = [](qn::Field<qn::half> p, qn::Field<qn::Vec<float, 3>> q) {
      for (auto i : p) {
        p.grad()[i] += 1.0f / 3.0f;
        q[i] -= 2.0f * q.grad()[i];
      }
    };
    v.grad().fill({1, 2, 3});
    step(x, v);
    CHECK(x.grad().at(3) == 1.0f / 3.0f);
    const qn::Vec<float, 3> got = v.at(2);
    CHECK((got.x == -2 && got.y == -4 && got.z == -6));
  });
}

TEST_CASE(
    "a loop over the gradients of a parameter has their extents, and several kernels theirs") {
  on_every_device([](const qn::Device& device) {
    qn::Kernel clear = [](qn::Field<float> x) {
      for (auto i : x.grad()) x.grad()[i] = cast<float>(x.grad().dim(0));
    };
    for (int64_t size : {0, 1, 300}) {
      qn::Field<float> x{device, {size}};
      x.fill(1);
      clear(x);
      CHECK(qn::to_vector(x.grad()) == std::vector<float>(size_t(size), float(size)));
    }
  });
}

TEST_CASE("what the gradients of a parameter cannot be used for is an error at its line") {
  const qn::Device device("cpu");
  qn::Field<float> x{device, {5}};
  qn::Field<float, 0> loss{device};
  x.fill(3);
  qn::Kernel step = descend;
  int line = 0, found = 0;
  CHECK_THAT(error_of([&] { line = __LINE__, step(x.snapshot(), 1.0f); }, &found),
             contains("snapshot"));
  CHECK(found == line);
  {
    qn::Tape tape;
    CHECK_THAT(error_of([&] { line = __LINE__, step(x, 1.0f); }, &found),
               contains("takes the grad() of a parameter, cannot be recorded by the tape made at"));
    CHECK(found == line);
  }
  CHECK(qn::to_vector(x) == all_of(3));
  qn::Kernel spread = [&](qn::Field<float> p) {
    line = __LINE__ + 1;
    for (auto i : p) loss() += p.dual()[i];
  };
  CHECK_THAT(error_of([&] { qn::vjp(spread); }, &found),
             contains("the dual of parameter 1, which its launches look up, so it cannot be "
                      "differentiated (at ") &&
                 contains("make it a parameter of its own"));
  CHECK(found == line);
  CHECK_THAT(message_of([&] { qn::jvp(spread); }), contains("it cannot be differentiated"));
  x.grad().fill(7);
  CHECK_THAT(message_of([&] { qn::check_gradient(spread)(x); }),
             contains("it cannot be differentiated"));
  CHECK(qn::to_vector(x.grad()) == all_of(7));
  // As it advises:
  qn::Kernel apart = [&](qn::Field<float> p, qn::Field<float> dual) {
    for (auto i : p) loss() += dual[i];
  };
  qn::vjp(apart)(x, x.dual());
}

TEST_CASE("a tape records a launch that takes the duals of a parameter") {
  on_every_device([](const qn::Device& device) {
    qn::Field<double> x{device, {4}};
    qn::Field<double, 0> loss{device};
    qn::Kernel square = [&](qn::Field<double> p) {
      for (auto i : p) loss() += p[i] * p.dual()[i] * p.dual()[i];
    };
    x.fill(2);
    x.dual().fill(3);
    x.grad().fill(0);
    x.dual().grad().fill(0);
    loss.grad().fill(1);
    qn::Tape tape;
    square(x);
    tape.backward();
    CHECK(qn::to_vector(x.grad()) == std::vector<double>(4, 9));
    CHECK(qn::to_vector(x.dual().grad()) == std::vector<double>(4, 12));
  });
}
