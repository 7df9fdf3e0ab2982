#pragma once
// A function and its gradient, by Quern and by others.
#include <functional>
#include <string>
#include <vector>

#include "bench/autodiff/adolc/gradients.h"
#include "bench/autodiff/codipack/gradients.h"
#include "bench/harness.h"

namespace bench {

struct Problem {
  std::string name, size;
  double bytes = 0, flops = 0;  ///< of the function
  std::vector<double> at = {};
  /// Quern's, which wait for the device; the latter leaves the gradient where `gradient` finds it.
  std::function<double()> value = {}, value_and_gradient = {};
  std::function<std::vector<double>()> gradient = {};
  std::function<double(const double* at)> by_hand = {};
  std::function<double(const double* at, double* gradient)> gradient_by_hand = {};
  adolc::Gradient adolc = {};  ///< may be empty, as the next one
  codipack::Gradient codipack = {};
};

/// How far the gradients of Quern, by hand and by tools are from each other at most, relative to the
/// largest of the derivatives; likewise values, relative to themselves. NaN where one is.
double disagreement(const Problem& problem);
/// How many times its function Quern's gradient takes, and how many that by hand.
struct Ratios {
  double quern = 0, hand = 0;
};
/// Measures functions and gradients in turns; ratios are of least times, as what else the machine does
/// only adds. Throws Error where the disagreement is above 1e-9.
Ratios measure(Report& report, const Problem& problem);

/// Sizes: those that are measured, or small ones, which tests take.
enum class Size { usual, small };
using Problems = std::vector<std::function<Problem(const quern::Device&, Size)>>;
Problem llsq(const quern::Device& device, Size size);
Problem log_sum_exp(const quern::Device& device, Size size);
Problem k_means(const quern::Device& device, Size size);
Problem gmm(const quern::Device& device, Size size);
Problem determinant(const quern::Device& device, Size size);
Problem ode(const quern::Device& device, Size size);
Problem bundle(const quern::Device& device, Size size);
Problem lstm(const quern::Device& device, Size size);
/// All of these, which are GradBench's.
const Problems& problems();

Problem layer(const quern::Device& device, Size size);
Problem convolution(const quern::Device& device, Size size);
/// What networks are made of.
const Problems& layers();

/// Numbers that are evenly distributed in [low, high), the same in every run.
std::vector<double> even_numbers(size_t count, double low, double high, uint32_t seed);

}  // namespace bench
