// Gradients of sums that rounds make, as those of a layer: against sums made by hand, one product
// after the other.
#include <quern/autodiff.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "tests/autodiff/numbers.h"
#include "tests/end_to_end/devices.h"

#include <quern/else.h>

using namespace qn::lang;

namespace {

template <class T = double>
std::vector<T> drawn(size_t n, unsigned seed) {
  std::mt19937 random{seed};
  std::uniform_real_distribution<double> number(-1, 1);
  std::vector<T> v(n);
  for (T& e : v) e = T(number(random));
  return v;
}

void expect_near(const char* what, const qn::Field<double, 2>& field,
                 const std::vector<double>& expected) {
  INFO(what);
  const std::vector<double> found = qn::to_vector(field);
  REQUIRE(found.size() == expected.size());
  for (size_t k = 0; k < found.size(); k++) {
    INFO("element " << k << " of " << found.size());
    CHECK(found[k] == Approx(expected[k]).epsilon(1e-12).margin(1e-13));
  }
}

/// A layer's fields, and what stands in them.
struct Layer {
  Layer(const qn::Device& device, int batch, int in, int out)
      : B(batch),
        I(in),
        O(out),
        x{device, {B, I}},
        w{device, {I, O}},
        y{device, {B, O}},
        bias{device, {O}} {
    x.copy_from(at_x), w.copy_from(at_w), bias.copy_from(at_bias), y.grad().copy_from(of_y);
    x.grad().copy_from(before_x), w.grad().copy_from(before_w);
  }
  int B, I, O;
  std::vector<double> at_x = drawn(size_t(B) * I, 1), at_w = drawn(size_t(I) * O, 2),
                      at_bias = drawn(size_t(O), 3), of_y = drawn(size_t(B) * O, 4),
                      before_x = drawn(size_t(B) * I, 5), before_w = drawn(size_t(I) * O, 6);
  qn::Field<double, 2> x, w, y;
  qn::Field<double> bias;

  /// Adjoints, of an activation with this derivative by the sum.
  template <class F>
  void expect_adjoints(const F& derivative) const {
    std::vector<double> of_x = before_x, of_w = before_w, of_bias(size_t(O), 0.0);
    for (int b = 0; b < B; b++)
      for (int o = 0; o < O; o++) {
        double s = at_bias[size_t(o)];
        for (int i = 0; i < I; i++) s += at_x[size_t(b * I + i)] * at_w[size_t(i * O + o)];
        const double t = of_y[size_t(b * O + o)] * derivative(s);
        for (int i = 0; i < I; i++) {
          of_x[size_t(b * I + i)] += t * at_w[size_t(i * O + o)];
          of_w[size_t(i * O + o)] += t * at_x[size_t(b * I + i)];
        }
        of_bias[size_t(o)] += t;
      }
    expect_near("x", x.grad(), of_x);
    expect_near("w", w.grad(), of_w);
    const std::vector<double> found = qn::to_vector(bias.grad());
    for (size_t o = 0; o < size_t(O); o++)
      CHECK(found[o] == Approx(of_bias[o]).epsilon(1e-12).margin(1e-13));
  }
};

}  // namespace

TEST_CASE("gradients of a layer are sums over what elements share") {
  on_every_device([](const qn::Device& device) {
    const auto check = [&](int B, int I, int O) {
      INFO(B << " by " << I << " by " << O);
      Layer layer{device, B, I, O};
      qn::Kernel forward = [&] {
        for (auto [b, o] : layer.y) {
          Var<double> s = layer.bias[o];
          for (auto i : range(layer.x.dim(1))) s += layer.x(b, i) * layer.w(i, o);
          layer.y(b, o) = tanh(s);
        }
      };
      qn::vjp(forward)()();
      layer.expect_adjoints([](double s) { return 1 - std::tanh(s) * std::tanh(s); });
    };
    check(5, 7, 9);
    check(1, 1, 1);
    check(3, 1, 17);
    check(1, 33, 2);
    check(0, 4, 3);
    check(4, 0, 3);
    check(4, 3, 0);
    check(900, 3, 2);  // sums over the batch go in pieces
    check(2, 3, 600);  // and so do those over outputs
  });
}

