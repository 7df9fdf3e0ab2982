#pragma once
// Numbers with derivatives by N inputs: what programs are checked against, in plain C++.
#include <array>
#include <cmath>

template <int N>
struct Dual {
  double v = 0;
  std::array<double, size_t(N)> d = {};

  Dual() = default;
  Dual(double value) : v(value) {}
  /// The K-th input.
  static Dual input(double value, int k) {
    Dual x(value);
    x.d[size_t(k)] = 1;
    return x;
  }
  /// f(x), given f's value there and its derivative.
  friend Dual chain(const Dual& x, double value, double slope) {
    Dual y(value);
    for (size_t k = 0; k < size_t(N); k++) y.d[k] = slope * x.d[k];
    return y;
  }
  friend Dual operator+(Dual a, const Dual& b) {
    a.v += b.v;
    for (size_t k = 0; k < size_t(N); k++) a.d[k] += b.d[k];
    return a;
  }
  friend Dual operator-(const Dual& a) { return chain(a, -a.v, -1); }
  friend Dual operator-(const Dual& a, const Dual& b) { return a + -b; }
  friend Dual operator*(const Dual& a, const Dual& b) {
    Dual c(a.v * b.v);
    for (size_t k = 0; k < size_t(N); k++) c.d[k] = a.d[k] * b.v + a.v * b.d[k];
    return c;
  }
  friend Dual operator/(const Dual& a, const Dual& b) {
    return a * chain(b, 1 / b.v, -1 / (b.v * b.v));
  }
  Dual& operator+=(const Dual& b) { return *this = *this + b; }
  Dual& operator-=(const Dual& b) { return *this = *this - b; }
  friend bool operator<(const Dual& a, const Dual& b) { return a.v < b.v; }
  friend bool operator>(const Dual& a, const Dual& b) { return a.v > b.v; }

  friend Dual sqrt(const Dual& x) { return chain(x, std::sqrt(x.v), 0.5 / std::sqrt(x.v)); }
  friend Dual exp(const Dual& x) { return chain(x, std::exp(x.v), std::exp(x.v)); }
  friend Dual sin(const Dual& x) { return chain(x, std::sin(x.v), std::cos(x.v)); }
  friend Dual cos(const Dual& x) { return chain(x, std::cos(x.v), -std::sin(x.v)); }
  friend Dual tanh(const Dual& x) {
    const double t = std::tanh(x.v);
    return chain(x, t, 1 - t * t);
  }
  friend Dual min(const Dual& a, const Dual& b) { return b < a ? b : a; }
  friend Dual max(const Dual& a, const Dual& b) { return a < b ? b : a; }
};
