#include "bench/autodiff/codipack/gradients.h"

#include <codi.hpp>

#include "bench/autodiff/plain.h"

namespace bench::codipack {

namespace {

using Real = codi::RealReverse;

template <class F>
Gradient of(int size, F f) {
  return [=](const double* at, double* gradient) {
    Real::Tape& tape = Real::getTape();
    std::vector<Real> varied(at, at + size);
    tape.reset();
    tape.setActive();
    for (Real& v : varied) tape.registerInput(v);
    Real value = f(varied.data());
    tape.registerOutput(value);
    tape.setPassive();
    value.setGradient(1);
    tape.evaluate();
    for (int k = 0; k < size; k++) gradient[k] = varied[size_t(k)].getGradient();
  };
}

}  // namespace

Gradient llsq(const Llsq& in) {
  return of(in.coefficients, [=](const Real* x) { return plain::llsq(in, x); });
}

Gradient log_sum_exp(const LogSumExp& in) {
  return of(in.count, [=](const Real* x) { return plain::log_sum_exp(in.count, x); });
}

Gradient k_means(const KMeans& in) {
  return of(in.centroids * in.dimensions, [=](const Real* x) { return plain::k_means(in, x); });
}

Gradient gmm(const Gmm& in) {
  return of(in.size(), [=](const Real* x) { return plain::gmm(in, x); });
}

Gradient determinant(const Determinant& in) {
  return of(in.rows * in.rows, [=](const Real* x) { return plain::determinant(in, x); });
}

Gradient ode(const Ode& in) {
  return of(in.unknowns, [=](const Real* x) { return plain::ode(in, x); });
}

Gradient bundle(const Bundle& in) {
  return of(in.size(), [=](const Real* x) { return plain::bundle(in, x); });
}

Gradient lstm(const Lstm& in) {
  return of(in.size(), [=](const Real* x) { return plain::lstm(in, x); });
}

}  // namespace bench::codipack
