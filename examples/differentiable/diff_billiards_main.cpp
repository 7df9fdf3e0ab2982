// Plays billiards, better each time.
#include "examples/differentiable/diff_billiards.h"

#include "examples/differentiable/optimise.h"

int main(int argc, char** argv) {
  examples::Optimisation run("diff_billiards", "The stroke that sends a ball to its goal", 200);
  examples::DiffBilliards<double>::Setup setup;
  run.command.option("--steps", setup.steps, "of 3 ms", 1, 100000);
  run.command.option("--rate", setup.rate, "of gradient descent");
  return run.command.run(argc, argv, [&](const quern::Device& device) {
    examples::DiffBilliards<double> program(device, setup);
    run.descend(device, program);
    const auto x = program.cue.at(0), v = program.cue.at(1);
    run.command.say("from (%.4f, %.4f) with velocity (%.4f, %.4f)", x.x, x.y, v.x, v.y);
  });
}
