// A vortex street behind a cylinder in a channel; the vorticity is drawn, red turning left and blue
// right.
#include "examples/channel.h"

#include <quern/files.h>

#include <chrono>

#include "examples/command.h"

using namespace quern::lang;

int main(int argc, char** argv) {
  examples::Command command("channel", "Lattice Boltzmann flow past a cylinder between two plates");
  int height = 96, width = 384, frames = 60, steps = 200;
  float viscosity = 0.01f, speed = 0.12f;
  command.option("--height", height, "nodes between the plates", 8, 8192);
  command.option("--width", width, "nodes along the channel", 8, 8192);
  command.option("--viscosity", viscosity, "in lattice units", 0.001, 1.0);
  command.option("--speed", speed, "in the middle at the start (sound has 0.577)", 0.0, 0.2);
  command.option("--frames", frames, "frames written", 1, 100000);
  command.option("--steps", steps, "steps a frame", 1, 100000);
  return command.run(argc, argv, [&](const quern::Device& device) {
    const float radius = 0.1f * float(height), drag = 0.7f * speed * speed * 2 * radius;
    const float friction = 8 * viscosity * speed / float(height * height);
    examples::Channel channel(device, height, width, viscosity,
                              friction + drag / float(height * width));
    const float middle = 0.47f * float(height), from_left = 0.2f * float(width);
    for (int i = 0; i < height; i++)
      for (int j = 0; j < width; j++) {
        float y = float(i) + 0.5f - middle, x = float(j) + 0.5f - from_left;
        if (x * x + y * y < radius * radius) channel.set_solid(i, j);
      }
    channel.start(speed);

    quern::Field<quern::Vec<float, 3>, 2> picture{device, {height, width}};
    const float scale = radius / speed;
    quern::Kernel draw = [&] {
      for (auto [i, j] : picture) {
        auto up = max(i - 1, 0), down = min(i + 1, height - 1), left = max(j - 1, 0),
             right = min(j + 1, width - 1);
        const auto& v = channel.velocity;
        auto curl = scale * (v(i, right).y - v(i, left).y - v(down, j).x + v(up, j).x);
        auto red = max(curl, 0.0f), blue = max(-curl, 0.0f);
        picture(i, j) = vec(1 - blue, 1 - 0.7f * (red + blue), 1 - red);
      }
    };
    command.say("%d x %d nodes on device %s, Reynolds number %.0f", height, width, device.name(),
                double(2 * radius * speed / viscosity));
    auto start = std::chrono::steady_clock::now();
    for (int frame = 0; frame < frames; frame++) {
      channel.measure();
      draw();
      quern::write_image(command.frame(frame), picture);
      channel.advance(steps);
      std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
      command.progress("frame %d of %d, step %d, %.1f s elapsed", frame + 1, frames, frame * steps,
                       elapsed.count());
    }
    device.synchronize();
    command.say("frames are in %s", command.folder().c_str());
  });
}
