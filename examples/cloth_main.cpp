// A sheet of cloth falls on a ball.
#include "examples/cloth.h"

#include <quern/files.h>

#include <chrono>

#include "examples/command.h"

int main(int argc, char** argv) {
  examples::Command command("cloth", "A sheet of masses and springs falls on a ball");
  int n = 96, frames = 60, width = 512;
  float seconds = 1.2f;
  command.option("--masses", n, "masses along an edge of the sheet", 4, 4096);
  command.option("--seconds", seconds, "simulated time", 0.01, 60.0);
  command.option("--frames", frames, "frames written", 1, 100000);
  command.option("--width", width, "pixels of a frame's side", 16, 8192);
  return command.run(argc, argv, [&](const quern::Device& device) {
    examples::Cloth::Setup setup;
    setup.rows = setup.columns = n;
    setup.radius = 0.25f;
    setup.damping = 0.02f;
    setup.drag = 0.5f;
    examples::Cloth cloth(device, setup, 0.35f);
    const int steps = std::max(1, int(seconds / cloth.dt()) / frames);
    command.say("%d x %d masses on device %s, %d steps of %.3g s a frame", n, n, device.name(),
                steps, double(cloth.dt()));
    auto start = std::chrono::steady_clock::now();
    for (int frame = 0; frame < frames; frame++) {
      quern::write_image(command.frame(frame), cloth.draw(width));
      cloth.advance(steps);
      std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
      command.progress("frame %d of %d, simulated %.3f s, %.1f s elapsed", frame + 1, frames,
                       double(frame * steps) * double(cloth.dt()), elapsed.count());
    }
    device.synchronize();
    command.say("frames are in %s", command.folder().c_str());
  });
}
