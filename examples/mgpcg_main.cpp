// Solves -Δu = 1 in a ball, a ring or a box of the unit cube on a tree and says how long it took; the slice
// through the middle is drawn into out/mgpcg/slice.png.
#include "examples/mgpcg.h"

#include <quern/files.h>

#include <chrono>
#include <cmath>

#include "examples/command.h"

using namespace quern::lang;

namespace {

/// Is a point of the unit cube in the region?
B1 is_in(const std::string& shape, const Vec3& at) {
  Vec3 x = at - 0.5f;
  if (shape == "ball") return dot(x, x) < 0.47f * 0.47f;
  if (shape == "box") return x.x == x.x;
  F32 out = sqrt(x.x * x.x + x.y * x.y) - 0.32f;
  return out * out + x.z * x.z < 0.14f * 0.14f;
}

}  // namespace

int main(int argc, char** argv) {
  examples::Command command(
      "mgpcg", "Poisson's equation by multigrid-preconditioned conjugate gradients on a tree");
  int n = 0;
  double tolerance = 1e-12;
  std::string shape = "ball";
  examples::Mgpcg::Setup setup;
  command.option("-n", n, "elements to a side (256; on the interpreter 32)", 4, 1024);
  command.option("--shape", shape, "of the region", {"ball", "ring", "box"});
  command.option("--levels", setup.levels, "resolutions", 1, 10);
  command.option("--smoothing", setup.smoothing, "sweeps before and after a level", 1, 20);
  command.option("--tolerance", tolerance, "residual relative to the first", 1e-14, 0.1);
  return command.run(argc, argv, [&](const quern::Device& device) {
    const bool fast = device.name() != std::string("interpreter");
    if (n == 0) n = fast ? 256 : 32;
    const double h = 1.0 / n;
    quern::Tree<3> tree = examples::Mgpcg::box(device, n, setup.levels);
    auto region = tree.field<bool>();
    quern::Kernel fill = [&] {
      for (auto [i, j, k] : grid(n, n, n)) {
        Vec3 at = (vec(cast<float>(i), cast<float>(j), cast<float>(k)) + 0.5f) * float(h);
        If(is_in(shape, at)) { activate(region, i, j, k); }
      }
    };
    fill();
    examples::Mgpcg poisson(tree, h, setup);
    quern::Kernel start = [&] {
      for (auto I : poisson.f) poisson.f[I] = 1.0;
    };
    start();
    poisson.solve(tolerance, 0);  // compiles
    const auto begin = std::chrono::steady_clock::now();
    const examples::Mgpcg::Outcome outcome = poisson.solve(tolerance);
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    const double cells = double(tree.active_count());

    quern::Kernel largest = [&] {
      Var<double> most = 0;
      for (auto I : poisson.u) atomic_max(most, poisson.u[I]);
      return most;
    };
    const double most = largest();
    quern::Field<vec3, 2> picture{device, {n, n}};
    quern::Kernel draw = [&](F64 top) {
      for (auto [i, j] : picture) {
        auto x = n - 1 - i;
        F32 height = cast<float>(poisson.u(x, j, n / 2) / top);
        F32 line = height * 12.0f - floor(height * 12.0f);
        F32 shade = select(line < 0.12f, 0.75f, 1.0f);
        Vec3 warm = vec(sqrt(height), height * height, 0.45f * (1 - height) + 0.1f) * shade;
        picture(i, j) = select(is_active(region, x, j, n / 2), warm, vec(0.95f, 0.95f, 0.97f));
      }
    };
    draw(most);
    quern::write_image(command.picture("slice.png"), picture);
    command.say(
        "%s of %.0f elements in %d^3, %d levels, on device %s: %d iterations, residual %.2g",
        shape.c_str(), cells, n, setup.levels, device.name(), outcome.iterations, outcome.residual);
    command.say("%.3f s, %.1f Mcell/s, %.2f an iteration", seconds, cells / seconds * 1e-6,
                cells * outcome.iterations / seconds * 1e-6);
    if (shape == "ball")  // u = (R² - r²) / 6
      command.say("largest value %.6g; in a smooth ball %.6g", most, 0.47 * 0.47 / 6);
    command.say("%s written", command.picture("slice.png").c_str());
  });
}
