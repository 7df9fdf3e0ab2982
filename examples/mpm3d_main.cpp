// A block of fluid falls into a box: 3D MLS-MPM, drawn from the front.
#include "examples/mpm3d.h"

#include <quern/files.h>

#include <chrono>

#include "examples/command.h"

int main(int argc, char** argv) {
  examples::Command command("mpm3d", "3D MLS-MPM: a block of fluid falls into a box");
  int grid = 64, frames = 60, steps = 125, width = 384;
  command.options.add_option("--grid", grid, "cells along a side; a quarter as many particles")
      ->capture_default_str()
      ->check(CLI::Range(16, 512));
  command.options.add_option("--frames", frames, "frames written")
      ->capture_default_str()
      ->check(CLI::Range(1, 100000));
  command.options.add_option("--steps", steps, "substeps of 80 us a frame")
      ->capture_default_str()
      ->check(CLI::Range(1, 100000));
  command.options.add_option("--width", width, "pixels of a frame's side")
      ->capture_default_str()
      ->check(CLI::Range(16, 8192));
  return command.run(argc, argv, [&](const quern::Device& device) {
    examples::Mpm3d mpm(device, examples::Mpm3d::block(grid), grid);
    command.say("%lld particles on device %s", static_cast<long long>(mpm.size()), device.name());
    auto start = std::chrono::steady_clock::now();
    for (int frame = 0; frame < frames; frame++) {
      quern::write_image(command.frame(frame), mpm.draw(width));
      mpm.advance(steps);
      std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
      command.progress("frame %d of %d, simulated %.3f s, %.1f s elapsed", frame + 1, frames,
                       double(frame * steps) * double(examples::Mpm3d::dt), elapsed.count());
    }
    device.synchronize();
    command.say("frames are in %s", command.folder().c_str());
  });
}
