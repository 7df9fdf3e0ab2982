// Rigid bodies on springs against dual numbers, along random directions of their waves.
#include "examples/differentiable/diff_walker.h"

#include "tests/autodiff/descent.h"
#include "tests/autodiff/dual.h"
#include "tests/end_to_end/devices.h"

using examples::DiffWalker;

namespace {

constexpr int directions = 3, waves = 10, springs = 6;
constexpr double dt = 0.001;
using Number = Dual<directions>;

double direction(size_t wave, int d) { return std::sin(double(wave + 1) * (0.7 + 1.3 * d)); }

struct Body {
  double half[2];
  Number x[2], v[2] = {}, angle = {}, spin = {}, gained_x[2] = {}, gained_v[2] = {},
               gained_angle = {}, gained_spin = {};
  double by_mass() const { return 1 / (4 * half[0] * half[1]); }
  double by_moment() const {
    return 1 / (4.0 / 3 * half[0] * half[1] * (half[0] * half[0] + half[1] * half[1]));
  }
  /// An impulse at `arm` from the centre, of which `flight` of the step has passed.
  void push(const Number (&impulse)[2], const Number (&arm)[2], const Number& flight) {
    for (int k = 0; k < 2; k++) {
      gained_v[k] += impulse[k] * by_mass();
      gained_x[k] -= flight * impulse[k] * by_mass();
    }
    const Number turn = (arm[0] * impulse[1] - arm[1] * impulse[0]) * by_moment();
    gained_spin += turn;
    gained_angle -= flight * turn;
  }
};

/// The loss and its derivatives along the directions; `touches` counts corners that hit the ground,
/// `slips` those that it did not hold.
Number reference(const std::vector<double>& amplitudes, int steps, int& touches, int& slips) {
  std::vector<Number> w(amplitudes.begin(), amplitudes.end());
  for (size_t k = 0; k < w.size(); k++)
    for (int d = 0; d < directions; d++) w[k].d[size_t(d)] = direction(k, d);
  Body body[4] = {{{0.15, 0.03}, {0.3, 0.25}},
                  {{0.03, 0.02}, {0.2, 0.15}},
                  {{0.03, 0.02}, {0.3, 0.15}},
                  {{0.03, 0.02}, {0.4, 0.15}}};
  const int foot[] = {1, 1, 2, 2, 3, 3};
  const double at[] = {-0.03, -0.1, -0.03, 0.03, 0.03, 0.1};
  for (int t = 0; t < steps; t++) {
    for (Body& b : body) {
      for (int k = 0; k < 2; k++) b.gained_x[k] = b.gained_v[k] = 0;
      b.gained_angle = b.gained_spin = 0;
      for (double sx : {-1.0, 1.0})
        for (double sy : {-1.0, 1.0}) {
          const Number c = cos(b.angle), s = sin(b.angle), px = sx * b.half[0], py = sy * b.half[1];
          const Number arm[2] = {c * px - s * py, s * px + c * py};
          const Number speed[2] = {b.v[0] - b.spin * arm[1],
                                   b.v[1] + b.spin * arm[0] - Number(dt * 9.8)};
          const Number height = b.x[1] + arm[1] - 0.1;
          if (speed[1].v >= 0 || height.v + dt * speed[1].v >= 0) continue;
          const Number lift =
              -speed[1] * 0.5 / (arm[0] * arm[0] * b.by_moment() + Number(b.by_mass()));
          Number drag = -speed[0] * 0.5 / (arm[1] * arm[1] * b.by_moment() + Number(b.by_mass()));
          touches++;
          slips += std::abs(drag.v) > lift.v;
          drag = min(lift, max(-lift, drag));
          Number flight;
          if (height.v > 0) flight = -height / min(Number(-1e-3), speed[1]);
          if (flight.v > dt) flight = dt;
          b.push({drag, lift}, {arm[0] + speed[0] * dt, arm[1] + speed[1] * dt}, flight);
        }
    }
    for (int s = 0; s < springs; s++) {
      Number sum = w[size_t(s * (waves + 1) + waves)];
      for (int k = 0; k < waves; k++)
        sum += w[size_t(s * (waves + 1) + k)] * std::sin(30 * t * dt + 2 * M_PI / waves * k);
      Body &a = body[0], &b = body[foot[s]];
      const Number arm[2] = {cos(a.angle) * at[s], sin(a.angle) * at[s]};
      const Number way[2] = {a.x[0] + arm[0] - b.x[0], a.x[1] + arm[1] - b.x[1]};
      const Number far = sqrt(way[0] * way[0] + way[1] * way[1]) + 1e-4;
      const Number scale = (far - (tanh(sum) * 0.05 + 1) * 0.12) / far * (dt * 15);
      a.push({-scale * way[0], -scale * way[1]}, arm, 0);
      b.push({scale * way[0], scale * way[1]}, {0, 0}, 0);
    }
    for (Body& b : body) {
      const double kept = std::exp(-dt * 10);
      for (int k = 0; k < 2; k++) {
        b.v[k] = b.v[k] * kept + b.gained_v[k] - Number(k == 1 ? dt * 9.8 : 0);
        b.x[k] += b.v[k] * dt + b.gained_x[k];
      }
      b.spin = b.spin * kept + b.gained_spin;
      b.angle += b.spin * dt + b.gained_angle;
    }
  }
  const Number x = body[3].x[0] - 0.9, y = body[3].x[1] - 0.15;
  return sqrt(x * x + y * y);
}

}  // namespace

TEST_CASE("rigid bodies: 200 steps have the gradient of dual numbers") {
  on_every_device([](const qn::Device& device) {
    const double rate = 1e-6;
    DiffWalker<double> program(device, {.steps = 200, .rate = rate});
    std::vector<double> amplitudes(springs * (waves + 1));
    for (size_t k = 0; k < amplitudes.size(); k++) amplitudes[k] = 2 * std::sin(double(3 * k));
    program.waves.copy_from(amplitudes);
    int touches = 0, slips = 0;
    const Number expected = reference(amplitudes, 200, touches, slips);
    CHECK(touches > 20);
    CHECK(slips > 5);
    CHECK(slips < touches - 5);
    CHECK(program.loss_and_gradient() == Approx(expected.v).epsilon(1e-9));
    const std::vector<double> gradient = qn::to_vector(program.waves.grad());
    double sum = 0;
    for (double g : gradient) sum += std::abs(g);
    for (int d = 0; d < directions; d++) {
      INFO("direction " << d);
      double along = 0;
      for (size_t k = 0; k < gradient.size(); k++) along += gradient[k] * direction(k, d);
      CHECK(along == Approx(expected.d[size_t(d)]).epsilon(1e-6));
    }
    expect_descent(program, rate, sum, 0.05);  // Adam's first step is `rate` along each axis
  });
}
