// Edges of a photograph: out/edges/sobel.png and out/edges/canny.png.
#include "examples/edges.h"

#include <quern/files.h>

#include "examples/command.h"

int main(int argc, char** argv) {
  examples::Command command("edges", "Sobel's gradient and Canny's edges of a picture");
  std::string picture = QUERN_EXAMPLE_DATA "/camera.png";
  examples::Canny::Parameters parameters;
  command.option("--image", picture, "PNG or JPEG");
  command.option("--sigma", parameters.sigma, "of the Gaussian, in pixels", 0.1, 50.0);
  command.option("--low", parameters.low, "gradient that continues an edge");
  command.option("--high", parameters.high, "gradient that starts an edge");
  return command.run(argc, argv, [&](const quern::Device& device) {
    examples::Grey grey = quern::read_image(device, picture);
    examples::Grey result{device, {grey.shape(0), grey.shape(1)}};
    examples::sobel()(grey, result);
    quern::write_image(command.picture("sobel.png"), result);
    int rounds =
        examples::Canny({device, {grey.shape(0), grey.shape(1)}}, parameters)(grey, result);
    quern::write_image(command.picture("canny.png"), result);
    command.say("%lld x %lld pixels on device %s: %s and %s written (%d rounds of hysteresis)",
                static_cast<long long>(grey.shape(1)), static_cast<long long>(grey.shape(0)),
                device.name(), command.picture("sobel.png").c_str(),
                command.picture("canny.png").c_str(), rounds);
  });
}
