// Arrays that rounds read again and again before they change them.
#include <quern/autodiff.h>

#include <cmath>
#include <vector>

#include "tests/autodiff/numbers.h"
#include "tests/end_to_end/devices.h"

#include <quern/else.h>

using namespace qn::lang;

namespace {
constexpr int width = 6, rounds = 4, iterations = 3;

/// A recurrent layer: h becomes tanh(W h + x_i) + h / 10, so often; f is Σ_i Σ_r h_r². Comes back with
/// its derivatives by W, from the last round on.
double layer(const std::vector<double>& weights, const std::vector<double>& x,
             std::vector<double>& by_weight) {
  double f = 0;
  by_weight.assign(weights.size(), 0.0);
  for (int i = 0; i < iterations; i++) {
    std::vector<std::vector<double>> h = {std::vector<double>(width, 0.0)}, z;
    for (int t = 0; t < rounds; t++) {
      z.emplace_back();
      std::vector<double> next;
      for (int r = 0; r < width; r++) {
        double a = x[size_t(i)];
        for (int c = 0; c < width; c++) a += weights[size_t(r * width + c)] * h.back()[size_t(c)];
        z.back().push_back(std::tanh(a));
        next.push_back(z.back().back() + 0.1 * h.back()[size_t(r)]);
      }
      h.push_back(next);
    }
    std::vector<double> by_h;
    for (double v : h.back()) {
      f += v * v;
      by_h.push_back(2 * v);
    }
    for (int t = rounds - 1; t >= 0; t--) {
      std::vector<double> before(width, 0.0);
      for (int r = 0; r < width; r++) {
        const double out = z[size_t(t)][size_t(r)], by_a = by_h[size_t(r)] * (1 - out * out);
        before[size_t(r)] += 0.1 * by_h[size_t(r)];
        for (int c = 0; c < width; c++) {
          by_weight[size_t(r * width + c)] += by_a * h[size_t(t)][size_t(c)];
          before[size_t(c)] += by_a * weights[size_t(r * width + c)];
        }
      }
      by_h = before;
    }
  }
  return f;
}
}  // namespace

TEST_CASE("an array that a round reads in loops and then changes is logged once a round") {
  on_every_device([](const qn::Device& device) {
    std::vector<double> weights;
    for (int k = 0; k < width * width; k++) weights.push_back(std::sin(1.0 + 0.7 * k));
    const std::vector<double> at = {0.3, -0.6, 0.9};
    qn::Field<double, 2> w{device, {width, width}};
    w.copy_from(weights);
    auto x = numbers(device, at);
    qn::Field<double, 0> f{device};
    qn::Kernel<void(I32)> run{[&](I32 n) {
      for (auto i : x) {
        Var<Array<double, width>> h, z;
        for (auto t : range(n)) {
          (void)t;
          for (auto r : range(width)) {
            Var<double> a = x[i];
            for (auto c : range(width)) a += w(r, c) * h[c];
            z[r] = tanh(a);
          }
          for (auto r : range(width)) h[r] = z[r] + 0.1 * h[r];
        }
        for (auto r : range(width)) f() += h[r] * h[r];
      }
    }};
    std::vector<double> by_weight;
    const double expected = layer(weights, at, by_weight);
    f.fill(0);
    f.grad().fill(1);
    qn::Tape tape;
    run(rounds);
    // Of h as each round finds it, not of each of the 6 x 6 that W h reads, and of both factors of its square;
    // nobody wants z, nor what 0.1 h reads.
    CHECK(tape.memory_for(1).going_back == width * (rounds + 2) * iterations * 8);
    CHECK(f.at({}) == Approx(expected).epsilon(1e-12));
    tape.backward();
    for (int k = 0; k < width * width; k++)
      CHECK(w.grad().at(k / width, k % width) ==
            Approx(by_weight[size_t(k)]).epsilon(1e-10).margin(1e-14));
  });
}

TEST_CASE("a long array of which rounds read little is not copied") {
  on_every_device([](const qn::Device& device) {
    auto x = numbers(device, {0.25, 0.5});
    qn::Field<double, 0> f{device};
    qn::Kernel<void(I32)> run{[&](I32 inner) {
      for (auto i : x) {
        Var<Array<double, 512>> h;
        for (auto t : range(100)) {
          Var<double> a = x[i];
          for (auto r : range(inner))
            for (auto c : range(inner)) a += h[(r + c) % 512] * x[i];
          h[0] = 0.5 * a + 0.001 * cast<double>(t);
        }
        f() += h[0];
      }
    }};
    f.fill(0);
    f.grad().fill(1);
    x.grad().fill(0);
    qn::Tape tape;
    run(1);
    CHECK(tape.memory_for(1).going_back < 16 * 1024);
    tape.backward();
    const double at[] = {0.25, 0.5};
    for (int i = 0; i < 2; i++) {  // h = (x + h x) / 2 + t / 1000, with its slope
      double h = 0, slope = 0;
      for (int t = 0; t < 100; t++) {
        slope = 0.5 * (1 + h + slope * at[i]);
        h = 0.5 * (at[i] + h * at[i]) + 0.001 * t;
      }
      CHECK(x.grad().at(i) == Approx(slope).epsilon(1e-12));
    }
  });
}
