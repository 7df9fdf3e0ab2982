// Stable fluids against Fourier modes of the projection, Taylor and Green's vortex and rotation.
#include "examples/fluids.h"

#include <cmath>

#include "tests/end_to_end/devices.h"

using examples::Fluids;
using namespace quern::lang;

namespace {

/// u(x, y), v(x, y) at their faces of the unit square.
template <class U, class V>
std::vector<vec2> faces(int n, U u, V v) {
  std::vector<vec2> out;
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      out.push_back(
          vec2(float(u(double(j) / n, (i + 0.5) / n)), float(v((j + 0.5) / n, double(i) / n))));
  return out;
}
std::vector<vec2> vortex(int n, double k) {
  return faces(
      n, [=](double x, double y) { return std::sin(k * x) * std::cos(k * y); },
      [=](double x, double y) { return -std::cos(k * x) * std::sin(k * y); });
}
/// The greatest divergence in velocities a cell.
double divergence(const std::vector<vec2>& v, int n) {
  double worst = 0;
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      auto at = [&](int r, int c) { return v[size_t((r % n) * n + c % n)]; };
      worst = std::max(worst, std::fabs(double(at(i, j + 1).x) - double(at(i, j).x) +
                                        double(at(i + 1, j).y) - double(at(i, j).y)));
    }
  return worst;
}

}  // namespace

TEST_CASE("projection takes divergence away as Jacobi's iteration converges") {
  on_every_device([](qn::Device& device) {
    const int n = 24;
    const double k = 2 * M_PI;
    // Free of divergence, and the gradient of cos(2 k x) cos(3 k y) on the staggered grid.
    std::vector<vec2> free = vortex(n, k), mixed = free;
    auto potential = [&](int i, int j) {
      return std::cos(2 * k * (j + 0.5) / n) * std::cos(3 * k * (i + 0.5) / n);
    };
    for (int i = 0; i < n; i++)
      for (int j = 0; j < n; j++) {
        vec2& v = mixed[size_t(i * n + j)];
        v.x += float(potential(i, j) - potential(i, j - 1));
        v.y += float(potential(i, j) - potential(i - 1, j));
      }
    Fluids::Setup setup;
    setup.projection = 60;
    Fluids fluids({device, {n, n}}, setup);

    fluids.velocity.copy_from(free);
    fluids.project();
    std::vector<vec2> same = qn::to_vector(fluids.velocity);
    double moved = 0;
    for (size_t e = 0; e < free.size(); e++)
      moved = std::max(moved, double(length(same[e] - free[e])));
    CHECK(moved < 1e-6);

    fluids.velocity.copy_from(mixed);
    fluids.project();
    // Of this mode an iteration leaves the mean of its cosines of a cell's phase.
    const double factor = 0.5 * (std::cos(2 * k / n) + std::cos(3 * k / n));
    const double left = divergence(mixed, n) * std::pow(factor, setup.projection);
    CHECK(divergence(qn::to_vector(fluids.velocity), n) == Approx(left).margin(2e-6));
    for (int again = 0; again < 4; again++) fluids.project();
    CHECK(divergence(qn::to_vector(fluids.velocity), n) < 2e-6);
  });
}

