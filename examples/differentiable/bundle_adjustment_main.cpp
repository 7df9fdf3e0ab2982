// Finds cameras and points from what the cameras see.
#include "examples/differentiable/bundle_adjustment.h"

#include "examples/differentiable/optimise.h"

int main(int argc, char** argv) {
  examples::Optimisation run("bundle_adjustment", "Cameras and points from pictures of them", 8);
  int cameras = 16, points = 400;
  double noise = 1e-3;
  run.command.option("--cameras", cameras, "how many there are", 2, 1000);
  run.command.option("--points", points, "that each of them sees", 8, 1000000);
  run.command.option("--noise", noise, "standard deviation of a sight");
  return run.command.run(argc, argv, [&](const quern::Device& device) {
    const auto truth = examples::Scene::arc(cameras, points, noise, 1);
    examples::BundleAdjustment<double> program(device, truth.displaced(0.05, 2), {});
    run.descend(device, program);
    const double unknowns = 6.0 * cameras + 3.0 * points - 7;
    run.command.say("noise alone would leave %.6g",
                    0.5 * noise * noise * (2.0 * cameras * points - unknowns));
  });
}
