// Programs that optimise something, against published losses and derivatives by dual numbers.
#include <quern/algorithms.h>
#include <quern/autodiff.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "tests/autodiff/numbers.h"
#include "tests/end_to_end/devices.h"

using namespace qn::lang;

namespace {

// ---- mass_spring_simple of DiffTaichi (Hu et al., ICLR 2020): three masses, three springs, whose rest
// lengths are to make the triangle's area 0.1

constexpr int masses = 3, springs = 3;
constexpr double dt = 0.001, stiffness = 10, damping = 20, target_area = 0.1;
constexpr int ends[springs][2] = {{0, 1}, {1, 2}, {2, 0}};
constexpr double start[masses][2] = {{0.3, 0.5}, {0.3, 0.4}, {0.4, 0.4}};
const std::array<double, springs> rest = {0.1, 0.1, 0.1 * std::sqrt(2.0)};

/// A value and its derivatives by the rest lengths.
struct Number {
  double v = 0;
  std::array<double, springs> d = {};
};
Number operator+(Number a, const Number& b) {
  a.v += b.v;
  for (int k = 0; k < springs; k++) a.d[size_t(k)] += b.d[size_t(k)];
  return a;
}
Number operator*(const Number& a, const Number& b) {
  Number c{a.v * b.v};
  for (size_t k = 0; k < springs; k++) c.d[k] = a.d[k] * b.v + a.v * b.d[k];
  return c;
}
Number operator-(const Number& a, const Number& b) { return a + Number{-1} * b; }
Number apply(const Number& a, double value, double slope) {
  Number c{value};
  for (size_t k = 0; k < springs; k++) c.d[k] = a.d[k] * slope;
  return c;
}
Number root(const Number& a) { return apply(a, std::sqrt(a.v), 0.5 / std::sqrt(a.v)); }
Number inverse(const Number& a) { return apply(a, 1 / a.v, -1 / (a.v * a.v)); }

/// The loss behind so many steps, and its gradient: plain C++, forward.
Number reference(const std::array<double, springs>& lengths, int steps) {
  Number x[masses][2], v[masses][2], length[springs];
  for (int i = 0; i < masses; i++)
    for (int k = 0; k < 2; k++) x[i][k] = {start[i][k]};
  for (size_t s = 0; s < springs; s++) {
    length[s].v = lengths[s];
    length[s].d[s] = 1;
  }
  for (int t = 1; t < steps; t++) {
    Number force[masses][2];
    for (int s = 0; s < springs; s++) {
      const int a = ends[s][0], b = ends[s][1];
      const Number dx = x[a][0] - x[b][0], dy = x[a][1] - x[b][1];
      const Number far = root(dx * dx + dy * dy) + Number{1e-4};
      const Number pull = (far - length[s]) * Number{stiffness} * inverse(far);
      force[a][0] = force[a][0] - pull * dx;
      force[a][1] = force[a][1] - pull * dy;
      force[b][0] = force[b][0] + pull * dx;
      force[b][1] = force[b][1] + pull * dy;
    }
    for (int i = 0; i < masses; i++)
      for (int k = 0; k < 2; k++) {
        v[i][k] = Number{std::exp(-dt * damping)} * v[i][k] + Number{dt} * force[i][k];
        x[i][k] = x[i][k] + Number{dt} * v[i][k];
      }
  }
  const Number ax = x[0][0] - x[1][0], ay = x[0][1] - x[1][1];
  const Number bx = x[0][0] - x[2][0], by = x[0][1] - x[2][1];
  const Number twice = ax * by - ay * bx;
  const Number area = apply(twice, 0.5 * std::abs(twice.v), twice.v < 0 ? -0.5 : 0.5);
  return (area - Number{target_area}) * (area - Number{target_area});
}

class Springs {
 public:
  Springs(const qn::Device& device, int steps)
      : steps_(steps),
        x_(device, {steps, masses}),
        v_(device, {steps, masses}),
        force_(device, {steps, masses}),
        lengths(device, {springs}),
        anchors_(device, {springs}),
        loss_(device) {
    lengths.copy_from(rest);
    for (int s = 0; s < springs; s++) anchors_.set(s, {ends[s][0], ends[s][1]});
    for (int i = 0; i < masses; i++) x_.set(0, i, {start[i][0], start[i][1]});
  }

