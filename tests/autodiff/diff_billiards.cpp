// Billiards against dual numbers.
#include "examples/differentiable/diff_billiards.h"

#include "tests/autodiff/descent.h"
#include "tests/autodiff/dual.h"
#include "tests/end_to_end/devices.h"

using examples::DiffBilliards;

namespace {

using Number = Dual<4>;  // by the cue ball's place and velocity
constexpr double dt = 0.003, radius = 0.03;

struct Ball {
  Number x[2], v[2], push[2], shift[2];
};

/// The loss and its gradient; `hits` counts collisions of each of the two.
Number reference(const double (&cue)[4], int steps, int& hits) {
  std::vector<Ball> balls(1);
  for (int k = 0; k < 2; k++) {
    balls[0].x[k] = Number::input(cue[k], k);
    balls[0].v[k] = Number::input(cue[2 + k], 2 + k);
  }
  for (int i = 0; i < 4; i++)
    for (int j = 0; j <= i; j++) {
      Ball ball;
      ball.x[0] = i * 2 * radius + 0.5;
      ball.x[1] = j * 2 * radius + 0.5 - i * radius * 0.7;
      balls.push_back(ball);
    }
  for (int s = 0; s < steps; s++) {
    for (Ball& a : balls)
      for (const Ball& b : balls) {
        if (&a == &b) continue;
        Number way[2], speed[2], squared, approach;
        for (int k = 0; k < 2; k++) {
          speed[k] = a.v[k] - b.v[k];
          way[k] = a.x[k] + a.v[k] * dt - (b.x[k] + b.v[k] * dt);
          squared += way[k] * way[k];
        }
        const Number far = sqrt(squared);
        if (far.v >= 2 * radius) continue;
        for (int k = 0; k < 2; k++) approach += way[k] / far * speed[k];
        if (approach.v >= 0) continue;
        hits++;
        const Number since = (far - 2 * radius) / min(Number(-1e-3), approach);
        for (int k = 0; k < 2; k++) {
          const Number gained = way[k] / far * approach * (-0.5 * 1.8);
          a.push[k] += gained;
          a.shift[k] += min(since - dt, Number(0)) * gained;
        }
      }
    for (Ball& a : balls)
      for (int k = 0; k < 2; k++) {
        a.v[k] += a.push[k];
        a.x[k] += a.v[k] * dt + a.shift[k];
        a.push[k] = a.shift[k] = 0;
      }
  }
  const Number x = balls.back().x[0] - 0.9, y = balls.back().x[1] - 0.75;
  return x * x + y * y;
}

void check(DiffBilliards<double>& program, int steps, int least_hits, double digits) {
  const auto x = program.cue.at(0), v = program.cue.at(1);
  int hits = 0;
  const Number expected = reference({x.x, x.y, v.x, v.y}, steps, hits);
  CHECK(hits >= least_hits);
  CHECK(program.loss_and_gradient() == Approx(expected.v).epsilon(digits));
  const auto by_x = program.cue.grad().at(0), by_v = program.cue.grad().at(1);
  const double found[] = {by_x.x, by_x.y, by_v.x, by_v.y};
  for (int k = 0; k < 4; k++)
    CHECK(found[k] == Approx(expected.d[size_t(k)]).epsilon(digits).margin(digits));
}

}  // namespace

TEST_CASE("billiards: a break has the gradient of dual numbers") {
  on_every_device([](const qn::Device& device) {
    DiffBilliards<double> program(device, {.steps = 120});
    program.cue.set(0, {0.41, 0.51});
    program.cue.set(1, {1.5, 0.1});
    check(program, 120, 12, 1e-8);
  });
}

TEST_CASE("billiards: a whole stroke has the gradient of dual numbers, and the ball gets nearer") {
  const qn::Device device("cpu");
  const double rate = 1e-5;
  DiffBilliards<double> program(device, {.steps = 1023, .rate = rate});
  check(program, 1023, 12, 1e-6);
  double squared = 0;
  for (const auto& g : qn::to_vector(program.cue.grad())) squared += g.x * g.x + g.y * g.y;
  expect_descent(program, rate, squared, 0.05);
}
