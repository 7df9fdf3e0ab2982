// Waves that come together to a picture. Height at the end is a symmetric function of that at the
// start: what goes back is the simulation itself, run from the difference to the target.
#include "examples/differentiable/diff_wave.h"

#include <cmath>

#include "tests/end_to_end/devices.h"

using examples::DiffWave;

namespace {

using Heights = std::vector<double>;

/// Let go at rest, so many steps later.
Heights later(const Heights& start, int side, int steps) {
  Heights before = start, now = start;
  for (int s = 1; s <= steps; s++) {
    Heights next(now.size());
    auto at = [&](int i, int j) {
      return i < 0 || j < 0 || i >= side || j >= side ? 0.0 : now[size_t(i * side + j)];
    };
    for (int i = 0; i < side; i++)
      for (int j = 0; j < side; j++)
        next[size_t(i * side + j)] =
            2 * at(i, j) - before[size_t(i * side + j)] +
            (at(i - 1, j) + at(i + 1, j) + at(i, j - 1) + at(i, j + 1) - 4 * at(i, j)) / 3;
    before = now;
    now = next;
  }
  return now;
}
double squared(const Heights& v) {
  double sum = 0;
  for (double x : v) sum += x * x;
  return sum;
}

}  // namespace

TEST_CASE("waves: the gradient is the wave of the difference, and losses fall by a parabola") {
  on_every_device([](const qn::Device& device) {
    const int side = 20;
    for (int steps : {15, 24}) {
      INFO(steps << " steps");
      DiffWave<double> program(device, {.side = side, .steps = steps});
      Heights start(size_t(side * side));
      for (size_t k = 0; k < start.size(); k++) start[k] = std::sin(0.1 * double(k * k % 97));
      program.start.copy_from(start);
      const double cell = 1.0 / side / side, rate = 0.3 / cell;
      for (int iteration = 0; iteration < 4; iteration++) {
        INFO("iteration " << iteration);
        const Heights target = qn::to_vector(program.target);
        start = qn::to_vector(program.start);
        Heights off = later(start, side, steps);
        for (size_t k = 0; k < off.size(); k++) off[k] -= target[k];
        Heights gradient = later(off, side, steps);
        for (double& g : gradient) g *= 2 * cell;

        const double loss = program.loss_and_gradient();
        CHECK(loss == Approx(cell * squared(off)).epsilon(1e-10));
        const Heights found = qn::to_vector(program.start.grad());
        for (size_t k = 0; k < found.size(); k++)
          REQUIRE(found[k] == Approx(gradient[k]).epsilon(1e-9).margin(1e-14));
        program.step();
        const double fall =
            rate * squared(gradient) - rate * rate * cell * squared(later(gradient, side, steps));
        CHECK(fall > 0);
        CHECK(loss - program.loss() == Approx(fall).epsilon(1e-9));
      }
    }
  });
}
