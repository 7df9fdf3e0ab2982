// A square of material points thrown at a target, against dual numbers and a published loss.
#include "examples/differentiable/diff_mpm.h"

#include "tests/autodiff/descent.h"
#include "tests/autodiff/dual.h"
#include "tests/end_to_end/devices.h"

using examples::DiffMpm;

namespace {

using Number = Dual<2>;  // by the velocity
constexpr int n = 120;
constexpr double cell = 1.0 / n, dt = 3e-4, stiffness = 100;

struct Particle {
  Number x[2], v[2], c[2][2], f[2][2] = {{1, 0}, {0, 1}};
};

struct Weights {
  int base[2];
  Number f[2], w[2][3];
  explicit Weights(const Particle& p) {
    for (int k = 0; k < 2; k++) {
      base[k] = int(p.x[k].v * n - 0.5);
      f[k] = p.x[k] * n - Number(base[k]);
      w[k][0] = (Number(1.5) - f[k]) * (Number(1.5) - f[k]) * 0.5;
      w[k][1] = Number(0.75) - (f[k] - 1) * (f[k] - 1);
      w[k][2] = (f[k] - 0.5) * (f[k] - 0.5) * 0.5;
    }
  }
};

/// The loss and its gradient, forward.
Number reference(int side, int steps, double vx, double vy) {
  std::vector<Particle> particles(size_t(side * side));
  for (int i = 0; i < side; i++)
    for (int j = 0; j < side; j++) {
      Particle& p = particles[size_t(i * side + j)];
      p.x[0] = cell * (i * 0.5 + 10);
      p.x[1] = cell * (j * 0.5 + 25);
      p.v[0] = Number::input(vx, 0);
      p.v[1] = Number::input(vy, 1);
    }
  struct Node {
    Number mass, v[2];
  };
  for (int step = 0; step < steps; step++) {
    std::vector<Node> grid(size_t(n * n));
    for (Particle& p : particles) {
      Number f[2][2];
      for (int a = 0; a < 2; a++)
        for (int b = 0; b < 2; b++)
          f[a][b] = p.f[a][b] + (p.c[a][0] * p.f[0][b] + p.c[a][1] * p.f[1][b]) * dt;
      const Number cosine = f[0][0] + f[1][1], sine = f[1][0] - f[0][1];
      const Number radius = sqrt(cosine * cosine + sine * sine);
      const Number r[2][2] = {{cosine / radius, -sine / radius}, {sine / radius, cosine / radius}};
      const Number j = f[0][0] * f[1][1] - f[0][1] * f[1][0];
      Number affine[2][2];
      for (int a = 0; a < 2; a++)
        for (int b = 0; b < 2; b++) {
          Number stress = a == b ? (j - 1) * j * stiffness : Number(0);
          for (int k = 0; k < 2; k++) stress += (f[a][k] - r[a][k]) * f[b][k] * (2 * stiffness);
          affine[a][b] = p.c[a][b] - stress * (dt * 4 * n * n);
          p.f[a][b] = f[a][b];
        }
      const Weights at(p);
      for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++) {
          const Number weight = at.w[0][i] * at.w[1][k];
          const Number way[2] = {(Number(i) - at.f[0]) * cell, (Number(k) - at.f[1]) * cell};
          Node& node = grid[size_t((at.base[0] + i) * n + at.base[1] + k)];
          node.mass += weight;
          for (int a = 0; a < 2; a++)
            node.v[a] += weight * (p.v[a] + affine[a][0] * way[0] + affine[a][1] * way[1]);
        }
    }
    for (int i = 0; i < n; i++)
      for (int k = 0; k < n; k++) {
        Node& node = grid[size_t(i * n + k)];
        const int place[2] = {i, k};
        for (int a = 0; a < 2; a++) {
          Number v = node.v[a] / (node.mass + 1e-10) - Number(a == 1 ? dt * 9.8 : 0);
          if ((place[a] < 3 && v < 0) || (place[a] > n - 3 && v > 0)) v = 0;
          node.v[a] = v;
        }
      }
    for (Particle& p : particles) {
      const Weights at(p);
      p = Particle{{p.x[0], p.x[1]}, {}, {}, {{p.f[0][0], p.f[0][1]}, {p.f[1][0], p.f[1][1]}}};
      for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++) {
          const Number weight = at.w[0][i] * at.w[1][k];
          const Node& node = grid[size_t((at.base[0] + i) * n + at.base[1] + k)];
          for (int a = 0; a < 2; a++) {
            p.v[a] += weight * node.v[a];
            p.c[a][0] += weight * node.v[a] * (Number(i) - at.f[0]) * (4 * n);
            p.c[a][1] += weight * node.v[a] * (Number(k) - at.f[1]) * (4 * n);
          }
        }
      for (int a = 0; a < 2; a++) p.x[a] += p.v[a] * dt;
    }
  }
  Number centre[2];
  for (const Particle& p : particles)
    for (int a = 0; a < 2; a++) centre[a] += p.x[a] / Number(side * side);
  const Number x = centre[0] - 0.3, y = centre[1] - 0.6;
  return (x * x + y * y) * 0.5;
}

}  // namespace

