#pragma once
// What the mains of the programs that optimise share: the iterations, and the picture of the loss.
#include <quern/files.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "examples/command.h"
#include "examples/differentiable/loss_curve.h"

namespace examples {

class Optimisation {
 public:
  Optimisation(const std::string& name, const std::string& description, int iterations)
      : command(name, description), iterations_(iterations) {
    command.option("--iterations", iterations_, "of the optimiser", 1, 1000000);
  }

  Command command;

  /// Runs loss_and_gradient() and step() in turn; losses go to loss.png. Says what both directions
  /// cost.
  template <class Program>
  void descend(const quern::Device& device, Program& program) {
    std::vector<double> losses;
    const auto start = std::chrono::steady_clock::now();
    for (int k = 0; k < iterations_; k++) {
      losses.push_back(program.loss_and_gradient());
      program.step();
      const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
      command.progress("iteration %d of %d, loss %.6g, %.1f s elapsed", k + 1, iterations_,
                       losses.back(), elapsed.count());
    }
    const std::string file = command.picture("loss.png");
    quern::write_image(file, loss_curve(device, losses));
    command.say("loss %.6g, then %.6g: %s", losses.front(), losses.back(), file.c_str());
    command.say("%.4g ms a loss, %.4g ms with its gradient", least_ms([&] { program.loss(); }),
                least_ms([&] { program.loss_and_gradient(); }));
  }

 private:
  template <class F>
  static double least_ms(F run) {
    double least = 1e300;
    for (int k = 0; k < 3; k++) {
      const auto start = std::chrono::steady_clock::now();
      run();
      const std::chrono::duration<double, std::milli> taken =
          std::chrono::steady_clock::now() - start;
      least = std::min(least, taken.count());
    }
    return least;
  }
  int iterations_;
};

}  // namespace examples
