// The recurrent network, with its gradient. Bits only meet in the likelihood: eight of them are
// side by side in a vector, which one thread takes through all characters.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#include "bench/autodiff/reference.h"
#include "bench/wide.h"

namespace bench::reference {

namespace {

constexpr int lanes = int(lanes_of<double>);

double gate(double v) { return 1 / (1 + std::exp(-v)); }
/// The hyperbolic tangent; libmvec's takes thrice as long as its exp.
double bend(double v) { return 1 - 2 / (1 + std::exp(2 * v)); }

/// What a layer computes of one character, each of the bits of a vector. What goes out, and is
/// hidden until the next character, is let_out · bent.
enum Kind { forget, let_in, let_out, change, cell, bent, kinds };
constexpr int of_round = kinds * lanes;

/// One layer's round. `x` is what comes in, and then what goes out; `now` may be `before`.
void round(const double* weight, double* x, const double* before, double* now) {
  const double* bias = weight + 4 * lanes;
#pragma omp simd
  for (int i = 0; i < lanes; i++) {
    const double hidden = before[let_out * lanes + i] * before[bent * lanes + i];
    const double f = gate(x[i] * weight[i] + bias[i]);
    const double in = gate(hidden * weight[lanes + i] + bias[lanes + i]);
    const double out = gate(x[i] * weight[2 * lanes + i] + bias[2 * lanes + i]);
    const double by = bend(hidden * weight[3 * lanes + i] + bias[3 * lanes + i]);
    const double next = before[cell * lanes + i] * f + in * by, end = bend(next);
    now[forget * lanes + i] = f;
    now[let_in * lanes + i] = in;
    now[let_out * lanes + i] = out;
    now[change * lanes + i] = by;
    now[cell * lanes + i] = next;
    now[bent * lanes + i] = end;
    x[i] = out * end;
  }
}

/// One layer's round, back: from the adjoints of what went out, of hidden and of cell to those of
/// what came in, which was `x`, and those before.
void back(const double* weight, const double* x, const double* before, const double* now,
          double* of_hidden, double* of_cell, double* of_x, double* of_weight) {
  double* of_bias = of_weight + 4 * lanes;
#pragma omp simd
  for (int i = 0; i < lanes; i++) {
    const double hidden = before[let_out * lanes + i] * before[bent * lanes + i];
    const double f = now[forget * lanes + i], in = now[let_in * lanes + i];
    const double out = now[let_out * lanes + i], by = now[change * lanes + i];
    const double end = now[bent * lanes + i];
    const double of_h = of_hidden[i] + of_x[i];
    const double of_c = of_cell[i] + of_h * out * (1 - end * end);
    const double of_out = of_h * end * out * (1 - out);
    const double of_f = of_c * before[cell * lanes + i] * f * (1 - f);
    const double of_in = of_c * by * in * (1 - in);
    const double of_by = of_c * in * (1 - by * by);
    of_weight[i] += of_f * x[i];
    of_weight[lanes + i] += of_in * hidden;
    of_weight[2 * lanes + i] += of_out * x[i];
    of_weight[3 * lanes + i] += of_by * hidden;
    of_bias[i] += of_f;
    of_bias[lanes + i] += of_in;
    of_bias[2 * lanes + i] += of_out;
    of_bias[3 * lanes + i] += of_by;
    of_cell[i] = of_c * f;
    of_x[i] = of_f * weight[i] + of_out * weight[2 * lanes + i];
    of_hidden[i] = of_in * weight[lanes + i] + of_by * weight[3 * lanes + i];
  }
}

/// Everything by vectors of bits, then as rows of a vector. Bits beyond the last one are 0.
struct Network {
  const Lstm& in;
  const int vectors = (in.bits + lanes - 1) / lanes, rounds = in.characters - 1,
            rows = 8 * in.layers + 3, of_step = in.layers * of_round;
  std::vector<double> at, text, state;
  std::vector<double> top;       ///< what the last layer puts out
  std::vector<double> of_guess;  ///< adjoints

  Network(const Lstm& lstm, const double* from)
      : in(lstm),
        at(spread(from, rows)),
        text(spread(in.text, in.characters)),
        state(spread(in.state, 2 * in.layers)),
        top(size_t(vectors * rounds * lanes)) {
    // Guesses of bits that are none have the likelihood exp(-700).
    for (int i = in.bits; i < vectors * lanes; i++)
      at[size_t(((i / lanes + 1) * rows - 1) * lanes + i % lanes)] = -700;
  }

  std::vector<double> spread(const double* from, int count) const {
    std::vector<double> all(size_t(vectors * count * lanes), 0.0);
    for (int first = 0; first < in.bits; first += lanes)
      for (int row = 0; row < count; row++)
        for (int i = first; i < std::min(first + lanes, in.bits); i++)
          all[size_t(first * count + row * lanes + i - first)] = from[row * in.bits + i];
    return all;
  }

  const double* weights(int vector) const { return &at[size_t(vector * rows * lanes)]; }
  const double* input(int vector) const { return weights(vector) + (rows - 3) * lanes; }
  const double* character(int vector, int t) const {
    return &text[size_t((vector * in.characters + t) * lanes)];
  }
  size_t of_round_at(int vector, int t) const { return size_t((vector * rounds + t) * lanes); }

