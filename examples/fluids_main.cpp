// Two streams that rub against each other roll up into vortices: stable fluids, drawn by the dye.
#include "examples/fluids.h"

#include <quern/files.h>

#include <chrono>
#include <cmath>

#include "examples/command.h"

using namespace quern::lang;

int main(int argc, char** argv) {
  examples::Command command("fluids", "Stable fluids: a jet between two shear layers rolls up");
  int n = 256, frames = 60, steps = 8;
  float viscosity = 0;
  command.option("--grid", n, "cells along a side", 8, 8192);
  command.option("--viscosity", viscosity, "in sides squared a second", 0.0, 1.0);
  command.option("--frames", frames, "frames written", 1, 100000);
  command.option("--steps", steps, "steps of 5 ms a frame", 1, 100000);
  return command.run(argc, argv, [&](const quern::Device& device) {
    examples::Fluids::Setup setup;
    setup.viscosity = viscosity;
    examples::Fluids fluids({device, {n, n}}, setup);
    // Brown & Minion, "Performance of Under-Resolved Two-Dimensional Incompressible Flow
    // Simulations", J. Comput. Phys. 122 (1995).
    quern::Kernel start = [&] {
      for (auto [i, j] : fluids.velocity) {
        auto y = (cast<float>(i) + 0.5f) / float(n), x = (cast<float>(j) + 0.5f) / float(n);
        auto jet = select(y < 0.5f, tanh(60.0f * (y - 0.25f)), tanh(60.0f * (0.75f - y)));
        fluids.velocity(i, j) = vec(jet, 0.05f * sin(float(2 * M_PI) * x));
        fluids.dye(i, j) = 0.5f + 0.5f * jet;
      }
    };
    quern::Field<quern::Vec<float, 3>, 2> picture{device, {n, n}};
    quern::Kernel draw = [&] {
      for (auto [i, j] : picture) {
        auto dye = clamp(fluids.dye(n - 1 - i, j), 0.0f, 1.0f);
        picture(i, j) = vec(0.05f + 0.95f * dye, 0.1f + 0.6f * dye * dye, 0.35f - 0.2f * dye);
      }
    };
    start();
    command.say("%d x %d cells on device %s", n, n, device.name());
    auto begin = std::chrono::steady_clock::now();
    for (int frame = 0; frame < frames; frame++) {
      draw();
      quern::write_image(command.frame(frame), picture);
      fluids.advance(steps);
      std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
      command.progress("frame %d of %d, simulated %.2f s, %.1f s elapsed", frame + 1, frames,
                       double(frame * steps) * double(setup.dt), elapsed.count());
    }
    device.synchronize();
    command.say("frames are in %s", command.folder().c_str());
  });
}
