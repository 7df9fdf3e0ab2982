#pragma once
// Functions of complex numbers, in plain C++, that std::complex has none of. What a step of 1e-200
// along the imaginary axis changes them by keeps all its digits.
#include <cmath>
#include <complex>

namespace complex {

using Complex = std::complex<double>;

inline Complex rsqrt(Complex z) { return 1.0 / std::sqrt(z); }
inline Complex cbrt(Complex z) {
  return z.real() < 0 ? -std::pow(-z, 1.0 / 3) : std::pow(z, 1.0 / 3);
}
inline Complex exp2(Complex z) { return std::exp(z * std::log(2.0)); }
inline Complex expm1(Complex z) { return std::exp(z) - 1.0; }
inline Complex log1p(Complex z) { return std::log(1.0 + z); }
inline Complex log2(Complex z) { return std::log(z) / std::log(2.0); }
inline Complex hypot(Complex a, Complex b) { return std::sqrt(a * a + b * b); }
/// But for a constant, which depends on the quadrant.
inline Complex atan2(Complex y, Complex x) {
  return std::abs(x.real()) > std::abs(y.real()) ? std::atan(y / x) : -std::atan(x / y);
}
inline Complex fmod(Complex a, Complex b) { return a - b * std::trunc(a.real() / b.real()); }
inline Complex remainder(Complex a, Complex b) {
  return a - b * std::nearbyint(a.real() / b.real());
}

/// By e^(-z²) Σ 2^n z^(2n + 1) / (2n + 1)!!, for small z. (Abramowitz and Stegun, 7.1.6)
inline Complex erf(Complex z) {
  Complex term = z, sum = z;
  for (int n = 1; n < 60; n++) sum += term *= 2.0 * z * z / double(2 * n + 1);
  return 2 / std::sqrt(std::acos(-1.0)) * std::exp(-z * z) * sum;
}
/// By e^(-z²) / (z + 1/2 / (z + 2/2 / (z + 3/2 / …))), from 2 on. (7.1.14)
inline Complex erfc_of_large(Complex z) {
  Complex fraction = z;
  for (int n = 120; n > 0; n--) fraction = z + 0.5 * n / fraction;
  return std::exp(-z * z) / (std::sqrt(std::acos(-1.0)) * fraction);
}

/// Stirling's series, from 20 on. (6.1.40)
inline Complex lgamma_of_large(Complex z) {
  const double bernoulli[] = {1. / 6, -1. / 30, 1. / 42, -1. / 30, 5. / 66, -691. / 2730, 7. / 6};
  Complex sum = (z - 0.5) * std::log(z) - z;
  for (int k = 7; k > 0; k--)
    sum += bernoulli[k - 1] / (2.0 * k * (2.0 * k - 1)) * std::pow(z, 1 - 2 * k);
  return sum + 0.5 * std::log(2 * std::acos(-1.0));
}
/// log |Γ|, shifted to where the series is good; squares, as the argument of a negative number is π.
inline Complex lgamma(Complex z) {
  Complex product = 0;
  for (; z.real() < 20; z += 1.0) product += 0.5 * std::log(z * z);
  return lgamma_of_large(z) - product;
}
inline Complex tgamma(Complex z) {
  Complex product = 1;
  for (; z.real() < 20; z += 1.0) product *= z;
  return std::exp(lgamma_of_large(z)) / product;
}

}  // namespace complex
