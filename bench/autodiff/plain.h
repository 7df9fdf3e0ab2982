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

/// Of the rows from `row` on and the columns that are `left`.
template <class T>
T minor(const T* at, int rows, int row, const std::vector<int>& left) {
  if (left.size() == 1) return at[row * rows + left[0]];
  T sum = 0;
  for (size_t j = 0; j < left.size(); j++) {
    std::vector<int> others = left;
    others.erase(others.begin() + int(j));
    const T part = at[row * rows + left[j]] * minor(at, rows, row + 1, others);
    if (j % 2 == 0)
      sum += part;
    else
      sum -= part;
  }
  return sum;
}

template <class T>
T determinant(const Determinant& in, const T* at) {
  std::vector<int> all;
  for (int j = 0; j < in.rows; j++) all.push_back(j);
  return minor(at, in.rows, 0, all);
}

template <class T>
T ode(const Ode& in, const T* at) {
  const size_t n = size_t(in.unknowns);
  const double h = 2.0 / in.steps;
  std::vector<T> y(n), k1(n), k2(n), k3(n), k4(n);
  for (T& v : y) v = 0;
  for (int s = 0; s < in.steps; s++) {
    auto slopes = [&](std::vector<T>& k, const std::vector<T>& last, double by) {
      k[0] = at[0];
      for (size_t i = 1; i < n; i++) k[i] = at[i] * (y[i - 1] + by * last[i - 1]);
    };
    k1[0] = at[0];
    for (size_t i = 1; i < n; i++) k1[i] = at[i] * y[i - 1];
    slopes(k2, k1, h / 2);
    slopes(k3, k2, h / 2);
    slopes(k4, k3, h);
    for (size_t i = 0; i < n; i++) y[i] += h / 6 * (k1[i] + 2.0 * k2[i] + 2.0 * k3[i] + k4[i]);
  }
  T sum = 0;
  for (const T& v : y) sum += v;
  return sum;
}

template <class T>
T bundle(const Bundle& in, const T* at) {
  using std::cos, std::sin, std::sqrt;
  T sum = 0;
  for (int o = 0; o < in.observations; o++) {
    const T *camera = at + in.camera[o] * Bundle::of_camera,
            *point = at + in.places() + 3 * in.point[o], &weight = at[in.weights() + o];
    T axis[3], x[3], y[3];
    const T angle = sqrt(camera[0] * camera[0] + camera[1] * camera[1] + camera[2] * camera[2]);
    const T c = cos(angle), s = sin(angle);
    for (int k = 0; k < 3; k++) {
      axis[k] = camera[k] / angle;
      x[k] = point[k] - camera[3 + k];
    }
    const T along = (axis[0] * x[0] + axis[1] * x[1] + axis[2] * x[2]) * (1.0 - c);
    for (int k = 0; k < 3; k++) {
      const int i = (k + 1) % 3, j = (k + 2) % 3;
      y[k] = x[k] * c + (axis[i] * x[j] - axis[j] * x[i]) * s + axis[k] * along;
    }
    const T u = y[0] / y[2], v = y[1] / y[2], square = u * u + v * v;
    const T stretch = camera[6] * (1.0 + camera[9] * square + camera[10] * square * square);
    const T off_u = weight * (u * stretch + camera[7] - in.seen[2 * o]);
    const T off_v = weight * (v * stretch + camera[8] - in.seen[2 * o + 1]);
    const T off_w = 1.0 - weight * weight;
    sum += 0.5 * (off_u * off_u + off_v * off_v + off_w * off_w);
  }
  return sum;
}

template <class T>
T lstm(const Lstm& in, const T* at) {
  using std::exp, std::log, std::tanh;
  const int b = in.bits;
  std::vector<T> state(size_t(2 * in.layers * b)), passed(state.begin(), state.begin() + b);
  for (size_t k = 0; k < state.size(); k++) state[k] = in.state[k];
  const T* extra = at + in.input();
  auto gate = [](const T& v) -> T { return 1.0 / (1.0 + exp(-v)); };
  T total = 0;
  for (int t = 0; t + 1 < in.characters; t++) {
    for (int i = 0; i < b; i++) passed[size_t(i)] = in.text[t * b + i] * extra[i];
    for (int layer = 0; layer < in.layers; layer++) {
      const T *weight = at + layer * in.of_layer(), *bias = weight + 4 * b;
      for (int i = 0; i < b; i++) {
        T &hidden = state[size_t(2 * layer * b + i)],
          &cell = state[size_t((2 * layer + 1) * b + i)], &x = passed[size_t(i)];
        const T forget = gate(x * weight[i] + bias[i]);
        const T in_gate = gate(hidden * weight[b + i] + bias[b + i]);
        const T out_gate = gate(x * weight[2 * b + i] + bias[2 * b + i]);
        const T change = tanh(hidden * weight[3 * b + i] + bias[3 * b + i]);
        cell = cell * forget + in_gate * change;
        hidden = out_gate * tanh(cell);
        x = hidden;
      }
    }
    T sum = 2;
    for (int i = 0; i < b; i++) {
      passed[size_t(i)] = passed[size_t(i)] * extra[b + i] + extra[2 * b + i];
      sum += exp(passed[size_t(i)]);
    }
    const T all = log(sum);
    for (int i = 0; i < b; i++) total += in.text[(t + 1) * b + i] * (passed[size_t(i)] - all);
  }
  return -total / in.guesses();
}

}  // namespace bench::plain
