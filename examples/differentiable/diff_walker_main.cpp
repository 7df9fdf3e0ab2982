// Teaches rigid bodies to crawl.
#include "examples/differentiable/diff_walker.h"

#include "examples/differentiable/optimise.h"

int main(int argc, char** argv) {
  examples::Optimisation run("diff_walker", "Rigid bodies on springs learn to crawl", 60);
  examples::DiffWalker<float>::Setup setup;
  run.command.option("--steps", setup.steps, "of 1 ms", 1, 100000);
  run.command.option("--rate", setup.rate, "of Adam");
  return run.command.run(argc, argv, [&](const quern::Device& device) {
    examples::DiffWalker<float> program(device, setup);
    run.descend(device, program);
  });
}
