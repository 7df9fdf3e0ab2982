// Full matrices of derivatives against those that are known.
#include <quern/autodiff.h>

#include <cmath>

#include "tests/autodiff/numbers.h"
#include "tests/end_to_end/devices.h"
#include "tests/message_of.h"

using namespace qn::lang;
using qn::test::message_of;

TEST_CASE("the Jacobian of polar coordinates, of vectors and of matrices") {
  on_every_device([](const qn::Device& device) {
    auto factor = numbers(device, {2});
    factor.dual().fill(100.0);  // fields are constants
    qn::Kernel polar = [&](F64 r, I32 n, F64 phi) {
      return result(factor[0] * r * cos(phi), n, factor[0] * r * sin(phi));
    };
    const qn::HostMatrix j = qn::jacobian(polar)(3.0, 7, 0.5);
    REQUIRE((j.rows() == 2 && j.columns() == 2));
    CHECK(j(0, 0) == Approx(2 * std::cos(0.5)).epsilon(1e-13));
    CHECK(j(0, 1) == Approx(-6 * std::sin(0.5)).epsilon(1e-13));
    CHECK(j(1, 0) == Approx(2 * std::sin(0.5)).epsilon(1e-13));
    CHECK(j(1, 1) == Approx(6 * std::cos(0.5)).epsilon(1e-13));
    CHECK(j.entries()[1] == j(0, 1));

    // A v: by A it is v in its row's place, by v it is A; in f32 and f64 side by side.
    qn::Kernel product = [&](Val<mat2> a, Val<vec2> v, F64 s) {
      return result(a * v, s * s * factor[0]);
    };
    const qn::HostMatrix p = qn::jacobian(product)(mat2(1, 2, 3, 4), vec2(5, 6), 0.25);
    const std::vector<double> expected = {5, 6, 0, 0, 1, 2, 0,  //
                                          0, 0, 5, 6, 3, 4, 0,  //
                                          0, 0, 0, 0, 0, 0, 1};
    CHECK(p.entries() == expected);
  });
}

TEST_CASE("the Hessian of Rosenbrock's function and of a length") {
  on_every_device([](const qn::Device& device) {
    auto weight = numbers(device, {100});
    qn::Kernel rosenbrock = [&](F64 x, F64 y) -> F64 {
      F64 d = y - x * x;
      return weight[0] * d * d + (1.0 - x) * (1.0 - x);
    };
    const double x = -1.2, y = 1;
    const qn::HostMatrix h = qn::hessian(rosenbrock)(x, y);
    REQUIRE((h.rows() == 2 && h.columns() == 2));
    CHECK(h(0, 0) == Approx(1200 * x * x - 400 * y + 2).epsilon(1e-12));
    CHECK(h(0, 1) == Approx(-400 * x).epsilon(1e-12));
    CHECK(h(1, 0) == h(0, 1));
    CHECK(h(1, 1) == Approx(200).epsilon(1e-12));

    qn::Kernel far = [&](Val<dvec3> v, I32 n) -> F64 {
      return length(v) * (weight[0] / 100.0) + cast<double>(n);
    };
    const double v[] = {3, 0, 4};
    const qn::HostMatrix l = qn::hessian(far)(dvec3(3, 0, 4), 2);
    REQUIRE(l.rows() == 3);
    for (int i = 0; i < 3; i++)
      for (int k = 0; k < 3; k++)  // (1 - v vᵀ / |v|²) / |v|
        CHECK(l(i, k) == Approx(((i == k) - v[i] * v[k] / 25) / 5).epsilon(1e-12).margin(1e-14));
  });
}

TEST_CASE("matrices of derivatives refuse kernels that write") {
  const qn::Device device("cpu");
  auto x = numbers(device, {1});
  int line = 0;
  qn::Kernel f = [&](F64 a) -> F64 {
    line = __LINE__ + 1;
    x[0] = a;
    return a * a;
  };
  const std::string found = message_of([&] { qn::jacobian(f); });
  INFO(found);
  CHECK(found.find("jacobian.cpp:" + std::to_string(line) + ": ") != std::string::npos);
  CHECK(message_of([&] { qn::hessian(f); }) == found);
}
