// Draws a Julia set into out/julia/julia.png.
#include <quern/files.h>

#include "examples/command.h"
#include "examples/programs.h"

using namespace quern::lang;

int main(int argc, char** argv) {
  examples::Command command("julia", "The Julia set of z² + c");
  int n = 512, limit = 100;
  float re = -0.8f, im = 0.156f;
  command.option("--width", n, "pixels to a side", 16, 16384);
  command.option("--limit", limit, "most rounds", 1, 10000);
  command.option("--re", re, "real part of c");
  command.option("--im", im, "imaginary part of c");
  return command.run(argc, argv, [&](const quern::Device& device) {
    quern::Field<int, 2> rounds{device, {n, n}};
    rounds.copy_from(examples::julia({device, {n, n}}, re, im, limit));
    quern::Field<quern::Vec<float, 3>, 2> picture{device, {n, n}};
    quern::Kernel colour = [&] {
      for (auto I : picture) {
        auto k = cast<float>(rounds[I]) / float(limit);
        picture[I] = vec(k, k * k, 1 - 0.6f * k);
      }
    };
    colour();
    quern::write_image(command.picture("julia.png"), picture);
    command.say("%s written", command.picture("julia.png").c_str());
  });
}
