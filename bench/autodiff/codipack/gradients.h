#pragma once
// Gradients of the problems of inputs.h by CoDiPack (Sagebaum, Albring & Gauger, "High-performance
// derivative computations using CoDiPack", ACM Transactions on Mathematical Software 45, 2019), which
// records what expressions of overloaded operators do.
#include <functional>

#include "bench/autodiff/inputs.h"

namespace bench::codipack {

/// From `at` to the gradient there. Records each time, as programs do whose control flow may change.
using Gradient = std::function<void(const double* at, double* gradient)>;

/// Empty without CoDiPack. What `in` points at outlives them.
Gradient llsq(const Llsq& in);
Gradient log_sum_exp(const LogSumExp& in);
Gradient k_means(const KMeans& in);
Gradient gmm(const Gmm& in);
Gradient determinant(const Determinant& in);
Gradient ode(const Ode& in);
Gradient bundle(const Bundle& in);
Gradient lstm(const Lstm& in);

}  // namespace bench::codipack
