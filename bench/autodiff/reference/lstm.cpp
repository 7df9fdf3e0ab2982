// The recurrent network, with its gradient. In one thread: bits are side by side in vectors.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "bench/autodiff/reference.h"

namespace bench::reference {

namespace {

double gate(double v) { return 1 / (1 + std::exp(-v)); }

/// What a layer does with one character, each of all bits.
enum Kind { input, hidden_before, cell_before, forget, let_in, let_out, change, bent_cell, kinds };

/// One layer's round. `x` is what comes in, and then what goes out; `kept` may be null.
void round(const double* weight, int b, double* hidden, double* cell, double* x, double* kept) {
  const double* bias = weight + 4 * b;
#pragma omp simd
  for (int i = 0; i < b; i++) {
    const double f = gate(x[i] * weight[i] + bias[i]);
    const double in = gate(hidden[i] * weight[b + i] + bias[b + i]);
    const double out = gate(x[i] * weight[2 * b + i] + bias[2 * b + i]);
    const double by = std::tanh(hidden[i] * weight[3 * b + i] + bias[3 * b + i]);
    const double next = cell[i] * f + in * by, bent = std::tanh(next);
    if (kept) {
      kept[input * b + i] = x[i];
      kept[hidden_before * b + i] = hidden[i];
      kept[cell_before * b + i] = cell[i];
      kept[forget * b + i] = f;
      kept[let_in * b + i] = in;
      kept[let_out * b + i] = out;
      kept[change * b + i] = by;
      kept[bent_cell * b + i] = bent;
    }
    cell[i] = next;
    x[i] = hidden[i] = out * bent;
  }
}

/// `y` are the guesses of each character but the last; all that `kept` is of each character and layer.
double forward(const Lstm& in, const double* at, double* y, double* top, double* kept) {
  const int b = in.bits;
  std::vector<double> state(in.state, in.state + 2 * in.layers * b), x(size_t(in.bits));
  const double *in_weight = at + in.input(), *out_weight = in_weight + b, *bias = out_weight + b;
  double total = 0;
  for (int t = 0; t + 1 < in.characters; t++) {
    const double *text = in.text + t * b, *next = text + b;
    for (int i = 0; i < b; i++) x[size_t(i)] = text[i] * in_weight[i];
    for (int l = 0; l < in.layers; l++)
      round(at + l * in.of_layer(), b, &state[size_t(2 * l * b)], &state[size_t((2 * l + 1) * b)],
            x.data(), kept ? kept + (t * in.layers + l) * kinds * b : nullptr);
    double* guess = kept ? y + t * b : y;
    double sum = 2, right = 0, ones = 0;
#pragma omp simd reduction(+ : sum, right, ones)
    for (int i = 0; i < b; i++) {
      guess[i] = x[size_t(i)] * out_weight[i] + bias[i];
      sum += std::exp(guess[i]);
      right += next[i] * guess[i];
      ones += next[i];
    }
    if (top) std::copy(x.begin(), x.end(), top + t * b);
    total += right - ones * std::log(sum);
  }
  return -total / in.guesses();
}

/// One layer's round, back: from the adjoints of what went out, of hidden and of cell to those of
/// what came in, and those before.
void back(const double* weight, int b, const double* kept, double* of_hidden, double* of_cell,
          double* of_x, double* of_weight) {
  double* of_bias = of_weight + 4 * b;
#pragma omp simd
  for (int i = 0; i < b; i++) {
    const double x = kept[input * b + i], h = kept[hidden_before * b + i];
    const double f = kept[forget * b + i], in = kept[let_in * b + i], out = kept[let_out * b + i];
    const double by = kept[change * b + i], bent = kept[bent_cell * b + i];
    const double of_h = of_hidden[i] + of_x[i];
    const double of_c = of_cell[i] + of_h * out * (1 - bent * bent);
    const double of_out = of_h * bent * out * (1 - out);
    const double of_f = of_c * kept[cell_before * b + i] * f * (1 - f);
    const double of_in = of_c * by * in * (1 - in);
    const double of_by = of_c * in * (1 - by * by);
    of_weight[i] += of_f * x;
    of_weight[b + i] += of_in * h;
    of_weight[2 * b + i] += of_out * x;
    of_weight[3 * b + i] += of_by * h;
    of_bias[i] += of_f;
    of_bias[b + i] += of_in;
    of_bias[2 * b + i] += of_out;
    of_bias[3 * b + i] += of_by;
    of_cell[i] = of_c * f;
    of_x[i] = of_f * weight[i] + of_out * weight[2 * b + i];
    of_hidden[i] = of_in * weight[b + i] + of_by * weight[3 * b + i];
  }
}

}  // namespace

double lstm(const Lstm& in, const double* at) {
  std::vector<double> y(size_t(in.bits));
  return forward(in, at, y.data(), nullptr, nullptr);
}

double lstm_gradient(const Lstm& in, const double* at, double* gradient) {
  const int b = in.bits, all = (in.characters - 1) * b;
  std::vector<double> y(size_t(all), 0.0), top(y), kept(size_t(all * in.layers * kinds));
  const double value = forward(in, at, y.data(), top.data(), kept.data());
  std::fill(gradient, gradient + in.size(), 0.0);
  const double* out_weight = at + in.input() + b;
  double *of_in = gradient + in.input(), *of_out = of_in + b, *of_bias = of_out + b;
  std::vector<double> of_state(size_t(2 * in.layers * b), 0.0), of_x(size_t(b), 0.0);
  for (int t = in.characters - 2; t >= 0; t--) {
    const double *text = in.text + t * b, *next = text + b, *guess = &y[size_t(t * b)];
    double sum = 2, ones = 0;
#pragma omp simd reduction(+ : sum, ones)
    for (int i = 0; i < b; i++) {
      sum += std::exp(guess[i]);
      ones += next[i];
    }
    const double share = ones / sum, scale = -1 / in.guesses();
#pragma omp simd
    for (int i = 0; i < b; i++) {
      const double of_guess = scale * (next[i] - share * std::exp(guess[i]));
      of_out[i] += of_guess * top[size_t(t * b + i)];
      of_bias[i] += of_guess;
      of_x[size_t(i)] = of_guess * out_weight[i];
    }
    for (int l = in.layers - 1; l >= 0; l--)
      back(at + l * in.of_layer(), b, &kept[size_t((t * in.layers + l) * kinds * b)],
           &of_state[size_t(2 * l * b)], &of_state[size_t((2 * l + 1) * b)], of_x.data(),
           gradient + l * in.of_layer());
#pragma omp simd
    for (int i = 0; i < b; i++) of_in[i] += of_x[size_t(i)] * text[i];
  }
  return value;
}

}  // namespace bench::reference