TEST_CASE("gradients of a layer whose unit is off for some") {
  on_every_device([](const qn::Device& device) {
    Layer layer{device, 20, 12, 10};
    qn::Kernel forward = [&] {
      for (auto [b, o] : layer.y) {
        Var<double> s = layer.bias[o];
        for (auto i : range(12)) s += layer.x(b, i) * layer.w(i, o);
        layer.y(b, o) = max(s, 0.0);
      }
    };
    qn::vjp(forward)()();
    layer.expect_adjoints([](double s) { return s > 0 ? 1.0 : 0.0; });
  });
}

TEST_CASE("units that are off pass on nothing, whatever their weights are") {
  on_every_device([](const qn::Device& device) {
    constexpr int B = 3, I = 4, O = 6, off = 2;
    qn::Field<double, 2> x{device, {B, I}}, w{device, {I, O}}, y{device, {B, O}};
    x.fill(1), w.fill(0.5), y.grad().fill(1);
    for (int i = 0; i < I; i++) w.set(i, off, -std::numeric_limits<double>::infinity());
    qn::Kernel forward = [&] {
      for (auto [b, o] : y) {
        Var<double> s = 0.0;
        for (auto i : range(x.dim(1))) s += x(b, i) * w(i, o);
        y(b, o) = max(s, 0.0);
      }
    };
    qn::vjp(forward)()();
    for (int b = 0; b < B; b++)
      for (int i = 0; i < I; i++) CHECK(x.grad().at(b, i) == 0.5 * (O - 1));
    for (int o = 0; o < O; o++) CHECK(w.grad().at(0, o) == (o == off ? 0 : B));
  });
}

TEST_CASE("sums of rounds that some iterations leave out, beyond the ends of fields") {
  on_every_device([](const qn::Device& device) {
    // Rounds are written out where they are few.
    for (int rounds : {40, 7}) {
      INFO(rounds << " rounds");
      Layer layer{device, 6, 5, 4};
      layer.bias.fill(0);
      qn::Kernel forward = [&] {
        for (auto [b, o] : layer.y) {
          Var<double> s = 0.0;
          for (auto i : range(rounds)) {
            If(i < 5) {
              If(b != 2) { s += layer.x(b, i) * layer.w(i, o); }
            }
          }
          layer.y(b, o) = s;
        }
      };
      qn::vjp(forward)()();
      std::vector<double> of_x = layer.before_x, of_w = layer.before_w;
      for (int b = 0; b < 6; b++)
        for (int o = 0; o < 4; o++)
          for (int i = 0; i < 5 && b != 2; i++) {
            const double t = layer.of_y[size_t(b * 4 + o)];
            of_x[size_t(b * 5 + i)] += t * layer.at_w[size_t(i * 4 + o)];
            of_w[size_t(i * 4 + o)] += t * layer.at_x[size_t(b * 5 + i)];
          }
      expect_near("x", layer.x.grad(), of_x);
      expect_near("w", layer.w.grad(), of_w);
    }
  });
}

