// Total variation against its gradient by hand, and the descent against the bound for convex losses.
#include "examples/differentiable/diff_denoise.h"

#include <cmath>

#include "tests/end_to_end/devices.h"

using examples::DiffDenoise;

namespace {

constexpr int height = 17, width = 21;
constexpr double weight = 0.1, softness = 0.05;
using Picture = std::vector<double>;

/// A bright disc.
double clean(int i, int j) { return std::hypot(i - 8, j - 9) < 5 ? 0.9 : 0.2; }

double distance(const Picture& a) {
  double sum = 0;
  for (int i = 0; i < height; i++)
    for (int j = 0; j < width; j++) sum += std::pow(a[size_t(i * width + j)] - clean(i, j), 2);
  return sum;
}

/// The loss; its gradient, the divergence of unit vectors, goes to `gradient`.
double reference(const Picture& u, const Picture& seen, Picture& gradient) {
  const auto at = [](int i, int j) { return size_t(i * width + j); };
  gradient.assign(u.size(), 0);
  double loss = 0;
  for (int i = 0; i < height; i++)
    for (int j = 0; j < width; j++) {
      const double off = u[at(i, j)] - seen[at(i, j)];
      const double down = i + 1 < height ? u[at(i + 1, j)] - u[at(i, j)] : 0;
      const double right = j + 1 < width ? u[at(i, j + 1)] - u[at(i, j)] : 0;
      const double steep = std::sqrt(down * down + right * right + softness * softness);
      loss += 0.5 * off * off + weight * steep;
      gradient[at(i, j)] += off - weight * (down + right) / steep;
      if (i + 1 < height) gradient[at(i + 1, j)] += weight * down / steep;
      if (j + 1 < width) gradient[at(i, j + 1)] += weight * right / steep;
    }
  return loss;
}

}  // namespace

TEST_CASE("denoising: the gradient is that by hand, and each step lowers the loss enough") {
  on_every_device([](const qn::Device& device) {
    Picture seen;
    for (int i = 0; i < height; i++)
      for (int j = 0; j < width; j++)
        seen.push_back(clean(i, j) + 0.1 * std::sin(12.3 * i * i + 4.5 * j * j + i * j));
    qn::Field<double, 2> field{device, {height, width}};
    field.copy_from(seen);
    const DiffDenoise<double>::Setup setup{.weight = weight, .softness = softness};
    DiffDenoise<double> program(device, field, setup);
    double before = 0, squared = 0;
    for (int iteration = 0; iteration < 40; iteration++) {
      INFO("iteration " << iteration);
      Picture gradient;
      const double expected = reference(qn::to_vector(program.picture), seen, gradient);
      const double loss = program.loss_and_gradient();
      REQUIRE(loss == Approx(expected).epsilon(1e-12));
      const Picture found = qn::to_vector(program.picture.grad());
      for (size_t k = 0; k < found.size(); k++)
        REQUIRE(found[k] == Approx(gradient[k]).epsilon(1e-9).margin(1e-12));
      // A step of 1 / L lowers a loss whose gradient has the Lipschitz constant L by |g|² / 2L.
      if (iteration > 0) REQUIRE(before - loss >= squared / (2 * setup.steepness()));
      before = loss;
      squared = 0;
      for (double g : gradient) squared += g * g;
      program.step();
    }
    CHECK(distance(qn::to_vector(program.picture)) < 0.5 * distance(seen));
  });
}
