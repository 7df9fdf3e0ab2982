#pragma once
// Gradients of the problems of inputs.h by ADOL-C (Walther & Griewank, "Getting started with ADOL-C",
// 2012), which records what overloaded operators do.
#include <functional>
#include <vector>

#include "bench/autodiff/inputs.h"

namespace bench::adolc {

/// From `at` to the gradient there, by a recording that was made once.
using Gradient = std::function<void(const double* at, double* gradient)>;

/// Each records at `at`; what control flow decided there is decided for all. Empty without ADOL-C.
Gradient llsq(const Llsq& in, const std::vector<double>& at);
Gradient log_sum_exp(const LogSumExp& in, const std::vector<double>& at);
Gradient k_means(const KMeans& in, const std::vector<double>& at);
Gradient gmm(const Gmm& in, const std::vector<double>& at);
Gradient determinant(const Determinant& in, const std::vector<double>& at);
Gradient ode(const Ode& in, const std::vector<double>& at);
Gradient bundle(const Bundle& in, const std::vector<double>& at);
Gradient lstm(const Lstm& in, const std::vector<double>& at);

}  // namespace bench::adolc
