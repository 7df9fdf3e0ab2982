// A column of water collapses in a tank: SPH, drawn from the side.
#include "examples/sph.h"

#include <quern/files.h>

#include <chrono>

#include "examples/command.h"

int main(int argc, char** argv) {
  examples::Command command("sph", "Smoothed particle hydrodynamics: a dam breaks in a tank");
  float spacing = 0.04f, seconds = 2;
  int frames = 50, width = 640;
  command.option("--spacing", spacing, "metres between particles at rest", 0.005, 0.2);
  command.option("--seconds", seconds, "simulated time", 0.01, 60.0);
  command.option("--frames", frames, "frames written", 1, 100000);
  command.option("--width", width, "pixels of a frame", 16, 8192);
  bool lists = false;
  command.flag("--lists", lists, "find neighbours by lists that grow, on a tree");
  return command.run(argc, argv, [&](const quern::Device& device) {
    using Search = examples::Sph::Search;
    examples::Sph sph(device, examples::Sph::dam_break(spacing),
                      lists ? Search::lists : Search::sorted);
    command.say("%d particles of water, %lld of walls on device %s", sph.fluid(),
                static_cast<long long>(sph.x.size() - sph.fluid()), device.name());
    const int steps = std::max(1, int(seconds / sph.dt()) / frames);
    auto start = std::chrono::steady_clock::now();
    for (int frame = 0; frame < frames; frame++) {
      sph.measure();
      quern::write_image(command.frame(frame), sph.draw(width));
      sph.advance(steps);
      std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
      command.progress("frame %d of %d, simulated %.3f s, %.1f s elapsed", frame + 1, frames,
                       double(frame * steps) * double(sph.dt()), elapsed.count());
    }
    device.synchronize();
    command.say("frames are in %s", command.folder().c_str());
  });
}