TEST_CASE("material points: 16 steps have the gradient of dual numbers") {
  on_every_device([](const qn::Device& device) {
    const double rate = 0.01;
    DiffMpm<double> program(device, {.side = 8, .steps = 16, .rate = rate});
    program.velocity.set(0, {2.0, -1.0});
    const Number expected = reference(8, 16, 2, -1);
    for (int repeated = 0; repeated < 2; repeated++) {  // the second time all begins anew
      CHECK(program.loss_and_gradient() == Approx(expected.v).epsilon(1e-10));
      CHECK(program.velocity.grad().at(0).x == Approx(expected.d[0]).epsilon(1e-9));
      CHECK(program.velocity.grad().at(0).y == Approx(expected.d[1]).epsilon(1e-9));
    }
    const double squared = expected.d[0] * expected.d[0] + expected.d[1] * expected.d[1];
    expect_descent(program, rate, squared, 1e-4);

    DiffMpm<float> single(device, {.side = 8, .steps = 16});
    single.velocity.set(0, {2.0f, -1.0f});
    CHECK(single.loss_and_gradient() == Approx(expected.v).epsilon(1e-4));
    CHECK(single.velocity.grad().at(0).x == Approx(expected.d[0]).epsilon(1e-3));
    CHECK(single.velocity.grad().at(0).y == Approx(expected.d[1]).epsilon(1e-3));
  });
}

TEST_CASE("material points: descent goes as published", "[.long][diff-mpm]") {
  const qn::Device device("cpu");
  DiffMpm<double> program(device, {});
  const Number expected = reference(80, 1023, 0, 0);
  CHECK(expected.v == Approx(0.0525569215).epsilon(1e-8));
  const double published[] = {0.0525569215, 0.0428378, 0.0381838, 0.0341691, 0.0301381};
  for (int iteration = 0; iteration < 30; iteration++) {
    INFO("iteration " << iteration);
    const double loss = program.loss_and_gradient();
    if (iteration == 0) {
      CHECK(loss == Approx(expected.v).epsilon(1e-8));
      CHECK(program.velocity.grad().at(0).x == Approx(expected.d[0]).epsilon(1e-6));
      CHECK(program.velocity.grad().at(0).y == Approx(expected.d[1]).epsilon(1e-6));
    }
    if (iteration < 5) CHECK(loss == Approx(published[iteration]).epsilon(2e-5));
    if (iteration == 9) CHECK(loss == Approx(8.03536e-3).epsilon(1e-3));
    if (iteration == 29) CHECK(loss < 1e-7);
    program.step();
  }
}
