// Pictures of a cloud against dual numbers, along random directions of the cloud.
#include "examples/differentiable/diff_render.h"

#include "tests/autodiff/descent.h"
#include "tests/autodiff/dual.h"
#include "tests/end_to_end/devices.h"

using examples::DiffRender;

namespace {

constexpr int directions = 3;
using Number = Dual<directions>;

double direction(size_t cell, int d) { return std::sin(double(cell + 1) * (0.7 + 1.3 * d)); }

/// A coordinate's cell, and how far it is beyond it.
struct Place {
  int cell;
  double beyond;
  Place(double x, int side) {
    const double at = (x + 1) / 2 * (side - 1);
    cell = int(std::floor(at));
    beyond = at - cell;
  }
  double weight(int k) const { return k == 0 ? 1 - beyond : beyond; }
};

/// The loss and its derivatives along the directions.
Number reference(const DiffRender<double>::Setup& setup, const std::vector<double>& roots,
                 const std::vector<double>& targets) {
  const int n = setup.side;
  std::vector<Number> cloud(roots.begin(), roots.end());
  for (size_t k = 0; k < cloud.size(); k++)
    for (int d = 0; d < directions; d++) cloud[k].d[size_t(d)] = direction(k, d);
  const double reach = std::sqrt(2.0), length = 2 * reach / setup.samples;
  Number loss;
  size_t pixel = 0;
  for (int view = 0; view < setup.views; view++)
    for (int i = 0; i < setup.width; i++)
      for (int j = 0; j < setup.width; j++) {
        const double angle = M_PI * view / setup.views;
        const double height = 1 - (i + 0.5) * 2 / setup.width;
        const double across = (j + 0.5) * 2 / setup.width - 1;
        Number light, passes = 1;
        for (int k = 0; k < setup.samples; k++) {
          const double far = (k + 0.5) * length, depth = far - reach;
          const Place at[] = {{std::cos(angle) * across - std::sin(angle) * depth, n},
                              {height, n},
                              {std::sin(angle) * across + std::cos(angle) * depth, n}};
          Number root;
          for (int corner = 0; corner < 8; corner++) {
            int index[3];
            double weight = 1;
            bool inside = true;
            for (int a = 0; a < 3; a++) {
              index[a] = at[a].cell + (corner >> a & 1);
              weight *= at[a].weight(corner >> a & 1);
              inside = inside && index[a] >= 0 && index[a] < n;
            }
            if (inside) root += cloud[size_t((index[0] * n + index[1]) * n + index[2])] * weight;
          }
          const Number kept = exp(root * root * -length);
          light += passes * (Number(1) - kept) * std::exp(-far / 2);
          passes = passes * kept;
        }
        const Number off = light - targets[pixel++];
        loss += off * off;
      }
  return loss / double(pixel);
}

}  // namespace

TEST_CASE("renderer: pictures of a cloud have the gradient of dual numbers") {
  on_every_device([](const qn::Device& device) {
    const DiffRender<double>::Setup setup{
        .side = 7, .width = 6, .views = 3, .samples = 11, .rate = 1e-5};
    DiffRender<double> program(device, setup);
    std::vector<double> roots;
    for (int k = 0; k < 7 * 7 * 7; k++) roots.push_back(0.8 + 0.5 * std::sin(0.3 * k * k));
    program.cloud.copy_from(roots);
    const Number expected = reference(setup, roots, qn::to_vector(program.targets));
    CHECK(program.loss_and_gradient() == Approx(expected.v).epsilon(1e-12));
    const std::vector<double> gradient = qn::to_vector(program.cloud.grad());
    double sum = 0;
    for (double g : gradient) sum += std::abs(g);
    for (int d = 0; d < directions; d++) {
      INFO("direction " << d);
      double along = 0;
      for (size_t k = 0; k < gradient.size(); k++) along += gradient[k] * direction(k, d);
      CHECK(along == Approx(expected.d[size_t(d)]).epsilon(1e-10));
    }
    expect_descent(program, setup.rate, sum, 1e-2);  // Adam's first step is `rate` along each axis
  });
}
