// Smoke in the wind against dual numbers, along random directions of the wind at the start.
#include "examples/differentiable/diff_smoke.h"

#include "tests/autodiff/descent.h"
#include "tests/autodiff/dual.h"
#include "tests/end_to_end/devices.h"

using examples::DiffSmoke;

namespace {

constexpr int directions = 3;
using Number = Dual<directions>;
using Raster = std::vector<Number>;

double direction(size_t cell, int axis, int d) {
  return std::sin(double(2 * cell + size_t(axis) + 1) * (0.9 + 1.1 * d));
}

class Reference {
 public:
  explicit Reference(int side) : n_(side) {}

  /// The loss and its derivatives along the directions.
  Number loss(const std::vector<quern::Vec<double, 2>>& wind, const std::vector<double>& start,
              const std::vector<double>& target, int steps, int pressure) const {
    const size_t cells = size_t(n_ * n_);
    Raster flow[2] = {Raster(cells), Raster(cells)}, smoke(start.begin(), start.end());
    for (size_t k = 0; k < cells; k++)
      for (int a = 0; a < 2; a++) {
        flow[a][k].v = a == 0 ? wind[k].x : wind[k].y;
        for (int d = 0; d < directions; d++) flow[a][k].d[size_t(d)] = direction(k, a, d);
      }
    for (int s = 0; s < steps; s++) {
      const Raster v[2] = {carried(flow[0], flow), carried(flow[1], flow)};
      Raster p(cells);
      for (int round = 0; round < pressure; round++) {
        Raster next(cells);
        each([&](int i, int j) {
          const Number divergence =
              (at(v[0], i + 1, j) - at(v[0], i - 1, j) + at(v[1], i, j + 1) - at(v[1], i, j - 1)) *
              0.5;
          next[index(i, j)] =
              (at(p, i - 1, j) + at(p, i + 1, j) + at(p, i, j - 1) + at(p, i, j + 1) - divergence) *
              0.25;
        });
        p = next;
      }
      each([&](int i, int j) {
        flow[0][index(i, j)] = at(v[0], i, j) - (at(p, i + 1, j) - at(p, i - 1, j)) * 0.5;
        flow[1][index(i, j)] = at(v[1], i, j) - (at(p, i, j + 1) - at(p, i, j - 1)) * 0.5;
      });
      smoke = carried(smoke, flow);
    }
    Number sum;
    for (size_t k = 0; k < cells; k++) sum += (smoke[k] - target[k]) * (smoke[k] - target[k]);
    return sum / Number(double(cells));
  }

 private:
  size_t index(int i, int j) const { return size_t((i + n_) % n_ * n_ + (j + n_) % n_); }
  const Number& at(const Raster& u, int i, int j) const { return u[index(i, j)]; }
  template <class F>
  void each(F body) const {
    for (int i = 0; i < n_; i++)
      for (int j = 0; j < n_; j++) body(i, j);
  }
  /// What of `u` the flow brings, between four cells.
  Raster carried(const Raster& u, const Raster (&flow)[2]) const {
    Raster out(u.size());
    each([&](int i, int j) {
      const Number y = Number(i) - at(flow[0], i, j), x = Number(j) - at(flow[1], i, j);
      const int row = int(std::floor(y.v)), column = int(std::floor(x.v));
      const Number b = y - row, a = x - column;
      out[index(i, j)] =
          (Number(1) - b) * ((Number(1) - a) * at(u, row, column) + a * at(u, row, column + 1)) +
          b * ((Number(1) - a) * at(u, row + 1, column) + a * at(u, row + 1, column + 1));
    });
    return out;
  }
  int n_;
};

}  // namespace

TEST_CASE("smoke: six steps have the gradient of dual numbers") {
  on_every_device([](const qn::Device& device) {
    const int side = 14, steps = 6;
    const double rate = 1e-2;
    DiffSmoke<double> program(device, {.side = side, .steps = steps, .pressure = 4, .rate = rate});
    std::vector<qn::Vec<double, 2>> wind;
    std::vector<double> start;
    for (int k = 0; k < side * side; k++) {
      wind.push_back({1.3 * std::sin(0.37 * k + 0.1), 1.1 * std::cos(0.23 * k)});
      start.push_back(0.5 + 0.5 * std::sin(0.05 * k * k));
    }
    program.wind.copy_from(wind);
    program.start.copy_from(start);
    const Number expected =
        Reference(side).loss(wind, start, qn::to_vector(program.target), steps, 4);
    CHECK(program.loss_and_gradient() == Approx(expected.v).epsilon(1e-11));
    const auto gradient = qn::to_vector(program.wind.grad());
    double squared = 0;
    for (const auto& g : gradient) squared += g.x * g.x + g.y * g.y;
    for (int d = 0; d < directions; d++) {
      INFO("direction " << d);
      double along = 0;
      for (size_t k = 0; k < gradient.size(); k++)
        along += gradient[k].x * direction(k, 0, d) + gradient[k].y * direction(k, 1, d);
      CHECK(along == Approx(expected.d[size_t(d)]).epsilon(1e-9));
    }
    expect_descent(program, rate, squared, 1e-2);
  });
}
