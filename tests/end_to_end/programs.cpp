// The example programs on every device, each against a number from mathematics or the literature.
#include "examples/programs.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

#include "tests/end_to_end/devices.h"

TEST_CASE("saxpy sums to the closed form") {
  on_every_device([](qn::Device& device) {
    for (int n : {0, 1, 1000}) CHECK(examples::saxpy(device, n, 2) == double(n) * (n - 1) + n);
  });
}

TEST_CASE("the Julia set equals a plain C++ loop") {
  on_every_device([](qn::Device& device) {
    const int n = 64, limit = 60;
    // c = 0 and c = -2 have known sets: the unit disc, and the segment [-2, 2].
    std::vector<int> disc = examples::julia({device, {n, n}}, 0, 0, limit);
    int wrong = 0;
    for (int i = 0; i < n; i++)
      for (int j = 0; j < n; j++) {
        float y = -1.5f + 3.0f * (float(i) + 0.5f) / n, x = -1.5f + 3.0f * (float(j) + 0.5f) / n;
        bool inside = disc[size_t(i) * n + size_t(j)] == limit;
        wrong += inside != (x * x + y * y < 1);
      }
    CHECK(wrong == 0);
    std::vector<int> set = examples::julia({device, {n, n}}, -0.75f, 0.125f, limit);
    int differ = 0;
    for (int i = 0; i < n; i++)
      for (int j = 0; j < n; j++) {
        double re = -1.5 + 3.0 * (j + 0.5) / n, im = -1.5 + 3.0 * (i + 0.5) / n;
        int k = 0;
        for (; k < limit && re * re + im * im <= 16; k++) {
          double t = re * re - im * im - 0.75;
          im = 2 * re * im + 0.125;
          re = t;
        }
        differ += std::abs(k - set[size_t(i) * n + size_t(j)]) > 0;
      }
    CHECK(differ <= n * n / 50);  // single against double precision at the boundary of the set
  });
}

TEST_CASE("Jacobi converges to the harmonic function") {
  on_every_device([](qn::Device& device) {
    const int n = device.name() == std::string("cpu") ? 49 : 17;
    std::vector<double> u = examples::jacobi({device, {n, n}}, 1e-11);
    double worst = 0;
    for (int i = 0; i < n; i++)
      for (int j = 0; j < n; j++) {
        double x = double(j) / (n - 1), y = double(i) / (n - 1);
        // The five-point stencil is exact for quadratics, so x² - y² solves the discrete equations
        // too.
        worst = std::max(worst, std::abs(u[size_t(i) * size_t(n) + size_t(j)] - (x * x - y * y)));
      }
    CHECK(worst < 1e-7);
  });
}

TEST_CASE("Game of Life: a glider moves by (1, 1) in four generations") {
  on_every_device([](qn::Device& device) {
    const int n = 12;
    auto board = [&](int di, int dj) {
      std::vector<int> b(size_t(n) * n);
      for (auto [i, j] : {std::pair{0, 1}, {1, 2}, {2, 0}, {2, 1}, {2, 2}})
        b[size_t((i + di) % n * n + (j + dj) % n)] = 1;
      return b;
    };
    CHECK(examples::life({device, {n, n}}, board(3, 3), 4) == board(4, 4));
    CHECK(examples::life({device, {n, n}}, board(3, 3), 4 * n) ==
          board(3, 3));  // once around the torus
  });
}

TEST_CASE("Game of Life: the R-pentomino settles at 116 cells after 1103 generations", "[cpu]") {
  if (std::vector<std::string> names = device_names();
      std::find(names.begin(), names.end(), "cpu") == names.end())
    return report_not_run(names.front(), "the R-pentomino's board is too large");
  const int n = 1024;  // gliders leave the board's middle but do not come around in time
  std::vector<int> board(size_t(n) * n);
  for (auto [i, j] : {std::pair{0, 1}, {0, 2}, {1, 0}, {1, 1}, {2, 1}})
    board[size_t((512 + i) * n + 512 + j)] = 1;
  std::vector<int> end = examples::life({qn::Device("cpu"), {n, n}}, board, 1103);
  CHECK(std::accumulate(end.begin(), end.end(), 0) == 116);
}

TEST_CASE("N-body: two bodies on a circular orbit come back after one period") {
  on_every_device([](qn::Device& device) {
    // Masses 0.5 at distance 1: angular velocity sqrt(G M / d³) = 1, period 2π.
    std::vector<examples::Body<>> b = {{{0.5, 0, 0}, {0, 0.5, 0}, 0.5},
                                       {{-0.5, 0, 0}, {0, -0.5, 0}, 0.5}};
    const int steps = 400;
    auto end = examples::nbody(device, b, 2 * M_PI / steps, steps);
    // Leapfrog's phase error is of second order: about 2π·(dt²)/24 of arc.
    double dt = 2 * M_PI / steps, bound = 2 * M_PI * dt * dt;
    CHECK(std::hypot(end[0].x.x - b[0].x.x, end[0].x.y - b[0].x.y) < bound);
    CHECK(std::abs(end[0].v.x + end[1].v.x) < 1e-13);
    CHECK(std::abs(end[0].v.y + end[1].v.y) < 1e-13);
    CHECK(end[0].x.z == 0.0);
  });
}
