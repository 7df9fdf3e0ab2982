// A knot of voxels on a floor, lit by sun and sky.
#include "examples/voxels.h"

#include <quern/files.h>

#include <algorithm>
#include <chrono>

#include "examples/command.h"

int main(int argc, char** argv) {
  examples::Command command("voxels",
                            "Path tracing of voxels on a tree: a knot of triangles on a floor");
  int height = 480, width = 720, size = 256, paths = 64;
  command.option("--height", height, "pixels", 1, 16384);
  command.option("--width", width, "pixels", 1, 16384);
  command.option("--size", size, "voxels along each side of the floor", 16, 8192);
  command.option("--paths", paths, "paths through each pixel", 1, 65536);
  return command.run(argc, argv, [&](const quern::Device& device) {
    const examples::Albedo albedo = examples::knot_on_floor(device, size);
    examples::VoxelTracer::Setup setup;
    setup.eye = 0.9f * float(size) * quern::lang::vec3(0, 0.5f, 1);
    setup.target = {0, 0.14f * float(size), 0};
    examples::VoxelTracer tracer(device, albedo, height, width, setup);
    const auto start = std::chrono::steady_clock::now();
    for (int done = 0; done < paths;) {
      const int count = std::min(4, paths - done);
      tracer.trace(count);
      device.synchronize();
      done += count;
      command.progress("%d of %d paths through each pixel", done, paths);
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    quern::write_image(command.picture("voxels.png"), tracer.picture());
    command.say("%.2f million paths a second on device %s; the picture is %s",
                1e-6 * height * width * paths / seconds.count(), device.name(),
                command.picture("voxels.png").c_str());
  });
}
