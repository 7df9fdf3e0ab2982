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
  command.options.add_option("--image", picture, "PNG or JPEG")->capture_default_str();
  command.options.add_option("--radius", radius, "pixels to each side")
      ->capture_default_str()
      ->check(CLI::Range(0, 50));
  command.options.add_option("--sigma-distance", sigma_distance, "in pixels")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command.options.add_option("--sigma-grey", sigma_grey, "in steps of 256")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
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
