// MLS-MPM on every device: conservation laws and free fall.
#include <quern/files.h>

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
    Mpm2d mpm(device, p, 64);
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
