#pragma once
// The problems of inputs.h in plain C++ for any type of number, in one thread: what tools that
// overload operators differentiate.
#include <algorithm>
#include <cmath>
#include <vector>

#include "bench/autodiff/inputs.h"

namespace bench::plain {

template <class T>
T llsq(const Llsq& in, const T* at) {
  T sum = 0;
  for (int i = 0; i < in.points; i++) {
    const double t = -1 + i * 2.0 / (in.points - 1);
    T off = t < 0 ? -1 : t > 0 ? 1 : 0;
    double power = 1;
    for (int j = 0; j < in.coefficients; j++) {
      off -= at[j] * power;
      power *= t;
    }
    sum += off * off / 2;
  }
  return sum;
}

inline double number(double x) { return x; }
template <class T>
double number(const T& x) {
  return x.value();
}

/// The largest of them is a constant: it cancels, but for rounding, which is not small in its derivative.
template <class T>
T log_sum_exp(int count, const T* x) {
  using std::exp, std::log;
  double most = number(x[0]);
  for (int i = 1; i < count; i++) most = std::max(most, number(x[i]));
  T sum = 0;
  for (int i = 0; i < count; i++) sum += exp(x[i] - most);
  return most + log(sum);
}

template <class T>
T k_means(const KMeans& in, const T* at) {
  T sum = 0;
  for (int i = 0; i < in.points; i++) {
    T least = 0;
    for (int c = 0; c < in.centroids; c++) {
      T square = 0;
      for (int j = 0; j < in.dimensions; j++) {
        const T off = at[c * in.dimensions + j] - in.point[i * in.dimensions + j];
        square += off * off;
      }
      if (c == 0 || square < least) least = square;
    }
    sum += least;
  }
  return sum;
}

template <class T>
T gmm(const Gmm& in, const T* at) {
  using std::exp;
  const int d = in.dimensions;
  const T *mean = at + in.means(), *q = at + in.logarithms(), *below = at + in.triangles();
  std::vector<T> diagonal(size_t(in.parts * d)), start(size_t(in.parts)), term(size_t(in.parts));
  std::vector<T> off(diagonal.begin(), diagonal.begin() + d), turned(off);
  T value = 0;
  for (int c = 0; c < in.parts; c++) {
    T sum = 0, squares = 0;
    for (int j = 0; j < d; j++) {
      T& scale = diagonal[size_t(c * d + j)];
      scale = exp(q[c * d + j]);
      sum += q[c * d + j];
      squares += scale * scale;
    }
    for (int e = 0; e < in.below(); e++)
      squares += below[c * in.below() + e] * below[c * in.below() + e];
    start[size_t(c)] = at[c] + sum;
    value -= in.gamma * in.gamma * squares / 2 - in.freedom * sum;
  }
  for (int i = 0; i < in.points; i++) {
    for (int c = 0; c < in.parts; c++) {
      for (int j = 0; j < d; j++) {
        off[size_t(j)] = in.point[i * d + j] - mean[c * d + j];
        turned[size_t(j)] = diagonal[size_t(c * d + j)] * off[size_t(j)];
      }
      const T* entry = below + c * in.below();
      for (int j = 0; j < d; j++)
        for (int r = j + 1; r < d; r++) turned[size_t(r)] += *entry++ * off[size_t(j)];
      T squares = 0;
      for (int j = 0; j < d; j++) squares += turned[size_t(j)] * turned[size_t(j)];
      term[size_t(c)] = start[size_t(c)] - squares / 2;
    }
    value += log_sum_exp(in.parts, term.data());
  }
  return value - double(in.points) * log_sum_exp(in.parts, at);
}

}  // namespace bench::plain
