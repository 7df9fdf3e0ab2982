// Cameras and points from sights: the gradient by dual numbers, and what noise leaves.
#include "examples/differentiable/bundle_adjustment.h"

#include "tests/autodiff/dual.h"
#include "tests/end_to_end/devices.h"

using examples::BundleAdjustment;
using examples::Scene;

namespace {

constexpr int directions = 3;
using Number = Dual<directions>;

double direction(size_t k, int d) { return std::sin(double(k + 1) * (0.7 + 1.3 * d)); }

/// The loss and its derivatives along the directions, by rotation matrices.
Number reference(const Scene& scene) {
  std::vector<Number> all;
  for (const auto* vectors : {&scene.turns, &scene.moves, &scene.points})
    for (const auto& v : *vectors)
      for (double x : {v.x, v.y, v.z}) {
        all.push_back(x);
        for (int d = 0; d < directions; d++) all.back().d[size_t(d)] = direction(all.size() - 1, d);
      }
  const size_t cameras = scene.turns.size();
  Number loss;
  for (const Scene::Sight& s : scene.sights) {
    const Number* g = &all[size_t(3 * s.camera)];
    const Number* move = &all[3 * (cameras + size_t(s.camera))];
    const Number* p = &all[3 * (2 * cameras + size_t(s.point))];
    // Of the unit quaternion (g, 1) / √(1 + |g|²).
    const Number norm = g[0] * g[0] + g[1] * g[1] + g[2] * g[2] + 1;
    Number at[3];
    for (int i = 0; i < 3; i++) {
      const int j = (i + 1) % 3, k = (i + 2) % 3;
      at[i] = ((g[i] * g[i] - g[j] * g[j] - g[k] * g[k] + 1) * p[i] +
               (g[i] * g[j] - g[k]) * p[j] * 2 + (g[i] * g[k] + g[j]) * p[k] * 2) /
                  norm +
              move[i];
    }
    const Number x = at[0] / at[2] - s.at.x, y = at[1] / at[2] - s.at.y;
    loss += (x * x + y * y) * 0.5;
  }
  return loss;
}

}  // namespace

TEST_CASE("bundle adjustment: the gradient is that of dual numbers") {
  on_every_device([](const qn::Device& device) {
    const Scene scene = Scene::arc(3, 10, 0.01, 5).displaced(0.1, 6);
    BundleAdjustment<double> program(device, scene, {});
    const Number expected = reference(scene);
    CHECK(program.loss_and_gradient() == Approx(expected.v).epsilon(1e-12));
    const auto gradient = qn::to_vector(program.parameters.grad());
    for (int d = 0; d < directions; d++) {
      INFO("direction " << d);
      double along = 0;
      for (size_t k = 0; k < gradient.size(); k++)
        along += gradient[k].x * direction(3 * k, d) + gradient[k].y * direction(3 * k + 1, d) +
                 gradient[k].z * direction(3 * k + 2, d);
      CHECK(along == Approx(expected.d[size_t(d)]).epsilon(1e-10));
    }
  });
}

TEST_CASE("bundle adjustment: what is left is the noise") {
  on_every_device([](const qn::Device& device) {
    const int cameras = 5, points = 40;
    for (double noise : {0.0, 1e-3}) {
      INFO("noise " << noise);
      const Scene truth = Scene::arc(cameras, points, noise, 5);
      BundleAdjustment<double> program(device, truth.displaced(0.05, 6), {});
      double loss = program.loss();
      CHECK(loss > 0.04);
      for (int k = 0; k < 12; k++) {
        program.step();
        const double next = program.loss();
        CHECK(next <= loss * (1 + 1e-9));  // a step that is taken back is, but for rounding
        loss = next;
      }
      if (noise == 0) {
        CHECK(loss < 1e-12);
      } else {
        // Of a sum of squares of so many independent normal numbers, within five deviations. Seven
        // unknowns are free: how the scene as a whole is turned, moved and scaled.
        const double free = 2 * cameras * points - (6 * cameras + 3 * points - 7);
        CHECK(2 * loss / (noise * noise) == Approx(free).margin(5 * std::sqrt(2 * free)));
      }
    }
  });
}
