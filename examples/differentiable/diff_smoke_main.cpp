// Finds the wind that blows smoke into a picture.
#include "examples/differentiable/diff_smoke.h"

#include "examples/differentiable/optimise.h"

int main(int argc, char** argv) {
  examples::Optimisation run("diff_smoke", "The wind that blows smoke into a picture", 150);
  examples::DiffSmoke<float>::Setup setup;
  run.command.option("--side", setup.side, "cells along the square's side", 8, 8192);
  run.command.option("--steps", setup.steps, "until then", 1, 100000);
  run.command.option("--rate", setup.rate, "of gradient descent");
  return run.command.run(argc, argv, [&](const quern::Device& device) {
    examples::DiffSmoke<float> program(device, setup);
    run.descend(device, program);
    quern::write_image(run.command.picture("reached.png"), program.reached());
  });
}
