// Takes noise from a photograph.
#include "examples/differentiable/diff_denoise.h"

#include "examples/differentiable/optimise.h"

using namespace quern::lang;

int main(int argc, char** argv) {
  examples::Optimisation run("diff_denoise", "A photograph without its noise", 100);
  examples::DiffDenoise<float>::Setup setup;
  std::string file = QUERN_EXAMPLE_DATA "/camera.png";
  float noise = 0.1f;
  run.command.option("--image", file, "PNG or JPEG");
  run.command.option("--noise", noise, "standard deviation of what is added");
  run.command.option("--weight", setup.weight, "of total variation");
  return run.command.run(argc, argv, [&](const quern::Device& device) {
    auto seen = quern::read_image<float>(device, file);
    quern::Kernel spoil = [&] {
      for (auto I : seen) {
        F32 radius = sqrt(-2 * log(1 - random<float>()));  // by Box and Muller
        F32 turn = random<float>();
        seen[I] = seen[I] + noise * radius * cos(6.2831853f * turn);
      }
    };
    spoil();
    examples::DiffDenoise<float> program(device, seen, setup);
    run.descend(device, program);
    quern::write_image(run.command.picture("seen.png"), seen);
    quern::write_image(run.command.picture("found.png"), program.picture);
  });
}
