// The dam break by SPH: neighbours and densities against all pairs in plain C++, conservation laws.
#include "examples/sph.h"

#include "examples/cell_list.h"
#include "examples/tree_lists.h"

#include <cmath>

#include "tests/end_to_end/devices.h"

using examples::CellList;
using examples::Sph;
using examples::TreeLists;
using namespace quern::lang;

namespace {

/// Monaghan & Lattanzio's cubic spline in the plane, as its pieces.
double cubic_spline(double r, double h) {
  const double q = r / h, norm = 10 / (7 * M_PI * h * h);
  if (q < 1) return norm * (1 - 1.5 * q * q + 0.75 * q * q * q);
  if (q < 2) return norm * 0.25 * (2 - q) * (2 - q) * (2 - q);
  return 0;
}
double distance(vec2 a, vec2 b) {
  return std::hypot(double(a.x) - double(b.x), double(a.y) - double(b.y));
}
/// Points without order in the rectangle, and a few outside it.
std::vector<vec2> scattered(int count, vec2 size) {
  std::vector<vec2> x;
  for (int k = 0; k < count; k++)
    x.push_back(vec2(size.x * (1.2f * float(k * 37 % 1009) / 1009 - 0.1f),
                     size.y * (1.2f * float(k * 71 % 997) / 997 - 0.1f)));
  return x;
}
/// A disordered patch of fluid far from walls, denser than at rest.
Sph::Setup patch() {
  Sph::Setup s;
  s.spacing = 0.05f;
  s.size = vec2(2, 2);
  for (int i = 0; i < 12; i++)
    for (int j = 0; j < 12; j++)
      s.fluid.push_back(0.045f * vec2(float(j) + 0.2f * float(i * 7 % 5), float(i)) +
                        vec2(0.7f, 0.7f));
  return s;
}
struct Energy {
  double kinetic = 0, potential = 0;
};
Energy energy(const Sph& sph, double gravity) {
  Energy e;
  std::vector<vec2> x = qn::to_vector(sph.x), v = qn::to_vector(sph.v);
  for (int k = 0; k < sph.fluid(); k++) {
    e.kinetic += 0.5 * double(sph.mass()) * double(dot(v[size_t(k)], v[size_t(k)]));
    e.potential += double(sph.mass()) * gravity * double(x[size_t(k)].y);
  }
  return e;
}

}  // namespace

namespace {
template <class Lists>
void find_neighbours() {
  on_every_device([](qn::Device& device) {
    const vec2 size(1.1f, 0.7f);
    const float radius = 0.1f;
    const std::vector<vec2> host = scattered(400, size);
    qn::Field<vec2> x{device, {host.size()}};
    qn::Field<int> count{device, {host.size()}}, sum{device, {host.size()}};
    x.copy_from(host);
    Lists cells(device, x, radius, size);
    qn::Kernel neighbours = [&] {
      for (auto i : x) {
        auto at = x[i];
        Var<int> n = 0, s = 0;
        cells.for_each_near(at, [&](I32 j) {
          If(length(at - x[j]) < radius) {
            n += 1;
            s += j;
          }
        });
        count[i] = n;
        sum[i] = s;
      }
    };
    for (int round = 0; round < 2; round++) {  // sorting again changes nothing
      cells.build();
      neighbours();
      std::vector<int> got_count = qn::to_vector(count), got_sum = qn::to_vector(sum);
      int differ = 0;
      for (size_t i = 0; i < host.size(); i++) {
        int n = 0, s = 0;
        for (size_t j = 0; j < host.size(); j++)
          if (length(host[i] - host[j]) < radius) {
            n++;
            s += int(j);
          }
        differ += n != got_count[i] || s != got_sum[i];
      }
      CHECK(differ == 0);
    }
  });
}
}  // namespace

TEST_CASE("a cell list finds the neighbours that all pairs have") { find_neighbours<CellList>(); }
TEST_CASE("lists on a tree find the neighbours that all pairs have") {
  find_neighbours<TreeLists>();
}

