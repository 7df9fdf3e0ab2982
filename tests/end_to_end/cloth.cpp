// The cloth against the oscillation of one spring, the sag of a hanging sheet, conservation laws.
#include "examples/cloth.h"

#include <cmath>

#include "tests/end_to_end/devices.h"

using examples::Cloth;
using namespace quern::lang;

TEST_CASE("two masses and a spring swing as semi-implicit Euler has it") {
  on_every_device([](qn::Device& device) {
    Cloth::Setup setup;
    setup.rows = 1;
    setup.columns = 2;
    setup.structural = 50;
    setup.damping = setup.gravity = 0;
    Cloth cloth(device, setup, 0);
    const double stretch = 0.125, omega = std::sqrt(2 * 50 / double(cloth.mass()));
    std::vector<vec3> x = qn::to_vector(cloth.x);
    x[1].x += float(stretch);
    cloth.x.copy_from(x);
    const double theta = 2 * std::asin(omega * double(cloth.dt()) / 2);
    // What the recurrence s' = s - (ω dt)² s, from rest, gives in closed form.
    for (int step = 1; step <= 40; step++) {
      cloth.advance(1);
      const double want = stretch * std::cos(theta * (step + 0.5)) / std::cos(theta / 2);
      CHECK(double(length(cloth.x.at(0, 1) - cloth.x.at(0, 0))) - 1 == Approx(want).margin(1e-5));
    }
  });
}

TEST_CASE("each spring of a hanging sheet bears the weight below it") {
  on_every_device([](qn::Device& device) {
    const int rows = 8, columns = 3;
    Cloth::Setup setup;
    setup.rows = rows;
    setup.columns = columns;
    setup.structural = 50;
    setup.shear = setup.bend = setup.damping = 0;
    Cloth probe(device, setup, 0);
    // Critical damping of the slowest swing; its time constant is 1 / slowest.
    const double slowest = std::sqrt(50 / double(probe.mass())) * M_PI / (2 * rows);
    setup.drag = float(2 * slowest);
    Cloth cloth(device, setup, 0);
    std::vector<vec3> x;
    for (int i = 0; i < rows; i++)
      for (int j = 0; j < columns; j++) x.push_back(cloth.spacing() * vec3(float(j), -float(i), 0));
    cloth.x.copy_from(x);
    for (int j = 0; j < columns; j++) cloth.pin(0, j);
    cloth.advance(int(20 / slowest / double(cloth.dt())));
    for (int j = 0; j < columns; j++)
      for (int i = 0; i + 1 < rows; i++) {
        const double weight = (rows - 1 - i) * double(cloth.mass()) * double(setup.gravity);
        const double elongation =
            double(length(cloth.x.at(i + 1, j) - cloth.x.at(i, j)) - cloth.spacing());
        CHECK(elongation == Approx(weight / 50).epsilon(1e-3));
      }
  });
}

TEST_CASE("springs keep momentum, and their damping takes energy") {
  on_every_device([](qn::Device& device) {
    const bool fast = device.name() == std::string("cpu");
    Cloth::Setup setup;
    setup.rows = 9;
    setup.columns = 12;
    setup.gravity = 0;
    Cloth cloth(device, setup, 0);
    std::vector<vec3> start;
    vec3 before, after;
    double size = 0;
    for (int k = 0; k < setup.rows * setup.columns; k++) {
      start.push_back(vec3(float(k * 31 % 17) - 8, float(k * 43 % 23) - 11, float(k * 7 % 13) - 6) /
                      10);
      before += start.back();
      size += double(length(start.back()));
    }
    cloth.v.copy_from(start);
    double last = cloth.energy();
    for (int round = 0; round < 5; round++) {
      cloth.advance(fast ? 100 : 10);
      const double now = cloth.energy();
      CHECK(now < last);
      last = now;
    }
    for (vec3 v : qn::to_vector(cloth.v)) after += v;
    CHECK(double(length(after - before)) < 1e-5 * size);
  });
}

TEST_CASE("a cloth on a ball lies on it and hardly stretches") {
  on_every_device([](qn::Device& device) {
    const bool fast = device.name() == std::string("cpu");
    const int n = fast ? 32 : 13;  // of an odd number one lies above the ball's middle
    Cloth::Setup setup;
    setup.rows = setup.columns = n;
    setup.radius = 0.25f;
    setup.damping = 0.05f;
    setup.drag = 1;
    Cloth cloth(device, setup, 0.2502f);
    const double before = cloth.energy();
    cloth.advance(fast ? 4000 : 40);
    std::vector<vec3> x = qn::to_vector(cloth.x);
    double nearest = 1, longest = 0, lowest = 1;
    for (int i = 0; i < n; i++)
      for (int j = 0; j < n; j++) {
        const vec3& at = x[size_t(i * n + j)];
        nearest = std::min(nearest, double(length(at)));
        lowest = std::min(lowest, double(at.y));
        if (j + 1 < n) longest = std::max(longest, double(length(x[size_t(i * n + j + 1)] - at)));
        if (i + 1 < n) longest = std::max(longest, double(length(x[size_t((i + 1) * n + j)] - at)));
      }
    CHECK(nearest == Approx(double(setup.radius)).epsilon(1e-5));
    CHECK(longest < 1.1 * double(cloth.spacing()));
    if (fast) CHECK(lowest < 0);  // the corners hang
    CHECK(cloth.energy() < before);
    int lit = 0;
    for (vec3 pixel : qn::to_vector(cloth.draw(48))) lit += pixel.x > 0.15f;
    CHECK(lit > 150);
  });
}
