// A block of fluid falls into a box: 3D MLS-MPM, drawn from the front.
#include "examples/mpm3d.h"

#include <quern/files.h>

#include <chrono>

#include "examples/command.h"

namespace {

/// Levels of cells of 4³ nodes; none: a dense grid.
examples::Grid<3> make_grid(const quern::Device& device, int64_t side, bool sparse) {
  if (!sparse) return {device, {side, side, side}};
  const int64_t cells = (side + 31) / 32;
  return {device, {side, side, side}, {quern::pointer(cells), quern::pointer(8), quern::dense(4)}};
}

}  // namespace

int main(int argc, char** argv) {
  examples::Command command("mpm3d", "3D MLS-MPM: a block of fluid falls into a box");
  int grid = 64, frames = 60, steps = 125, width = 384, room = 1;
  bool sparse = false;
  command.option("--grid", grid, "cells to a length of 1; a quarter as many particles", 16, 512);
  command.option("--room", room, "lengths of the box's side", 1, 64);
  command.flag("--sparse", sparse,
               "the grid on a tree: memory where the fluid is, made anew each substep");
  command.option("--frames", frames, "frames written", 1, 100000);
  command.option("--steps", steps, "substeps of 80 us a frame", 1, 100000);
  command.option("--width", width, "pixels of a frame's side", 16, 8192);
  return command.run(argc, argv, [&](const quern::Device& device) {
    const float centre = float(room) / 2 - 0.5f;
    const examples::Grid<3> nodes = make_grid(device, int64_t(grid) * room, sparse);
    examples::Mpm3d mpm(
        nodes, examples::Mpm3d::block(grid, {centre + 0.15f, 0.15f, centre + 0.15f}), grid);
    command.say("%lld particles on device %s", static_cast<long long>(mpm.size()), device.name());
    auto start = std::chrono::steady_clock::now();
    for (int frame = 0; frame < frames; frame++) {
      quern::write_image(command.frame(frame), mpm.draw(width, float(room)));
      mpm.advance(steps);
      std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
      command.progress("frame %d of %d, simulated %.3f s, %.1f s elapsed", frame + 1, frames,
                       double(frame * steps) * double(examples::Mpm3d::dt), elapsed.count());
    }
    device.synchronize();
    if (nodes.tree()) command.say("%s", nodes.tree()->describe().c_str());
    command.say("frames are in %s", command.folder().c_str());
  });
}