namespace {
void check_densities(Sph::Search search) {
  on_every_device([&](qn::Device& device) {
    Sph::Setup setup = Sph::dam_break(device.name() == std::string("cpu") ? 0.1f : 0.25f);
    Sph sph(device, setup, search);
    sph.measure();
    std::vector<vec2> x = qn::to_vector(sph.x);
    std::vector<float> density = qn::to_vector(sph.density), pressure = qn::to_vector(sph.pressure);
    const double h = double(Sph::smoothing * setup.spacing), rest = double(Sph::rest_density);
    double worst = 0;
    for (size_t i = 0; i < x.size(); i++) {
      double want = 0;
      for (const vec2& other : x)
        want += double(sph.mass()) * cubic_spline(distance(x[i], other), h);
      worst = std::max(worst, std::fabs(double(density[i]) / want - 1));
      const double tait = rest * double(setup.sound) * double(setup.sound) / 7 *
                          (std::pow(double(density[i]) / rest, 7) - 1);
      REQUIRE(double(pressure[i]) == Approx(std::max(tait, 0.0)).margin(2.0 * rest));
    }
    CHECK(worst < 3e-6);
    CHECK(double(density[0]) == Approx(rest).epsilon(1e-5));  // a corner: walls all around below
  });
}
}  // namespace

TEST_CASE("SPH densities are the sum over all pairs, and a lattice has the one at rest") {
  check_densities(Sph::Search::sorted);
}
TEST_CASE("SPH densities by lists on a tree are the sum over all pairs") {
  check_densities(Sph::Search::lists);
}

TEST_CASE("SPH forces between pairs keep momentum") {
  on_every_device([](qn::Device& device) {
    Sph::Setup setup = patch();
    setup.gravity = 0;
    Sph sph(device, setup);
    std::vector<vec2> start(setup.fluid.size());
    for (size_t k = 0; k < start.size(); k++)
      start[k] = vec2(float(k * 13 % 11) - 5, float(k * 29 % 17) - 8);
    sph.v.copy_from(start);
    const int steps = device.name() == std::string("cpu") ? 100 : 5;
    sph.advance(steps);
    double before[2] = {}, after[2] = {}, size = 0, changed = 0;
    std::vector<vec2> v = qn::to_vector(sph.v);
    for (size_t k = 0; k < v.size(); k++) {
      for (int a = 0; a < 2; a++) {
        before[a] += double(start[k][a]);
        after[a] += double(v[k][a]);
      }
      size += double(length(v[k]));
      changed += double(length(v[k] - start[k]));
    }
    CHECK(changed > 0.1 * size);  // there were forces
    for (int a = 0; a < 2; a++) CHECK(std::fabs(after[a] - before[a]) < 1e-5 * size);
  });
}

TEST_CASE("SPH without contact falls freely") {
  on_every_device([](qn::Device& device) {
    Sph::Setup setup;
    setup.spacing = 0.1f;
    setup.size = vec2(1, 3);
    setup.fluid = {vec2(0.25f, 2), vec2(0.75f, 2.5f)};  // further apart than the kernel reaches
    Sph sph(device, setup);
    const int steps = 200;
    sph.advance(steps);
    const double g = double(setup.gravity), dt = double(sph.dt());
    for (int k = 0; k < 2; k++) {
      CHECK(double(sph.v.at(k).y) == Approx(-g * dt * steps).epsilon(1e-5));
      CHECK(double(setup.fluid[size_t(k)].y - sph.x.at(k).y) ==
            Approx(g * dt * dt * steps * (steps + 1) / 2).margin(1e-5));
    }
  });
}

