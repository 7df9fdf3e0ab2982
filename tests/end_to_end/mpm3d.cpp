// 3D MLS-MPM on every device: conservation laws, free fall, and the method in plain C++.
#include "examples/mpm3d.h"

#include <array>
#include <cmath>
#include <set>

#include "tests/end_to_end/devices.h"

using examples::FluidParticle;
using examples::Mpm3d;

namespace {

struct State {
  double x[3], v[3], C[3][3], J;
};
State state_of(const FluidParticle<>& p) {
  State s{};
  for (int a = 0; a < 3; a++) {
    s.x[a] = double(p.x[a]);
    s.v[a] = double(p.v[a]);
    for (int b = 0; b < 3; b++) s.C[a][b] = double(p.C(a, b));
  }
  s.J = double(p.J);
  return s;
}

/// The substep as the paper states it, in double precision.
void substep(std::vector<State>& particles, int n) {
  const double dx = 1.0 / n, dt = double(Mpm3d::dt), volume = dx * dx / 4, mass = volume;
  struct Node {
    double m = 0, v[3] = {};
  };
  std::vector<Node> grid(size_t(n * n * n));
  auto for_each_node = [&](const State& p, auto visit) {
    int base[3];
    double f[3], w[3][3];
    for (int a = 0; a < 3; a++) {
      base[a] = int(std::floor(p.x[a] / dx - 0.5));
      f[a] = p.x[a] / dx - base[a];
      w[0][a] = 0.5 * (1.5 - f[a]) * (1.5 - f[a]);
      w[1][a] = 0.75 - (f[a] - 1) * (f[a] - 1);
      w[2][a] = 0.5 * (f[a] - 0.5) * (f[a] - 0.5);
    }
    for (int i = 0; i < 3; i++)
      for (int j = 0; j < 3; j++)
        for (int k = 0; k < 3; k++) {
          double away[3] = {(i - f[0]) * dx, (j - f[1]) * dx, (k - f[2]) * dx};
          visit(grid[size_t(((base[0] + i) * n + base[1] + j) * n + base[2] + k)],
                w[i][0] * w[j][1] * w[k][2], away);
        }
  };
  for (const State& p : particles)
    for_each_node(p, [&](Node& node, double w, const double* away) {
      node.m += w * mass;
      for (int a = 0; a < 3; a++) {
        double push = -dt * volume * 4 / (dx * dx) * double(Mpm3d::young) * (p.J - 1) * away[a];
        for (int b = 0; b < 3; b++) push += mass * p.C[a][b] * away[b];
        node.v[a] += w * (mass * p.v[a] + push);
      }
    });
  for (int i = 0; i < n * n * n; i++) {
    Node& node = grid[size_t(i)];
    if (node.m == 0) continue;
    const int index[3] = {i / (n * n), i / n % n, i % n};
    for (int a = 0; a < 3; a++) {
      node.v[a] = node.v[a] / node.m - (a == 1 ? dt * double(Mpm3d::gravity) : 0);
      if (index[a] < Mpm3d::wall && node.v[a] < 0) node.v[a] = 0;
      if (index[a] > n - Mpm3d::wall && node.v[a] > 0) node.v[a] = 0;
    }
  }
  for (State& p : particles) {
    State next = p;
    for (int a = 0; a < 3; a++) {
      next.v[a] = 0;
      for (int b = 0; b < 3; b++) next.C[a][b] = 0;
    }
    for_each_node(p, [&](const Node& node, double w, const double* away) {
      for (int a = 0; a < 3; a++) {
        next.v[a] += w * node.v[a];
        for (int b = 0; b < 3; b++) next.C[a][b] += 4 / (dx * dx) * w * node.v[a] * away[b];
      }
    });
    for (int a = 0; a < 3; a++) next.x[a] += dt * next.v[a];
    next.J *= 1 + dt * (next.C[0][0] + next.C[1][1] + next.C[2][2]);
    p = next;
  }
}

/// The block with velocities, compressions and gradients of every sign.
std::vector<FluidParticle<>> stirred(int n) {
  std::vector<FluidParticle<>> particles = Mpm3d::block(n);
  for (size_t k = 0; k < particles.size(); k++) {
    auto noise = [&](size_t prime) { return float(k * prime % 97) / 48.5f - 1; };
    particles[k].v = {noise(31), noise(43), noise(59)};
    particles[k].J = 1 + 0.02f * noise(71);
    for (int e = 0; e < 9; e++) particles[k].C.value(e) = 3 * noise(13 + 2 * size_t(e));
  }
  return particles;
}

}  // namespace

