#include "bench/autodiff/adolc/gradients.h"

#include <adolc/adolc.h>

#include "bench/autodiff/plain.h"

namespace bench::adolc {

namespace {

/// Entries of a recording that are kept in memory, not in files: more than any problem has.
constexpr unsigned operations = 1u << 25, locations = 1u << 27;

template <class F>
Gradient recorded(const std::vector<double>& at, F f) {
  static short tapes = 0;
  const short tape = ++tapes;
  trace_on(tape, 0, operations, locations, operations, operations, 1);
  std::vector<adouble> varied(at.size());
  for (size_t k = 0; k < at.size(); k++) varied[k] <<= at[k];
  double value = 0;
  f(varied.data()) >>= value;
  trace_off();
  return
      [tape, n = int(at.size())](const double* x, double* found) { ::gradient(tape, n, x, found); };
}

}  // namespace

Gradient llsq(const Llsq& in, const std::vector<double>& at) {
  return recorded(at, [&](const adouble* x) { return plain::llsq(in, x); });
}

Gradient log_sum_exp(const LogSumExp& in, const std::vector<double>& at) {
  return recorded(at, [&](const adouble* x) { return plain::log_sum_exp(in.count, x); });
}

Gradient k_means(const KMeans& in, const std::vector<double>& at) {
  return recorded(at, [&](const adouble* x) { return plain::k_means(in, x); });
}

Gradient gmm(const Gmm& in, const std::vector<double>& at) {
  return recorded(at, [&](const adouble* x) { return plain::gmm(in, x); });
}

Gradient determinant(const Determinant& in, const std::vector<double>& at) {
  return recorded(at, [&](const adouble* x) { return plain::determinant(in, x); });
}

Gradient ode(const Ode& in, const std::vector<double>& at) {
  return recorded(at, [&](const adouble* x) { return plain::ode(in, x); });
}

Gradient bundle(const Bundle& in, const std::vector<double>& at) {
  return recorded(at, [&](const adouble* x) { return plain::bundle(in, x); });
}

Gradient lstm(const Lstm& in, const std::vector<double>& at) {
  return recorded(at, [&](const adouble* x) { return plain::lstm(in, x); });
}

}  // namespace bench::adolc
