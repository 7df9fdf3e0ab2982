// MLS-MPM on every device: conservation laws and free fall.
#include <quern/files.h>

#include <algorithm>
#include <cmath>

#include "examples/mpm2d.h"
#include "tests/end_to_end/devices.h"

using examples::Mpm2d;

TEST_CASE("MLS-MPM keeps mass and falls freely before contact") {
  on_every_device([](qn::Device& device) {
    const bool fast = device.name() == std::string("cpu");
    examples::Particles p;
    for (int k = 0; k < 3; k++)
      for (int i = 0; i < 8; i++)
        for (int j = 0; j < 8; j++) {
          p.x.push_back({0.2f + 0.25f * float(k) + float(i) / 128, 0.6f + float(j) / 128});
          p.material.push_back(k);
        }
    const examples::Grid<2> dense(device, {64, 64}),
        on_tree(device, {64, 64}, {qn::pointer(16), qn::bitmasked(4)});
    for (const examples::Grid<2>& grid : {dense, on_tree}) {
      Mpm2d mpm(grid, p, 64);
      double before = mpm.totals().mean_y;
      const int steps = fast ? 500 : 60;
      mpm.advance(steps);
      Mpm2d::Totals t = mpm.totals();
      double particle_mass = 0.25 / 64 / 64, time = steps * double(mpm.dt());
      CHECK(t.mass == Approx(particle_mass * mpm.particles()).epsilon(1e-4));
      CHECK(t.momentum_y == Approx(-Mpm2d::gravity * time).epsilon(1e-3));
      // Symplectic Euler's fall: g·dt²·n(n+1)/2, exactly the sum of its steps.
      double fall = Mpm2d::gravity * double(mpm.dt()) * double(mpm.dt()) * steps * (steps + 1) / 2;
      CHECK(before - t.mean_y == Approx(fall).margin(2e-5));
    }
  });
}

TEST_CASE("MLS-MPM on a tree is that on a dense grid, with nodes where particles are") {
  on_every_device([](qn::Device& device) {
    // Blocks of the three materials side by side near the floor; on the tree it is 8 lengths wide.
    examples::Particles p;
    for (int k = 0; k < 3; k++)
      for (int i = 0; i < 8; i++)
        for (int j = 0; j < 8; j++) {
          p.x.push_back({0.4f + 0.05f * float(k) + float(i) / 128, 0.05f + float(j) / 128});
          p.material.push_back(k);
        }
    const examples::Grid<2> dense(device, {64, 64}),
        on_tree(device, {512, 64}, {qn::pointer(32, 4), qn::bitmasked(16)});
    Mpm2d one(dense, p, 64), other(on_tree, p, 64);
    const int steps = device.name() == std::string("cpu") ? 100 : 5;
    one.advance(steps);
    other.advance(steps);
    const examples::Particles a = one.positions(), b = other.positions();
    float apart = 0, moved = 0;
    for (size_t k = 0; k < a.x.size(); k++) {
      apart = std::max({apart, std::abs(a.x[k].x - b.x[k].x), std::abs(a.x[k].y - b.x[k].y)});
      moved = std::max(moved, std::abs(a.x[k].y - p.x[k].y));
    }
    // Sums of floats in another order: a few of their roundings a step.
    CHECK(apart < 1e-6f * float(steps));
    CHECK(moved >
          5e-8f * float(steps * steps));  // some have fallen half as far as they would freely
    CHECK(one.totals().mass == Approx(other.totals().mass).epsilon(1e-6));
    // The blocks take 12 × 5 cells, and each spline 3 × 3 nodes: few of the tree's 32,768.
    CHECK(on_tree.tree()->active_count() > 0);
    CHECK(on_tree.tree()->active_count() < 32 * 16);
  });
}

TEST_CASE("MLS-MPM from the picture falls and stays in the box") {
  on_every_device([](qn::Device& device) {
    const bool fast = device.name() == std::string("cpu");
    examples::Particles p = examples::particles_from(
        qn::read_image<uint8_t, 3>(device, QUERN_EXAMPLE_DATA "/materials.png"));
    REQUIRE(p.x.size() > 10'000);
    Mpm2d mpm(device, p);
    double before = mpm.totals().mean_y;
    mpm.advance(fast ? 1500 : 2);
    Mpm2d::Totals t = mpm.totals();
    CHECK(t.mass == Approx(0.25 / 128 / 128 * mpm.particles()).epsilon(1e-4));
    // Walls are three cells thick; the spline of a particle must not leave the grid.
    CHECK(t.lowest > 1.0f / 128);
    CHECK(t.highest < 1 - 1.0f / 128);
    CHECK(t.mean_y < before);
    int lit = 0;
    for (auto [r, g, b] : qn::to_vector(mpm.draw(64))) lit += r > 40 || b > 100;
    CHECK(lit > 300);
  });
}

TEST_CASE("a picture without coloured pixels is an error") {
  on_every_device([](qn::Device& device) {
    CHECK_THROWS_AS(examples::particles_from(examples::Picture{device, {8, 8}}), qn::Error);
  });
}