namespace {

/// A grid of n cells along each axis, dense or on a tree.
examples::Grid<3> grid_of(const qn::Device& device, int n, bool sparse) {
  if (!sparse) return {device, {n, n, n}};
  return {device, {n, n, n}, {qn::pointer((n + 15) / 16), qn::pointer(4), qn::dense(4)}};
}

/// Checks that the particles are where they are to be.
void compare(const Mpm3d& mpm, const std::vector<State>& want) {
  double x = 0, v = 0, C = 0, J = 0;
  std::vector<FluidParticle<>> got = qn::to_vector(mpm.particles);
  for (size_t k = 0; k < got.size(); k++) {
    State s = state_of(got[k]);
    for (int a = 0; a < 3; a++) {
      x = std::max(x, std::fabs(s.x[a] - want[k].x[a]));
      v = std::max(v, std::fabs(s.v[a] - want[k].v[a]));
      for (int b = 0; b < 3; b++) C = std::max(C, std::fabs(s.C[a][b] - want[k].C[a][b]));
    }
    J = std::max(J, std::fabs(s.J - want[k].J));
  }
  // A few roundings of single precision at each value's size: 0.5, 1, 16 and 1.
  CHECK(x < 5e-7);
  CHECK(v < 1e-5);
  CHECK(C < 2e-3);
  CHECK(J < 1e-6);
}

}  // namespace

TEST_CASE(
    "3D MLS-MPM is the method in plain C++, in every layout of the particles, on a tree too") {
  on_every_device([](qn::Device& device) {
    const int n = 16, steps = 4;  // at 16 cells the block touches the walls
    const std::vector<FluidParticle<>> start = stirred(n);
    std::vector<State> want;
    for (const FluidParticle<>& p : start) want.push_back(state_of(p));
    for (int k = 0; k < steps; k++) substep(want, n);
    for (const qn::Layout& layout : {qn::Layout{}, qn::Layout(qn::aos)}) {
      Mpm3d mpm(device, start, n, layout);
      mpm.advance(steps);
      compare(mpm, want);
    }
    Mpm3d mpm(grid_of(device, n, true), start, n);
    mpm.advance(steps);
    compare(mpm, want);
  });
}

TEST_CASE("3D MLS-MPM keeps mass and falls freely before contact") {
  on_every_device([](qn::Device& device) {
    const bool fast = device.name() == std::string("cpu");
    const int n = fast ? 32 : 16, steps = fast ? 200 : 5;
    std::vector<FluidParticle<>> start = Mpm3d::block(n, {0.15f, 0.35f, 0.15f});
    for (bool sparse : {false, true}) {
      Mpm3d mpm(grid_of(device, n, sparse), start, n);
      mpm.advance(steps);
      const double count = double(start.size()), dt = double(Mpm3d::dt);
      CHECK(mpm.mass() == Approx(count * double(mpm.particle_mass())).epsilon(1e-5));
      double momentum[3] = {}, fall = 0;
      std::vector<FluidParticle<>> got = qn::to_vector(mpm.particles);
      for (size_t k = 0; k < got.size(); k++) {
        for (int a = 0; a < 3; a++) momentum[a] += double(got[k].v[a]) / count;
        fall += double(start[k].x.y - got[k].x.y) / count;
      }
      // The velocities are sums of `steps` roundings, each half a digit of 0.15 at most.
      const double g = double(Mpm3d::gravity);
      CHECK(momentum[1] == Approx(-g * dt * steps).epsilon(2e-5));
      CHECK(std::fabs(momentum[0]) < 1e-6);
      CHECK(std::fabs(momentum[2]) < 1e-6);
      CHECK(fall == Approx(g * dt * dt * steps * (steps + 1) / 2).margin(2e-6));
    }
  });
}

