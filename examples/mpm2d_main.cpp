// The demonstration: MLS-MPM from a picture to pictures.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <filesystem>

#include "examples/mpm2d.h"

int main(int argc, char** argv) {
  CLI::App app{
      "2D MLS-MPM: the red pixels of a picture are elastic, the blue ones fluid, the white ones "
      "snow"};
  std::string picture = QUERN_EXAMPLE_DATA "/materials.png", out = "out/mpm2d", device_name;
  int frames = 90, steps = 30, width = 512;
  app.add_option("--image", picture, "PNG or JPEG of the initial shapes")->capture_default_str();
  app.add_option("--out", out, "folder for the frames")->capture_default_str();
  app.add_option("--frames", frames, "frames written")
      ->capture_default_str()
      ->check(CLI::Range(1, 100000));
  app.add_option("--steps", steps, "steps of 0.1 ms a frame")
      ->capture_default_str()
      ->check(CLI::Range(1, 100000));
  app.add_option("--width", width, "pixels of a frame's side")
      ->capture_default_str()
      ->check(CLI::Range(16, 8192));
  app.add_option("--device", device_name,
                 "cpu, vulkan, … (else QUERN_DEVICE, else the best present)");
  CLI11_PARSE(app, argc, argv);
  try {
    quern::Device device =
        device_name.empty() ? quern::Device() : quern::Device(device_name.c_str());
    examples::Mpm2d mpm(device, examples::particles_from(examples::read_image(picture)));
    std::filesystem::create_directories(out);
    std::printf("%d particles on device %s\n", mpm.particles(), device.name());
    auto start = std::chrono::steady_clock::now();
    for (int frame = 0; frame < frames; frame++) {
      char name[32];
      std::snprintf(name, sizeof name, "/frame_%04d.png", frame);
      examples::write_png(out + name, mpm.draw(width));
      mpm.advance(steps);
      double seconds =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      std::printf("\rframe %d of %d, simulated %.2f s, %.1f s elapsed", frame + 1, frames,
                  double(frame * steps) * double(mpm.dt()), seconds);
      std::fflush(stdout);
    }
    device.synchronize();
    std::printf("\nframes are in %s\n", out.c_str());
  } catch (const std::exception& e) {
    std::fprintf(stderr, "\nmpm2d: %s\n", e.what());
    return 1;
  }
}