TEST_CASE("sums to a part that may not be there") {
  on_every_device([](const qn::Device& device) {
    constexpr int n = 6, m = 5;
    qn::Field<double, 3> x{device, {2, n, m}};
    qn::Field<double, 2> w{device, {m, m}}, y{device, {n, m}};
    qn::Field<int> parts{device, {m}};
    const auto at_w = drawn(w.size(), 1), of_y = drawn(y.size(), 2);
    x.fill(1), w.copy_from(at_w), parts.fill(2);
    qn::Kernel<void(I32)> sum = [&](I32 part) {
      for (auto [i, j] : y) {
        Var<double> s = 0.0;
        for (auto a : range(m)) {
          If(part < parts[j]) { s += x(part, i, a) * w(a, j); }
        }
        y(i, j) = s;
      }
    };
    for (int part : {0, 1, 2, 2'000'000'000}) {
      INFO("part " << part);
      x.grad().fill(0), y.grad().copy_from(of_y);
      qn::vjp(sum)(part)();
      std::vector<double> expected(x.size(), 0.0);
      for (int i = 0; i < n; i++)
        for (int j = 0; j < m; j++)
          for (int a = 0; a < m && part < 2; a++)
            expected[size_t((part * n + i) * m + a)] +=
                of_y[size_t(i * m + j)] * at_w[size_t(a * m + j)];
      const auto found = qn::to_vector(x.grad());
      for (size_t k = 0; k < expected.size(); k++)
        CHECK(found[k] == Approx(expected[k]).epsilon(1e-13).margin(1e-14));
    }
  });
}

TEST_CASE("gradients of convolutions, by image and weights") {
  // Offsets are written out, rounds of constant number, of a number that a field says, and from
  // behind.
  enum Way { written, few, any, centred, bordered_by_hand };
  on_every_device([](const qn::Device& device) {
    for (Way way : {written, few, any, centred, bordered_by_hand})
      for (int h : {4, 19}) {
        INFO("way " << way << ", " << h);
        constexpr int C = 3, N = 2, A = 3, K = 2;  // channels in and out, of A by K
        const int W = 70;
        const int from = way == bordered_by_hand ? -1 : 0;
        const int rows = way == bordered_by_hand ? h : h + A - 1;
        const int columns = way == bordered_by_hand ? W : W + K - 1;
        const int first = way == centred ? -1 : 0;
        qn::Field<double, 3> image{device, {C, rows, columns}, qn::offset(0, first, first)},
            result{device, {N, h, W}};
        qn::Field<double, 4> weights{device, {N, C, A, K}};
        const auto at_image = drawn(image.size(), 1), at_weights = drawn(weights.size(), 2),
                   of_result = drawn(result.size(), 3);
        image.copy_from(at_image), weights.copy_from(at_weights);
        result.grad().copy_from(of_result);
        qn::Kernel convolve = [&] {
          for (auto [n, i, j] : result) {
            Var<double> s = 0.0;
            for (auto c : range(C)) {
              const auto term = [&](I32 a, I32 k, I32 p, I32 q) {
                s += weights(n, c, a, k) * image(c, p, q);
              };
              if (way == written)
                for (int a = 0; a < A; a++)
                  for (int k = 0; k < K; k++) term(a, k, i + a, j + k);
              else if (way == few)
                for (auto a : range(A))
                  for (auto k : range(K)) term(a, k, i + a, j + k);
              else if (way == any)
                for (auto a : range(weights.dim(2)))
                  for (auto k : range(weights.dim(3))) term(a, k, i + a, j + k);
              else if (way == centred)
                for (auto a : range(-1, A - 1))
                  for (auto k : range(-1, K - 1)) term(a + 1, k + 1, i + a, j + k);
              else
                for (auto a : range(A))
                  for (auto k : range(K)) {
                    I32 p = i + a - 1, q = j + k - 1;
                    If(p >= 0 && p < h && q >= 0 && q < W) { term(a, k, p, q); }
                  }
            }
            result(n, i, j) = s;
          }
        };
        qn::vjp(convolve)()();
        std::vector<double> of_image(image.size(), 0.0), of_weights(weights.size(), 0.0);
        for (int n = 0; n < N; n++)
          for (int i = 0; i < h; i++)
            for (int j = 0; j < W; j++)
              for (int c = 0; c < C; c++)
                for (int a = 0; a < A; a++)
                  for (int k = 0; k < K; k++) {
                    const int p = i + a + from, q = j + k + from;
                    if (p < 0 || p >= rows || q < 0 || q >= columns) continue;
                    const double t = of_result[size_t((n * h + i) * W + j)];
                    const size_t weight = size_t(((n * C + c) * A + a) * K + k),
                                 pixel = size_t((c * rows + p) * columns + q);
                    of_image[pixel] += t * at_weights[weight];
                    of_weights[weight] += t * at_image[pixel];
                  }
        const auto found = qn::to_vector(image.grad()),
                   found_weights = qn::to_vector(weights.grad());
        for (size_t k = 0; k < of_image.size(); k++) {
          INFO("element " << k);
          CHECK(found[k] == Approx(of_image[k]).epsilon(1e-12).margin(1e-13));
        }
        for (size_t k = 0; k < of_weights.size(); k++)
          CHECK(found_weights[k] == Approx(of_weights[k]).epsilon(1e-12).margin(1e-12));
      }
  });
}

TEST_CASE("gradients of a filter whose offsets are rounds") {
  on_every_device([](const qn::Device& device) {
    for (int r : {0, 1, 4}) {
      INFO("radius " << r);
      constexpr int H = 13, W = 40;
      qn::Field<double, 2> image{device, {H, W}}, result{device, {H, W}};
      const auto at_image = drawn(image.size(), 1), of_result = drawn(result.size(), 2);
      image.copy_from(at_image);
      result.grad().copy_from(of_result);
      qn::Kernel<void(I32)> filter = [&](I32 radius) {
        for (auto [i, j] : grid(range(radius, H - radius), range(radius, W - radius))) {
          Var<double> s = 0.0;
          for (auto a : range(-radius, radius + 1))
            for (auto b : range(-radius, radius + 1))
              s += image(i + a, j - b) * image(i + a, j - b) / (20.0 + cast<double>(a * a + b));
          result(i, j) = s;
        }
      };
      qn::vjp(filter)(r)();
      std::vector<double> expected(image.size(), 0.0);
      for (int i = r; i < H - r; i++)
        for (int j = r; j < W - r; j++)
          for (int a = -r; a <= r; a++)
            for (int b = -r; b <= r; b++) {
              const size_t at = size_t((i + a) * W + j - b);
              expected[at] += 2 * at_image[at] * of_result[size_t(i * W + j)] / (20.0 + a * a + b);
            }
      const auto found = qn::to_vector(image.grad());
      for (size_t k = 0; k < expected.size(); k++) {
        INFO("element " << k);
        CHECK(found[k] == Approx(expected[k]).epsilon(1e-12).margin(1e-13));
      }
    }
  });
}

TEST_CASE("rounds whose bounds are read where something asks first") {
  on_every_device([](const qn::Device& device) {
    Layer layer{device, 4, 3, 5};
    qn::Field<int> counts{device, {2}};
    counts.fill(3);
    qn::Kernel<void(I32)> forward = [&](I32 which) {
      for (auto [b, o] : layer.y) {
        Var<double> s = layer.bias[o];
        If(which < 2) {
          for (auto i : range(counts[which])) s += layer.x(b, i) * layer.w(i, o);
        }
        layer.y(b, o) = s;
      }
    };
    qn::vjp(forward)(2'000'000'000)();
    expect_near("x", layer.x.grad(), layer.before_x);
    expect_near("w", layer.w.grad(), layer.before_w);
    layer.y.grad().copy_from(layer.of_y);
    layer.bias.grad().fill(0);
    qn::vjp(forward)(1)();
    layer.expect_adjoints([](double) { return 1.0; });
  });
}

TEST_CASE("weights that lie in one row") {
  on_every_device([](const qn::Device& device) {
    Layer layer{device, 30, 40, 9};
    qn::Field<double> w{device, {40 * 9}};
    w.copy_from(layer.at_w), w.grad().copy_from(layer.before_w);
    qn::Kernel forward = [&] {
      for (auto [b, o] : layer.y) {
        Var<double> s = layer.bias[o];
        for (auto i : range(layer.x.dim(1))) s += layer.x(b, i) * w[i * 9 + o];
        layer.y(b, o) = tanh(s);
      }
    };
    qn::vjp(forward)()();
    layer.w.grad().copy_from(qn::to_vector(w.grad()));
    layer.expect_adjoints([](double s) { return 1 - std::tanh(s) * std::tanh(s); });
  });
}

TEST_CASE("indices that cancel are none of an element's") {
  on_every_device([](const qn::Device& device) {
    constexpr int n = 5, m = 4;
    qn::Field<double, 3> x{device, {n, m, 3}};
    qn::Field<double, 2> y{device, {n, n}};
    const auto of_y = drawn(y.size(), 1), at_x = drawn(x.size(), 2);
    x.copy_from(at_x), y.grad().copy_from(of_y);
    qn::Kernel forward = [&] {
      for (auto [i, j] : y) {
        Var<double> s = 0.0;
        for (auto a : range(m)) {
          s += x(i, a, (j * 3 + 2) - j - (j + j));
          s += x(cast<int64_t>(i + j) - cast<int64_t>(j), a, 0);
        }
        y(i, j) = s;
      }
    };
    qn::vjp(forward)()();
    const auto found = qn::to_vector(x.grad());
    for (int i = 0; i < n; i++) {
      double sum = 0;
      for (int j = 0; j < n; j++) sum += of_y[size_t(i * n + j)];
      for (int a = 0; a < m; a++)
        for (int k : {0, 1, 2}) {
          INFO(i << ", " << a << ", " << k);
          CHECK(found[size_t((i * m + a) * 3 + k)] == Approx(k == 1 ? 0.0 : sum).margin(1e-14));
        }
    }
  });
}

TEST_CASE("gradients of a filter that stands at every second element") {
  on_every_device([](const qn::Device& device) {
    for (int wide : {1, 2, 5}) {
      INFO(wide << " wide");
      constexpr int H = 24, W = 40;
      qn::Field<double, 2> image{device, {H, W}}, result{device, {9, 17}}, filter{device, {5, 3}};
      const auto at_image = drawn(image.size(), 1), of_result = drawn(result.size(), 2),
                 at_filter = drawn(filter.size(), 3);
      image.copy_from(at_image), filter.copy_from(at_filter);
      result.grad().copy_from(of_result);
      qn::Kernel<void(I32)> apply = [&](I32 n) {
        for (auto [i, j] : grid(range(1, 9), range(17))) {
          Var<double> s = 0.0;
          for (auto a : range(n))
            for (auto b : range(3)) s += image(2 * i + a, b + 2 * j) * filter(a, b);
          result(i, j) = s;
        }
      };
      qn::vjp(apply)(wide)();
      std::vector<double> of_image(image.size(), 0.0), of_filter(filter.size(), 0.0);
      for (int i = 1; i < 9; i++)
        for (int j = 0; j < 17; j++)
          for (int a = 0; a < wide; a++)
            for (int b = 0; b < 3; b++) {
              const size_t at = size_t((2 * i + a) * W + b + 2 * j), by = size_t(a * 3 + b);
              of_image[at] += of_result[size_t(i * 17 + j)] * at_filter[by];
              of_filter[by] += of_result[size_t(i * 17 + j)] * at_image[at];
            }
      expect_near("image", image.grad(), of_image);
      expect_near("filter", filter.grad(), of_filter);
    }
  });
}

TEST_CASE("sums by vectors, of elements at multiples and in other orders") {
  on_every_device([](const qn::Device& device) {
    constexpr int B = 6, I = 5, O = 4;
    qn::Field<dvec3, 2> x{device, {I, 2 * B + 1}}, w{device, {O, I}};
    qn::Field<dvec3, 3> y{device, {O, 2, B}};
    const auto vectors = [](size_t n, unsigned seed) {
      const std::vector<double> parts = drawn(3 * n, seed);
      std::vector<dvec3> all(n);
      for (size_t k = 0; k < n; k++) all[k] = {parts[3 * k], parts[3 * k + 1], parts[3 * k + 2]};
      return all;
    };
    const auto at_x = vectors(x.size(), 1), at_w = vectors(w.size(), 2),
               of_y = vectors(y.size(), 3);
    x.copy_from(at_x), w.copy_from(at_w), y.grad().copy_from(of_y);
    qn::Kernel forward = [&] {
      for (auto [b, o] : grid(range(B), range(O))) {
        Var<dvec3> s = dvec3(0.0);
        for (auto i : range(I64(I))) s += x(i, 2 * b + 1) * w(o, i);
        y(o, 1, b) = s;
      }
    };
    qn::vjp(forward)()();
    std::vector<dvec3> of_x(at_x.size(), dvec3(0.0)), of_w(at_w.size(), dvec3(0.0));
    for (int b = 0; b < B; b++)
      for (int o = 0; o < O; o++)
        for (int i = 0; i < I; i++)
          for (int c = 0; c < 3; c++) {
            const size_t in = size_t(i * (2 * B + 1) + 2 * b + 1), by = size_t(o * I + i);
            of_x[in][c] += of_y[size_t((2 * o + 1) * B + b)][c] * at_w[by][c];
            of_w[by][c] += of_y[size_t((2 * o + 1) * B + b)][c] * at_x[in][c];
          }
    const auto expect = [](const auto& found, const std::vector<dvec3>& expected) {
      for (size_t k = 0; k < expected.size(); k++)
        for (int c = 0; c < 3; c++) {
          INFO("element " << k << ", " << c);
          CHECK(found[k][c] == Approx(expected[k][c]).epsilon(1e-12).margin(1e-13));
        }
    };
    expect(qn::to_vector(x.grad()), of_x);
    expect(qn::to_vector(w.grad()), of_w);
  });
}

TEST_CASE("sums of a strict kernel go by iteration and round") {
  on_every_device([](const qn::Device& device) {
    constexpr int B = 300, I = 5, O = 7;
    qn::Field<float, 2> x{device, {B, I}}, w{device, {I, O}}, y{device, {B, O}};
    const auto at_x = drawn<float>(x.size(), 1), at_w = drawn<float>(w.size(), 2),
               of_y = drawn<float>(y.size(), 3);
    x.copy_from(at_x), w.copy_from(at_w), y.grad().copy_from(of_y);
    qn::Field<float> bias{device, {O}};
    qn::Kernel forward{[&] {
                         for (auto [b, o] : y) {
                           Var<float> s = bias[o];
                           for (auto i : range(I)) s += x(b, i) * w(i, o);
                           y(b, o) = s;
                         }
                       },
                       {.strict = true}};
    qn::vjp(forward)()();
    std::vector<float> of_x(x.size(), 0.0f), of_w(w.size(), 0.0f), of_bias(O, 0.0f);
    for (int b = 0; b < B; b++)
      for (int o = 0; o < O; o++) {
        const float t = of_y[size_t(b * O + o)];
        for (int i = 0; i < I; i++) {
          const float by_x = t * at_w[size_t(i * O + o)], by_w = t * at_x[size_t(b * I + i)];
          of_x[size_t(b * I + i)] += by_x;
          of_w[size_t(i * O + o)] += by_w;
        }
        of_bias[size_t(o)] += t;
      }
    CHECK(qn::to_vector(x.grad()) == of_x);
    CHECK(qn::to_vector(w.grad()) == of_w);
    CHECK(qn::to_vector(bias.grad()) == of_bias);
  });
}

TEST_CASE("two layers on a tape, over and over") {
  on_every_device([](const qn::Device& device) {
    constexpr int B = 8, I = 6, H = 5, O = 3;
    qn::Field<double, 2> x{device, {B, I}}, w{device, {I, H}}, h{device, {B, H}}, v{device, {H, O}},
        y{device, {B, O}};
    const auto at_x = drawn(x.size(), 1), at_w = drawn(w.size(), 2), at_v = drawn(v.size(), 3),
               of_y = drawn(y.size(), 4);
    x.copy_from(at_x), w.copy_from(at_w), v.copy_from(at_v);
    qn::Kernel layer = [](qn::Field<double, 2> in, qn::Field<double, 2> by,
                          qn::Field<double, 2> out) {
      for (auto [b, o] : out) {
        Var<double> s = 0.0;
        for (auto i : range(in.dim(1))) s += in(b, i) * by(i, o);
        out(b, o) = sin(s);
      }
    };
    std::vector<double> sums(B * H, 0.0), of_w(w.size(), 0.0), of_v(v.size(), 0.0);
    for (int b = 0; b < B; b++)
      for (int j = 0; j < H; j++)
        for (int i = 0; i < I; i++)
          sums[size_t(b * H + j)] += at_x[size_t(b * I + i)] * at_w[size_t(i * H + j)];
    for (int b = 0; b < B; b++)
      for (int o = 0; o < O; o++) {
        double s = 0;
        for (int j = 0; j < H; j++)
          s += std::sin(sums[size_t(b * H + j)]) * at_v[size_t(j * O + o)];
        const double t = of_y[size_t(b * O + o)] * std::cos(s);
        for (int j = 0; j < H; j++) {
          of_v[size_t(j * O + o)] += t * std::sin(sums[size_t(b * H + j)]);
          const double u = t * at_v[size_t(j * O + o)] * std::cos(sums[size_t(b * H + j)]);
          for (int i = 0; i < I; i++) of_w[size_t(i * H + j)] += u * at_x[size_t(b * I + i)];
        }
      }
    for (int round = 0; round < 3; round++) {
      w.grad().fill(0), v.grad().fill(0), x.grad().fill(0), h.grad().fill(0);
      y.grad().copy_from(of_y);
      qn::Tape tape;
      layer(x, w, h);
      layer(h, v, y);
      tape.backward();
      expect_near("w", w.grad(), of_w);
      expect_near("v", v.grad(), of_v);
    }
  });
}

TEST_CASE("a loss of a layer by its weights alone, and its second derivatives") {
  on_every_device([](const qn::Device& device) {
    constexpr int B = 9, I = 4, O = 5;
    qn::Field<double, 2> x{device, {B, I}}, w{device, {I, O}}, wanted{device, {B, O}};
    const auto at_x = drawn(x.size(), 1), at_w = drawn(w.size(), 2), at = drawn(wanted.size(), 3),
               along = drawn(w.size(), 4);
    x.copy_from(at_x), w.copy_from(at_w), wanted.copy_from(at);
    qn::Kernel loss = [&]() -> F64 {
      Var<double> sum = 0.0;
      for (auto [b, o] : grid(range(B), range(O))) {
        Var<double> s = -wanted(b, o);
        for (auto i : range(I)) s += x(b, i) * w(i, o);
        sum += s * s;
      }
      return sum;
    };
    double value = 0;
    std::vector<double> gradient(w.size(), 0.0), second(w.size(), 0.0);
    for (int b = 0; b < B; b++)
      for (int o = 0; o < O; o++) {
        double s = -at[size_t(b * O + o)], ds = 0;
        for (int i = 0; i < I; i++) {
          s += at_x[size_t(b * I + i)] * at_w[size_t(i * O + o)];
          ds += at_x[size_t(b * I + i)] * along[size_t(i * O + o)];
        }
        value += s * s;
        for (int i = 0; i < I; i++) {
          gradient[size_t(i * O + o)] += 2 * s * at_x[size_t(b * I + i)];
          second[size_t(i * O + o)] += 2 * ds * at_x[size_t(b * I + i)];
        }
      }
    auto by_w = qn::value_and_grad(loss, qn::wrt(w));
    CHECK(double(by_w().value()) == Approx(value).epsilon(1e-13));
    expect_near("w", w.grad(), gradient);
    w.dual().copy_from(along);
    auto twice = qn::hessian_vector(loss, qn::wrt(w));
    CHECK(double(twice().value()) == Approx(value).epsilon(1e-13));
    expect_near("w", w.grad(), gradient);
    expect_near("second", w.grad().dual(), second);
    CHECK(qn::to_vector(wanted) == at);
    // Snapshots, and parts of fields, are what iterations access alone too.
    qn::Kernel of_wanted = [&](qn::Field<double, 2> t) -> F64 {
      Var<double> sum = 0.0;
      for (auto [b, o] : t) {
        Var<double> s = -t(b, o);
        for (auto i : range(I)) s += x(b, i) * w(i, o);
        sum += s * s;
      }
      return sum;
    };
    auto by_both = qn::value_and_grad(of_wanted, qn::wrt(w));
    w.grad().fill(0);
    CHECK(double(by_both(wanted.snapshot()).value()) == Approx(value).epsilon(1e-13));
    expect_near("w", w.grad(), gradient);
    qn::Field<double, 2> larger{device, {3 * B, O}};
    qn::Field<double, 2> part = larger.slice(0, B, 2 * B);
    part.copy_from(at);
    w.grad().fill(0);
    CHECK(double(by_both(part).value()) == Approx(value).epsilon(1e-13));
    expect_near("w", w.grad(), gradient);
    w.grad().fill(0);
    qn::Field<double, 0> sum{device};
    qn::Kernel add = [&](qn::Field<double, 2> t) {
      for (auto [b, o] : t) {
        Var<double> s = -t(b, o);
        for (auto i : range(I)) s += x(b, i) * w(i, o);
        atomic_add(sum(), s * s);
      }
    };
    sum.grad().fill(1);
    qn::Tape tape{qn::wrt(w)};
    add(wanted.snapshot());
    tape.backward();
    expect_near("w", w.grad(), gradient);
  });
}