TEST_CASE("Taylor and Green's vortex keeps its shape and decays by viscosity") {
  on_every_device([](qn::Device& device) {
    const bool fast = device.name() == std::string("cpu");
    const int n = fast ? 64 : 24;
    const double k = 2 * M_PI, time = fast ? 0.2 : 0.032;
    const std::vector<vec2> start = vortex(n, k);
    double size = 0;
    for (const vec2& v : start) size += double(dot(v, v));
    // The part of the vortex that is left, and in `off` the size of all else.
    double off = 0;
    auto amplitude = [&](float viscosity, int steps) {
      Fluids::Setup setup;
      setup.dt = float(time / steps);
      setup.viscosity = viscosity;
      Fluids fluids({device, {n, n}}, setup);
      fluids.velocity.copy_from(start);
      fluids.advance(steps);
      double left = 0;
      std::vector<vec2> now = qn::to_vector(fluids.velocity);
      for (size_t e = 0; e < now.size(); e++) left += double(dot(now[e], start[e])) / size;
      off = 0;
      for (size_t e = 0; e < now.size(); e++) {
        const vec2 rest = now[e] - float(left) * start[e];
        off += double(dot(rest, rest));
      }
      off = std::sqrt(off / size);
      return left;
    };
    // Inviscid it stays as it is, but for what carrying before projecting loses: first order in dt.
    const int steps = fast ? 100 : 8;
    const double coarse = 1 - amplitude(0, steps / 2), coarse_off = off;
    const double fine = 1 - amplitude(0, steps), fine_off = off;
    CHECK(fine < 0.02);
    CHECK(fine_off < 0.02);
    CHECK(fine == Approx(coarse / 2).epsilon(0.2).margin(2e-4));
    CHECK(fine_off < 0.7 * coarse_off);
    // Viscosity alone: the loss is the same with it.
    const float viscosity = 0.02f;
    const double viscous = amplitude(viscosity, steps) / (1 - fine);
    CHECK(viscous == Approx(std::exp(-2 * double(viscosity) * k * k * time)).epsilon(0.01));
  });
}

TEST_CASE("a rotation carries dye back to where it was") {
  on_every_device([](qn::Device& device) {
    const bool fast = device.name() == std::string("cpu");
    // Slow devices turn by a quarter, coarser.
    const int n = fast ? 128 : 32, steps = fast ? 200 : 20;
    const double turn = fast ? 2 * M_PI : M_PI / 2, radius = fast ? 0.08 : 0.12;
    Fluids::Setup setup;
    setup.dt = float(1.0 / steps);
    Fluids fluids({device, {n, n}}, setup);
    fluids.velocity.copy_from(faces(
        n, [=](double, double y) { return -turn * (y - 0.5); },
        [=](double x, double) { return turn * (x - 0.5); }));
    auto blob = [&](double x0, double y0) {
      std::vector<float> out;
      for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
          double x = (j + 0.5) / n - x0, y = (i + 0.5) / n - y0;
          out.push_back(float(std::exp(-(x * x + y * y) / (radius * radius))));
        }
      return out;
    };
    const std::vector<float> start = blob(0.7, 0.5);
    fluids.dye.copy_from(start);
    for (int s = 0; s < steps; s++) fluids.carry_dye();
    const std::vector<float> want = fast ? start : blob(0.5, 0.7);
    const std::vector<float> got = qn::to_vector(fluids.dye);
    double worst = 0, sum = 0, mass = 0;
    for (size_t e = 0; e < want.size(); e++) {
      worst = std::max(worst, std::fabs(double(got[e] - want[e])));
      sum += double(got[e]);
      mass += double(want[e]);
    }
    CHECK(worst < (fast ? 0.03 : 0.05));
    CHECK(sum == Approx(mass).epsilon(0.01));
  });
}

TEST_CASE("stable fluids are stable with steps of many cells") {
  on_every_device([](qn::Device& device) {
    const int n = 16;
    Fluids::Setup setup;
    setup.dt = 0.5f;  // half the square, eight cells
    Fluids fluids({device, {n, n}}, setup);
    fluids.velocity.copy_from(vortex(n, 2 * M_PI));
    fluids.dye.fill(0.25f);
    fluids.advance(device.name() == std::string("cpu") ? 50 : 4);
    for (vec2 v : qn::to_vector(fluids.velocity)) REQUIRE(length(v) < 4);
    for (float d : qn::to_vector(fluids.dye)) REQUIRE(d == Approx(0.25f).epsilon(1e-5));
  });
}

TEST_CASE("stable fluids refuse an odd number of iterations") {
  on_every_device([](qn::Device& device) {
    Fluids::Setup setup;
    setup.projection = 7;
    CHECK_THROWS_AS(Fluids({device, {8, 8}}, setup), qn::Error);
  });
}