TEST_CASE("a breaking dam spreads, loses energy and stays in the tank") {
  on_every_device([](qn::Device& device) {
    const bool fast = device.name() == std::string("cpu");
    const float spacing = fast ? 0.1f : 0.25f;
    Sph::Setup setup = Sph::dam_break(spacing);
    Sph sph(device, setup);
    const double gravity = double(setup.gravity), height = 2, inside = 3 * double(spacing);
    const Energy start = energy(sph, gravity);
    double last = start.potential;
    for (int round = 0; round < 4; round++) {
      const int steps = fast ? int(0.1f / sph.dt()) : 3;
      sph.advance(steps);
      const Energy now = energy(sph, gravity);
      const double total = now.kinetic + now.potential;
      CHECK(total < last + 0.01 * start.potential);  // what compression stores and gives back
      last = total;
      // No wave runs faster than on a dry bed without friction: 2 √(g H) (Ritter 1892).
      const double time = double((round + 1) * steps) * double(sph.dt());
      double front = 0, bottom = height;
      std::vector<vec2> x = qn::to_vector(sph.x);
      for (int k = 0; k < sph.fluid(); k++) {
        front = std::max(front, double(x[size_t(k)].x) - inside);
        bottom = std::min(bottom, double(x[size_t(k)].y) - inside);
      }
      CHECK(front < 1 + 2 * std::sqrt(gravity * height) * time);
      CHECK(bottom > 0);
      if (fast && round == 3) CHECK(front > 1.3);
    }
    sph.measure();
    int water = 0;
    for (auto [r, g, b] : qn::to_vector(sph.draw(64))) water += b == 255;
    // A picture is 4 + 6 spacings wide; the column covers two square metres of it.
    const double pixel = double(setup.size.x) / 64;
    CHECK(double(water) * pixel * pixel == Approx(2).epsilon(0.2));
  });
}

TEST_CASE("SPH water at rest bears its own weight", "[cpu]") {
  // The pressure of a settled column is density · gravity · depth; thousands of steps.
  qn::Device device("cpu");
  Sph::Setup setup;
  setup.spacing = 0.05f;
  setup.viscosity = 1;
  const int layers = 3, width = 12, height = 20;
  setup.size = setup.spacing * vec2(float(width + 2 * layers), float(height + 2 * layers));
  setup.sound = 10 * std::sqrt(setup.gravity * setup.spacing * float(height));
  for (int i = 0; i < height + 2 * layers; i++)
    for (int j = 0; j < width + 2 * layers; j++) {
      vec2 at = setup.spacing * vec2(float(j) + 0.5f, float(i) + 0.5f);
      const bool wall = i < layers || j < layers || j >= width + layers;
      if (wall)
        setup.walls.push_back(at);
      else if (i < height + layers)
        setup.fluid.push_back(at);
    }
  Sph sph(device, setup);
  sph.advance(int(2 / sph.dt()));
  sph.measure();
  std::vector<vec2> x = qn::to_vector(sph.x), v = qn::to_vector(sph.v);
  std::vector<float> p = qn::to_vector(sph.pressure);
  // The line through pressure over height; away from the surface and the walls.
  double n = 0, sy = 0, sp = 0, syy = 0, syp = 0, fastest = 0;
  const double low = double(setup.spacing) * (layers + 3),
               high = double(setup.spacing) * (height - 1);
  const double left = double(setup.spacing) * (layers + 3), right = double(setup.size.x) - left;
  for (int k = 0; k < sph.fluid(); k++) {
    const double y = double(x[size_t(k)].y), at = double(x[size_t(k)].x);
    fastest = std::max(fastest, double(length(v[size_t(k)])));
    if (y < low || y > high || at < left || at > right) continue;
    const double pressure = double(p[size_t(k)]);
    n++;
    sy += y;
    sp += pressure;
    syy += y * y;
    syp += y * pressure;
  }
  REQUIRE(n > 30);
  const double slope = (n * syp - sy * sp) / (n * syy - sy * sy);
  INFO("fastest particle " << fastest << " m/s");
  CHECK(-slope == Approx(double(Sph::rest_density * setup.gravity)).epsilon(0.1));
}
