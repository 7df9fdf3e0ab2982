// A robot of springs against dual numbers, along random directions of its weights.
#include "examples/differentiable/diff_robot.h"

#include "tests/autodiff/descent.h"
#include "tests/autodiff/dual.h"
#include "tests/end_to_end/devices.h"

using examples::DiffRobot;
using examples::Robot;

namespace {

constexpr int directions = 3, hidden = 32, waves = 10;
constexpr double dt = 0.004;
using Number = Dual<directions>;

/// A value for each weight and direction, in [-1, 1].
double direction(size_t weight, int d) { return std::sin(double(weight + 1) * (0.7 + 1.3 * d)); }

/// The loss and its derivatives along the directions; `touches` counts masses that came to the ground.
Number reference(const std::vector<double>& weights, int steps, int& touches) {
  const Robot robot = Robot::two_legs();
  const size_t masses = robot.masses.size(), springs = robot.springs.size();
  const size_t inputs = waves + 4 * masses + 2;
  std::vector<Number> w(weights.begin(), weights.end());
  for (size_t k = 0; k < w.size(); k++)
    for (int d = 0; d < directions; d++) w[k].d[size_t(d)] = direction(k, d);
  const auto first = [&](size_t i, size_t j) { return w[i * (inputs + 1) + j]; };
  const auto second = [&](size_t s, size_t i) {
    return w[hidden * (inputs + 1) + s * (hidden + 1) + i];
  };
  struct Mass {
    Number x[2], v[2], impulse[2];
  };
  std::vector<Mass> m(masses);
  for (size_t i = 0; i < masses; i++) {
    m[i].x[0] = robot.masses[i].x;
    m[i].x[1] = robot.masses[i].y;
  }
  for (int t = 0; t + 1 < steps; t++) {
    std::vector<Number> seen, neurons;
    Number centre[2];
    for (const Mass& mass : m)
      for (int k = 0; k < 2; k++) centre[k] += mass.x[k] * (1.0 / double(masses));
    for (int k = 0; k < waves; k++) seen.push_back(std::sin(10 * t * dt + 2 * M_PI / waves * k));
    for (const Mass& mass : m) {
      for (int k = 0; k < 2; k++) seen.push_back((mass.x[k] - centre[k]) * 0.05);
      for (int k = 0; k < 2; k++) seen.push_back(mass.v[k] * 0.05);
    }
    seen.push_back(Number(0.9) - centre[0]);
    seen.push_back(Number(0.2) - centre[1]);
    seen.push_back(1);
    for (size_t i = 0; i < hidden; i++) {
      Number sum;
      for (size_t j = 0; j <= inputs; j++) sum += first(i, j) * seen[j];
      neurons.push_back(tanh(sum));
    }
    neurons.push_back(1);
    for (size_t s = 0; s < springs; s++) {
      const Robot::Spring& spring = robot.springs[s];
      Number sum;
      for (size_t i = 0; i <= hidden; i++) sum += second(s, i) * neurons[i];
      Mass &a = m[size_t(spring.a)], &b = m[size_t(spring.b)];
      const Number way[2] = {a.x[0] - b.x[0], a.x[1] - b.x[1]};
      const Number far = sqrt(way[0] * way[0] + way[1] * way[1]) + 1e-4;
      const Number rest = (tanh(sum) * spring.actuation + 1) * spring.length;
      for (int k = 0; k < 2; k++) {
        const Number impulse = (far - rest) / far * way[k] * (dt * 3e4);
        a.impulse[k] -= impulse;
        b.impulse[k] += impulse;
      }
    }
    for (Mass& mass : m) {
      for (int k = 0; k < 2; k++) {
        mass.v[k] =
            mass.v[k] * std::exp(-dt * 15) + mass.impulse[k] - Number(k == 1 ? dt * 4.8 : 0);
        mass.impulse[k] = 0;
      }
      Number flight = dt;
      const bool stops = mass.x[1].v + dt * mass.v[1].v < 0.1 && mass.v[1].v < -1e-4;
      if (stops) flight = -(mass.x[1] - 0.1) / mass.v[1];
      for (int k = 0; k < 2; k++) {
        mass.x[k] += flight * mass.v[k];
        if (stops) mass.v[k] = 0;
      }
      touches += stops;
    }
  }
  return -m[0].x[0];
}

}  // namespace

TEST_CASE("robot of springs: 60 steps have the gradient of dual numbers") {
  on_every_device([](const qn::Device& device) {
    const double rate = 1e-4;
    DiffRobot<double> program(device, {.steps = 60, .rate = rate});
    std::vector<double> weights = qn::to_vector(program.hidden_weights);
    for (double w : qn::to_vector(program.spring_weights)) weights.push_back(w);
    int touches = 0;
    const Number expected = reference(weights, 60, touches);
    CHECK(touches > 10);
    CHECK(program.loss_and_gradient() == Approx(expected.v).epsilon(1e-10));

    std::vector<double> gradient = qn::to_vector(program.hidden_weights.grad());
    for (double g : qn::to_vector(program.spring_weights.grad())) gradient.push_back(g);
    double squared = 0;
    for (double g : gradient) squared += g * g;
    for (int d = 0; d < directions; d++) {
      INFO("direction " << d);
      double along = 0;
      for (size_t k = 0; k < gradient.size(); k++) along += gradient[k] * direction(k, d);
      CHECK(along == Approx(expected.d[size_t(d)]).epsilon(1e-7));
    }
    expect_descent(program, rate / std::sqrt(squared), squared, 1e-2);
  });
}
