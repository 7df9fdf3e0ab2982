// The demonstration: MLS-MPM from a picture to pictures.
#include "examples/mpm2d.h"

#include <quern/files.h>

#include <chrono>

#include "examples/command.h"

int main(int argc, char** argv) {
  examples::Command command(
      "mpm2d",
      "2D MLS-MPM: the red pixels of a picture are elastic, the blue ones fluid, the white ones "
      "snow");
  std::string picture = QUERN_EXAMPLE_DATA "/materials.png";
  int frames = 90, steps = 30, width = 512;
  bool sparse = false;
  command.option("--image", picture, "PNG or JPEG of the initial shapes");
  command.option("--frames", frames, "frames written", 1, 100000);
  command.option("--steps", steps, "steps of 0.1 ms a frame", 1, 100000);
  command.option("--width", width, "pixels of a frame's side", 16, 8192);
  command.flag("--sparse", sparse, "the grid on a tree: memory where particles are");
  return command.run(argc, argv, [&](const quern::Device& device) {
    const examples::Grid<2> dense(device, {128, 128}),
        on_tree(device, {128, 128}, {quern::pointer(16), quern::dense(8)});
    examples::Mpm2d mpm(sparse ? on_tree : dense,
                        examples::particles_from(quern::read_image<uint8_t, 3>(device, picture)));
    command.say("%d particles on device %s", mpm.particles(), device.name());
    auto start = std::chrono::steady_clock::now();
    for (int frame = 0; frame < frames; frame++) {
      quern::write_image(command.frame(frame), mpm.draw(width));
      mpm.advance(steps);
      std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
      command.progress("frame %d of %d, simulated %.3f s, %.1f s elapsed", frame + 1, frames,
                       double(frame * steps) * double(mpm.dt()), elapsed.count());
    }
    device.synchronize();
    command.say("frames are in %s", command.folder().c_str());
  });
}
