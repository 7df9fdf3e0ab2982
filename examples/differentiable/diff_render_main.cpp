// Finds a cloud of which there are pictures.
#include "examples/differentiable/diff_render.h"

#include "examples/differentiable/optimise.h"

int main(int argc, char** argv) {
  examples::Optimisation run("diff_render", "A cloud from pictures of it", 60);
  examples::DiffRender<float>::Setup setup;
  run.command.option("--side", setup.side, "cells along a side of the cloud", 2, 1024);
  run.command.option("--width", setup.width, "pixels of a picture's side", 2, 8192);
  run.command.option("--views", setup.views, "pictures in half a turn", 1, 1000);
  return run.command.run(argc, argv, [&](const quern::Device& device) {
    examples::DiffRender<float> program(device, setup);
    run.descend(device, program);
    for (int view = 0; view < setup.views; view++)
      for (const auto& [name, all] :
           {std::pair("target", program.targets), std::pair("found", program.pictures)})
        quern::write_image(run.command.picture(name + std::to_string(view) + ".png"),
                           all.select(0, view));
  });
}