  /// The loss, and its gradient in lengths.grad().
  double loss() {
    lengths.grad().fill(0);
    x_.grad().fill({});
    v_.grad().fill({});
    force_.fill({});
    force_.grad().fill({});
    loss_.grad().fill(1);
    qn::Tape tape;
    for (int t = 1; t < steps_; t++) {
      pull_(t);
      move_(t);
    }
    measure_();
    tape.backward();
    return loss_.at({});
  }

 private:
  using Point = qn::Vec<double, 2>;
  const int steps_;
  qn::Field<Point, 2> x_, v_, force_;

 public:
  qn::Field<double> lengths;

 private:
  qn::Field<qn::Vec<int, 2>> anchors_;
  qn::Field<double, 0> loss_;
  qn::Kernel<void(I32)> pull_ = [this](I32 t) {
    for (auto s : lengths) {
      I32 a = anchors_[s].x, b = anchors_[s].y;
      Val<Point> d = x_(t - 1, a) - x_(t - 1, b);
      F64 far = length(d) + 1e-4;
      Val<Point> f = (far - lengths[s]) * stiffness / far * d;
      atomic_add(force_(t, a), -f);
      atomic_add(force_(t, b), f);
    }
  };
  qn::Kernel<void(I32)> move_ = [this](I32 t) {
    for (auto i : range(masses)) {
      v_(t, i) = std::exp(-dt * damping) * v_(t - 1, i) + dt * force_(t, i);
      x_(t, i) = x_(t - 1, i) + dt * v_(t, i);
    }
  };
  qn::Kernel<void()> measure_ = [this] {
    for ([[maybe_unused]] auto one : range(1)) {
      Val<Point> a = x_(steps_ - 1, 0) - x_(steps_ - 1, 1),
                 b = x_(steps_ - 1, 0) - x_(steps_ - 1, 2);
      F64 off = abs(0.5 * (a.x * b.y - a.y * b.x)) - target_area;
      loss_() = off * off;
    }
  };
};

}  // namespace

TEST_CASE("springs: 16 steps have the gradient of dual numbers") {
  on_every_device([](const qn::Device& device) {
    Springs program(device, 16);
    const Number expected = reference(rest, 16);
    CHECK(program.loss() == Approx(expected.v).epsilon(1e-10));
    for (int s = 0; s < springs; s++)
      CHECK(program.lengths.grad().at(s) == Approx(expected.d[size_t(s)]).epsilon(1e-9));
  });
}

TEST_CASE("springs: descent over 1,024 steps begins as published and goes as by dual numbers") {
  const qn::Device device("cpu");
  Springs program(device, 1024);
  std::array<double, springs> lengths = rest;
  for (int iteration = 0; iteration < 25; iteration++) {
    INFO("iteration " << iteration);
    const double loss = program.loss();
    const Number expected = reference(lengths, 1024);
    CHECK(loss == Approx(expected.v).epsilon(1e-6));
    if (iteration == 0) {
      CHECK(loss == Approx(0.00902640198).epsilon(1e-9));
      CHECK(program.lengths.grad().at(0) == Approx(-0.00565966).epsilon(1e-6));
      CHECK(program.lengths.grad().at(1) == Approx(-0.00565966).epsilon(1e-6));
      CHECK(program.lengths.grad().at(2) == Approx(-0.00269581).epsilon(1e-6));
    }
    for (int s = 0; s < springs; s++) {
      lengths[size_t(s)] -= 5 * expected.d[size_t(s)];
      program.lengths.set(s, program.lengths.at(s) - 5 * program.lengths.grad().at(s));
    }
  }
  CHECK(program.loss() < 1e-8);
}

