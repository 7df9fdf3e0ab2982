// Where there is no ADOL-C.
#include "bench/autodiff/adolc/gradients.h"

namespace bench::adolc {

Gradient llsq(const Llsq&, const std::vector<double>&) { return {}; }
Gradient log_sum_exp(const LogSumExp&, const std::vector<double>&) { return {}; }
Gradient k_means(const KMeans&, const std::vector<double>&) { return {}; }
Gradient gmm(const Gmm&, const std::vector<double>&) { return {}; }
Gradient determinant(const Determinant&, const std::vector<double>&) { return {}; }
Gradient ode(const Ode&, const std::vector<double>&) { return {}; }
Gradient bundle(const Bundle&, const std::vector<double>&) { return {}; }
Gradient lstm(const Lstm&, const std::vector<double>&) { return {}; }

}  // namespace bench::adolc