  /// A vector's bits through all layers and characters. `now` gets the state of all layers
  /// before them, and after each character that behind it, `step` further on.
  void read(int vector, double* now, int step) {
    for (int l = 0; l < in.layers; l++)
      for (int i = 0; i < lanes; i++) {
        const double* from = &state[size_t((vector * in.layers + l) * 2 * lanes)];
        now[l * of_round + let_out * lanes + i] = from[i];
        now[l * of_round + bent * lanes + i] = 1;
        now[l * of_round + cell * lanes + i] = from[lanes + i];
      }
    for (int t = 0; t < rounds; t++, now += step) {
      double x[lanes];
      for (int i = 0; i < lanes; i++) x[i] = character(vector, t)[i] * input(vector)[i];
      for (int l = 0; l < in.layers; l++)
        round(weights(vector) + 8 * l * lanes, x, now + l * of_round, now + step + l * of_round);
      std::memcpy(&top[of_round_at(vector, t)], x, sizeof x);
    }
  }

  /// The logarithm of the likelihood of the character behind the one at `t`; the adjoints of guesses
  /// if there is a place for them.
  double measure(int t) {
    double sum = 2, right = 0, ones = 0;
    double power[lanes];
    for (int v = 0; v < vectors; v++) {
      const double *x = &top[of_round_at(v, t)], *weight = input(v) + lanes;
      const double *next = character(v, t + 1), *bias = weight + lanes;
      double* keep = of_guess.empty() ? power : &of_guess[of_round_at(v, t)];
#pragma omp simd reduction(+ : sum, right, ones)
      for (int i = 0; i < lanes; i++) {
        const double guess = x[i] * weight[i] + bias[i];
        keep[i] = std::exp(guess);
        sum += keep[i];
        right += next[i] * guess;
        ones += next[i];
      }
    }
    if (!of_guess.empty()) {
      const double share = ones / sum, scale = -1 / in.guesses();
      for (int v = 0; v < vectors; v++) {
        double* of = &of_guess[of_round_at(v, t)];
        const double* next = character(v, t + 1);
        for (int i = 0; i < lanes; i++) of[i] = scale * (next[i] - share * of[i]);
      }
    }
    return right - ones * std::log(sum);
  }

  /// A vector's derivatives, from the last character to the first.
  void differentiate(int vector, const double* now, double* gradient) const {
    std::vector<double> of(size_t(rows * lanes), 0.0), of_state(size_t(2 * in.layers * lanes), 0.0);
    double *of_in = &of[size_t((rows - 3) * lanes)], *of_out = of_in + lanes,
           *of_bias = of_out + lanes;
    const double *in_weight = input(vector), *out_weight = in_weight + lanes;
    for (int t = rounds - 1; t >= 0; t--) {
      const double *of_this = &of_guess[of_round_at(vector, t)], *bits = character(vector, t),
                   *last = &top[of_round_at(vector, t)];
      double of_x[lanes], x[lanes];
#pragma omp simd
      for (int i = 0; i < lanes; i++) {
        of_out[i] += of_this[i] * last[i];
        of_bias[i] += of_this[i];
        of_x[i] = of_this[i] * out_weight[i];
      }
      for (int l = in.layers - 1; l >= 0; l--) {
        const double *before = now + t * of_step + l * of_round, *after = before + of_step;
        const double* below = after - of_round;
#pragma omp simd
        for (int i = 0; i < lanes; i++)
          x[i] = l == 0 ? bits[i] * in_weight[i]
                        : below[let_out * lanes + i] * below[bent * lanes + i];
        double* of_hidden = &of_state[size_t(2 * l * lanes)];
        back(weights(vector) + 8 * l * lanes, x, before, after, of_hidden, of_hidden + lanes, of_x,
             &of[size_t(8 * l * lanes)]);
      }
#pragma omp simd
      for (int i = 0; i < lanes; i++) of_in[i] += of_x[i] * bits[i];
    }
    const int first = vector * lanes, count = std::min(lanes, in.bits - first);
    for (int row = 0; row < rows; row++)
      std::copy_n(&of[size_t(row * lanes)], count, gradient + row * in.bits + first);
  }
};

}  // namespace

double lstm(const Lstm& in, const double* at) {
  Network network(in, at);
  double total = 0;
#pragma omp parallel
  {
    std::vector<double> now(size_t(network.of_step));
#pragma omp for
    for (int v = 0; v < network.vectors; v++) network.read(v, now.data(), 0);
#pragma omp for reduction(+ : total)
    for (int t = 0; t < network.rounds; t++) total += network.measure(t);
  }
  return -total / in.guesses();
}

double lstm_gradient(const Lstm& in, const double* at, double* gradient) {
  Network network(in, at);
  const size_t of_vector = size_t(network.of_step) * size_t(in.characters);
  network.of_guess.resize(network.top.size());
  // States before the first character and behind each, of all layers.
  const auto kept = std::make_unique_for_overwrite<double[]>(size_t(network.vectors) * of_vector);
  double total = 0;
#pragma omp parallel
  {
#pragma omp for schedule(static)
    for (int v = 0; v < network.vectors; v++)
      network.read(v, &kept[size_t(v) * of_vector], network.of_step);
#pragma omp for reduction(+ : total)
    for (int t = 0; t < network.rounds; t++) total += network.measure(t);
#pragma omp for schedule(static)
    for (int v = 0; v < network.vectors; v++)
      network.differentiate(v, &kept[size_t(v) * of_vector], gradient);
  }
  return -total / in.guesses();
}

}  // namespace bench::reference
