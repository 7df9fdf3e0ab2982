// A photograph smoothed without blurring its edges: out/bilateral/result.png.
#include "examples/bilateral.h"

#include <quern/files.h>

#include "examples/command.h"

int main(int argc, char** argv) {
  examples::Command command("bilateral",
                            "The bilateral filter: smooths a picture, keeps its edges");
  std::string picture = QUERN_EXAMPLE_DATA "/camera.png";
  int radius = 4;
  float sigma_distance = 3, sigma_grey = 30;
  command.option("--image", picture, "PNG or JPEG");
  command.option("--radius", radius, "pixels to each side", 0, 50);
  command.option("--sigma-distance", sigma_distance, "in pixels", 1e-6f, 1e6f);
  command.option("--sigma-grey", sigma_grey, "in steps of 256", 1e-6f, 1e6f);
  return command.run(argc, argv, [&](const quern::Device& device) {
    examples::Grey grey = quern::read_image(device, picture);
    examples::Grey result{device, {grey.shape(0), grey.shape(1)}};
    examples::bilateral(radius, sigma_distance, sigma_grey)(grey, result);
    quern::write_image(command.picture("result.png"), result);
    command.say("%lld x %lld pixels on device %s: %s written",
                static_cast<long long>(grey.shape(1)), static_cast<long long>(grey.shape(0)),
                device.name(), command.picture("result.png").c_str());
  });
}
