// Solves Poisson's equation for a known solution and says how far it is off; the solution is drawn
// into out/poisson/solution.png.
#include "examples/poisson.h"

#include <quern/files.h>

#include <cmath>

#include "examples/command.h"

using namespace quern::lang;

int main(int argc, char** argv) {
  examples::Command command("poisson", "Poisson's equation by conjugate gradients, in one kernel");
  int n = 513;
  double tolerance = 1e-10;
  command.option("-n", n, "nodes to a side", 3, 16385);
  command.option("--tolerance", tolerance, "residual relative to the first", 1e-15, 0.1);
  return command.run(argc, argv, [&](const quern::Device& device) {
    examples::Poisson poisson({device, {n, n}});
    const double pi = 3.14159265358979324, h = 1.0 / (n - 1);
    auto exact = [&](I32 i, I32 j) {  // u = e^x sin(pi y), so -Δu = (pi² - 1) u
      return exp(h * cast<double>(j)) * sin(pi * h * cast<double>(i));
    };
    quern::Kernel start = [&] {
      for (auto [i, j] : poisson.u) {
        poisson.f(i, j) = (pi * pi - 1) * exact(i, j);
        If(i == 0 || j == 0 || i == n - 1 || j == n - 1) { poisson.u(i, j) = exact(i, j); }
      }
    };
    start();
    examples::Poisson::Outcome outcome = poisson.solve(tolerance);
    quern::Kernel largest_error = [&] {
      Var<double> worst = 0;
      for (auto [i, j] : poisson.u) atomic_max(worst, abs(poisson.u(i, j) - exact(i, j)));
      return worst;
    };
    quern::Field<float, 2> picture{device, {n, n}};
    quern::Kernel draw = [&] {
      for (auto I : picture) picture[I] = cast<float>(poisson.u[I] / std::exp(1.0));
    };
    draw();
    quern::write_image(command.picture("solution.png"), picture);
    command.say(
        "%d x %d nodes on device %s: %d iterations, residual %.2g, largest error %.3g "
        "(h² = %.3g); %s written",
        n, n, device.name(), outcome.iterations, outcome.residual, double(largest_error()), h * h,
        command.picture("solution.png").c_str());
  });
}