TEST_CASE("a tape goes back through scans and sorts") {
  on_every_device([](const qn::Device& device) {
    for (const int n : {1, 3, 5000}) {
      std::vector<double> at, weights;
      std::vector<int> keys;
      for (int i = 0; i < n; i++) {
        at.push_back(0.5 + 0.001 * i);
        weights.push_back(std::cos(i));
        keys.push_back(i * 7919 % 1009);
      }
      auto x = numbers(device, at), y = numbers(device, at), weight = numbers(device, weights);
      qn::Field<int> key{device, {n}};
      key.copy_from(keys);
      qn::Field<double, 0> loss{device};
      qn::Kernel square = [&] {
        for (auto i : x) y[i] = x[i] * x[i];
      };
      qn::Kernel measure = [&] {
        for (auto i : y) atomic_add(loss(), weight[i] * y[i]);
      };
      const auto gradient = [&](auto&& between) {
        x.grad().fill(0);
        y.grad().fill(0);
        loss.grad().fill(1);
        qn::Tape tape;
        square();
        between();
        measure();
        tape.backward();
        return qn::to_vector(x.grad());
      };
      INFO(n << " elements");
      const std::vector<double> of_sums = gradient([&] { inclusive_scan(y, y); });
      double behind = 0;  // weights of all sums that an element is part of
      bool all_right = true;
      for (int i = n - 1; i >= 0; i--) {
        behind += weights[size_t(i)];
        all_right &= of_sums[size_t(i)] == Approx(2 * at[size_t(i)] * behind).margin(1e-9);
      }
      CHECK(all_right);
      std::vector<int> order;
      for (int i = 0; i < n; i++) order.push_back(i);
      std::ranges::stable_sort(order, {}, [&](int i) { return keys[size_t(i)]; });
      const std::vector<double> of_sorted = gradient([&] { sort_by_key(key, y); });
      all_right = true;
      for (int k = 0; k < n; k++) {
        const auto from = size_t(order[size_t(k)]);
        all_right &= of_sorted[from] == Approx(2 * at[from] * weights[size_t(k)]).margin(1e-12);
      }
      CHECK(all_right);
    }
  });
}

TEST_CASE("a tape goes back through sorts by what varies: elements are moved") {
  on_every_device([](const qn::Device& device) {
    for (const int n : {1, 2, 700}) {
      INFO(n << " elements");
      std::vector<double> at, weights;
      for (int i = 0; i < n; i++) {
        at.push_back(0.01 * i);
        weights.push_back(std::cos(i));
      }
      auto x = numbers(device, at), key = numbers(device, at), y = numbers(device, at),
           z = numbers(device, at), weight = numbers(device, weights);
      qn::Field<double, 0> loss{device};
      qn::Kernel make = [&] {
        for (auto i : x) {
          key[i] = sin(9 * x[i]);
          y[i] = x[i] * x[i];
          z[i] = 3 * x[i];
        }
      };
      qn::Kernel measure = [&] {
        for (auto i : y) atomic_add(loss(), weight[i] * (key[i] + y[i] + z[i]));
      };
      std::vector<int> order;
      for (int i = 0; i < n; i++) order.push_back(i);
      const auto slopes = [&](auto&& sorted, double of_key, double of_y, double of_z) {
        for (const auto& field : {x, key, y, z}) field.grad().fill(0);
        loss.grad().fill(1);
        qn::Tape tape{qn::wrt(x)};
        make();
        sorted();
        measure();
        tape.backward();
        bool all_right = true;
        for (int k = 0; k < n; k++) {  // what is not sorted along stays
          const int moved = order[size_t(k)];
          const double v = at[size_t(moved)], here = weights[size_t(k)],
                       there = weights[size_t(moved)];
          const auto by = [&](double is_moved) { return is_moved * here + (1 - is_moved) * there; };
          all_right &= x.grad().at(moved) ==
                       Approx(by(of_key) * 9 * std::cos(9 * v) + by(of_y) * 2 * v + by(of_z) * 3)
                           .margin(1e-12);
        }
        CHECK(all_right);
      };
      std::ranges::stable_sort(order, {}, [&](int i) { return std::sin(9 * at[size_t(i)]); });
      slopes([&] { sort(key); }, 1, 0, 0);
      slopes([&] { sort_by_key(key, y); }, 1, 1, 0);
      slopes([&] { sort_by_key(key, y, z); }, 1, 1, 1);
      std::ranges::reverse(order);
      slopes([&] { sort_by_key(key, y, qn::Order::descending); }, 1, 1, 0);
    }
  });
}
