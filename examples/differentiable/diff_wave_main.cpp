// Finds the waves that come together to a picture.
#include "examples/differentiable/diff_wave.h"

#include "examples/differentiable/optimise.h"

int main(int argc, char** argv) {
  examples::Optimisation run("diff_wave", "The waves that come together to a picture", 100);
  examples::DiffWave<float>::Setup setup;
  run.command.option("--side", setup.side, "cells along the square's side", 8, 8192);
  run.command.option("--steps", setup.steps, "until then", 1, 100000);
  return run.command.run(argc, argv, [&](const quern::Device& device) {
    examples::DiffWave<float> program(device, setup);
    run.descend(device, program);
    quern::write_image(run.command.picture("start.png"), program.start);
    quern::write_image(run.command.picture("reached.png"), program.reached());
  });
}
