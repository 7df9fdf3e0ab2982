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
  const char* before_error = "";  // ends the line that shows the progress
  try {
    examples::Particles start_shape = examples::particles_from(examples::read_image(picture));
    std::error_code failure;
    std::filesystem::create_directories(out, failure);
    if (failure) throw quern::Error("cannot make the folder '" + out + "': " + failure.message());
    quern::Device device =
        device_name.empty() ? quern::Device() : quern::Device(device_name.c_str(), quern::Loc{});
    examples::Mpm2d mpm(device, start_shape);
    std::printf("%d particles on device %s\n", mpm.particles(), device.name());
    auto start = std::chrono::steady_clock::now();
    for (int frame = 0; frame < frames; frame++) {
      before_error = "\n";
      char name[32];
      std::snprintf(name, sizeof name, "/frame_%04d.png", frame);
      examples::write_png(out + name, mpm.draw(width));
      mpm.advance(steps);
      double seconds =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      std::printf("\rframe %d of %d, simulated %.3f s, %.1f s elapsed", frame + 1, frames,
                  double(frame * steps) * double(mpm.dt()), seconds);
      std::fflush(stdout);
    }
    device.synchronize();
    std::printf("\nframes are in %s\n", out.c_str());
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%smpm2d: %s\n", before_error, e.what());
    return 1;
  }
}