TEST_CASE("3D MLS-MPM in a box that is mostly empty has nodes where the fluid is, made anew") {
  on_every_device([](qn::Device& device) {
    const int n = 16, size = 512;  // as many nodes as 2 GB hold
    const int64_t leaf = 4;
    const float far = float(size) / float(n) - 1;
    // A block that flies through the middle, and one that falls in the furthest corner.
    std::vector<FluidParticle<>> start = Mpm3d::block(n, {15.2f, 16.1f, 14.8f});
    for (FluidParticle<>& p : start) p.v = {300, 200, -100};
    const size_t flying = start.size();
    for (const FluidParticle<>& p : Mpm3d::block(n, {far, far, far})) start.push_back(p);
    const examples::Grid<3> grid(device, {size, size, size},
                                 {qn::pointer(16), qn::pointer(8), qn::dense(leaf)});
    Mpm3d mpm(grid, start, n);
    const int steps = device.name() == std::string("cpu") ? 50 : 3;
    std::vector<FluidParticle<>> before = start;
    for (int step = 1; step <= steps; step++) {
      mpm.advance(1);
      // The cells of leaf³ nodes that splines of the particles reached, and no others.
      std::set<std::array<int, 3>> leaves;
      for (const FluidParticle<>& p : before)
        for (int corner = 0; corner < 8; corner++) {
          std::array<int, 3> at;
          for (int a = 0; a < 3; a++)
            at[size_t(a)] =
                (int(std::floor(p.x[a] * float(n) - 0.5f)) + (corner >> a & 1) * 2) / leaf;
          leaves.insert(at);
        }
      REQUIRE(grid.tree()->active_count() == int64_t(leaves.size()) * leaf * leaf * leaf);
      before = qn::to_vector(mpm.particles);
    }
    CHECK(mpm.mass() == Approx(double(start.size()) * double(mpm.particle_mass())).epsilon(1e-5));
    double momentum[3] = {};
    for (size_t k = 0; k < flying; k++)
      for (int a = 0; a < 3; a++) momentum[a] += double(before[k].v[a]) / double(flying);
    CHECK(momentum[0] == Approx(300).epsilon(1e-5));
    CHECK(momentum[1] ==
          Approx(200 - double(Mpm3d::gravity) * double(Mpm3d::dt) * steps).epsilon(1e-5));
    CHECK(momentum[2] == Approx(-100).epsilon(1e-5));
  });
}

TEST_CASE("3D MLS-MPM splashes and stays in the box") {
  on_every_device([](qn::Device& device) {
    const bool fast = device.name() == std::string("cpu");
    const int n = fast ? 24 : 16, steps = fast ? 2000 : 10;
    const std::vector<FluidParticle<>> start = Mpm3d::block(n);
    Mpm3d mpm(device, start, n);
    mpm.advance(steps);
    // The walls are three cells thick; the spline of a particle must not leave the grid.
    float low = 1, high = 0;
    double mean = 0, before = 0;
    for (const FluidParticle<>& p : start) before += double(p.x.y) / double(mpm.size());
    for (const FluidParticle<>& p : qn::to_vector(mpm.particles)) {
      REQUIRE(p.J > 0);
      mean += double(p.x.y) / double(mpm.size());
      for (int a = 0; a < 3; a++) {
        low = std::min(low, p.x[a]);
        high = std::max(high, p.x[a]);
      }
    }
    CHECK(low > 1.0f / float(n));
    CHECK(high < 1 - 1.0f / float(n));
    CHECK(mean < before - (fast ? 0.02 : 0));
    int lit = 0;
    for (auto [r, g, b] : qn::to_vector(mpm.draw(48))) lit += b > 90;
    CHECK(lit > 200);
  });
}
