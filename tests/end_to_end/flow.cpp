// The lattice Boltzmann channel against the analytic flow between plates.
#include <cmath>

#include "examples/channel.h"
#include "tests/end_to_end/devices.h"

namespace {

std::vector<double> profile(examples::Channel& channel, int height, int width, int column) {
  channel.measure();
  std::vector<qn::Vec<float, 2>> velocity = qn::to_vector(channel.velocity);
  std::vector<double> u;
  for (int i = 0; i < height; i++) u.push_back(velocity[size_t(i * width + column)].x);
  return u;
}
/// The parabola of viscous flow under this force, walls half a node outside the first and last.
double parabola(int i, int height, double force, double viscosity) {
  const double y = i + 0.5;
  return force / (2 * viscosity) * y * (height - y);
}

}  // namespace

TEST_CASE("channel flow from rest becomes the parabola") {
  on_every_device([](qn::Device& device) {
    const bool fast = device.name() == std::string("cpu");
    const int height = fast ? 11 : 6, width = fast ? 7 : 3;
    // With (tau - 1/2)² = 3/16 the reflecting wall lies half-way between nodes, so the lattice
    // flow is the parabola itself (He, Zou, Luo & Dembo 1997).
    const double viscosity = std::sqrt(3.0) / 12;
    const double peak = 0.05, force = 8 * viscosity * peak / (height * height);
    examples::Channel channel(device, height, width, float(viscosity), float(force));
    // The slowest mode decays by exp(-viscosity (π / height)² t): to 1e-6.
    const int steps = int(14 * height * height / (viscosity * M_PI * M_PI));
    channel.advance(steps);
    for (int column : {0, width - 1}) {
      std::vector<double> u = profile(channel, height, width, column);
      for (int i = 0; i < height; i++)
        CHECK(u[size_t(i)] == Approx(parabola(i, height, force, viscosity)).epsilon(1e-4));
    }
    for (auto v : qn::to_vector(channel.velocity)) REQUIRE(std::abs(v.y) < 1e-6f);
  });
}

TEST_CASE("channel flow slips at the wall as the theory of the reflection says") {
  on_every_device([](qn::Device& device) {
    const bool fast = device.name() == std::string("cpu");
    const int height = fast ? 12 : 6, width = 3;
    // He, Zou, Luo & Dembo, J. Stat. Phys. 87 (1997): for tau off the value above the parabola is
    // shifted by force · (4 (2 tau - 1)² - 3) / (24 viscosity), here with tau = 1.
    const double tau = 1, viscosity = (tau - 0.5) / 3, force = 1e-4;
    const double slip = force / (24 * viscosity) * (4 * (2 * tau - 1) * (2 * tau - 1) - 3);
    examples::Channel channel(device, height, width, float(viscosity), float(force));
    channel.advance(int(14 * height * height / (viscosity * M_PI * M_PI)));
    std::vector<double> u = profile(channel, height, width, 1);
    for (int i = 0; i < height; i++)
      CHECK(u[size_t(i)] == Approx(parabola(i, height, force, viscosity) + slip).epsilon(2e-4));
  });
}

TEST_CASE("a developed channel flow stays, and an obstacle slows it") {
  on_every_device([](qn::Device& device) {
    const int height = 8, width = 9, steps = device.name() == std::string("cpu") ? 2000 : 40;
    const double viscosity = std::sqrt(3.0) / 12, peak = 0.04;
    const double force = 8 * viscosity * peak / (height * height);
    examples::Channel free(device, height, width, float(viscosity), float(force));
    free.start(float(peak));
    free.advance(steps);
    std::vector<double> u = profile(free, height, width, 4);
    for (int i = 0; i < height; i++)
      CHECK(u[size_t(i)] == Approx(parabola(i, height, force, viscosity)).epsilon(1e-2));

    examples::Channel blocked(device, height, width, float(viscosity), float(force));
    for (int i = 2; i < 5; i++) blocked.set_solid(i, 4);
    blocked.start(float(peak));
    blocked.advance(steps);
    std::vector<double> v = profile(blocked, height, width, 4);
    for (int i = 2; i < 5; i++) CHECK(v[size_t(i)] == 0.0);
    CHECK(profile(blocked, height, width, 0)[3] < 0.9 * u[3]);
  });
}
