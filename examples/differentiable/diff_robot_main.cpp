// Teaches a robot of springs to walk.
#include "examples/differentiable/diff_robot.h"

#include "examples/differentiable/optimise.h"

int main(int argc, char** argv) {
  examples::Optimisation run("diff_robot", "A robot of masses and springs learns to walk", 100);
  examples::DiffRobot<float>::Setup setup;
  run.command.option("--steps", setup.steps, "of 4 ms", 2, 100000);
  run.command.option("--rate", setup.rate, "how far a step of the descent goes");
  run.command.option("--seed", setup.seed, "of the first weights");
  return run.command.run(argc, argv, [&](const quern::Device& device) {
    examples::DiffRobot<float> program(device, setup);
    run.descend(device, program);
  });
}
