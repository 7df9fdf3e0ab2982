// A picture of a distance field with soft shadows and ambient occlusion.
#include "examples/raymarch.h"

#include <quern/files.h>

#include "examples/command.h"

int main(int argc, char** argv) {
  examples::Command command("raymarch", "Sphere tracing: two balls and a ring on a plane");
  int height = 480, width = 720;
  command.option("--height", height, "pixels", 1, 16384);
  command.option("--width", width, "pixels", 1, 16384);
  return command.run(argc, argv, [&](const quern::Device& device) {
    examples::Raymarch raymarch(device, height, width, {});
    raymarch.trace();
    raymarch.shade();
    quern::write_image(command.picture("raymarch.png"), raymarch.image);
    command.say("%d x %d rays on device %s; the picture is %s", width, height, device.name(),
                command.picture("raymarch.png").c_str());
  });
}
