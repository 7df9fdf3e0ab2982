// Throws an elastic square at a target, better each time.
#include "examples/differentiable/diff_mpm.h"

#include "examples/differentiable/optimise.h"

int main(int argc, char** argv) {
  examples::Optimisation run("diff_mpm", "The velocity that throws an elastic square to a target",
                             30);
  examples::DiffMpm<float>::Setup setup;
  run.command.option("--side", setup.side, "particles along the square's side", 1, 100);
  run.command.option("--steps", setup.steps, "of 0.3 ms", 1, 100000);
  return run.command.run(argc, argv, [&](const quern::Device& device) {
    examples::DiffMpm<float> program(device, setup);
    run.descend(device, program);
    const auto v = program.velocity.at(0);
    run.command.say("velocity (%.4f, %.4f)", double(v.x), double(v.y));
  });
}
