// Quaternions against plain C++ in double: Rodrigues' formula, the laws of their algebra.
#include <quern/quaternion.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <random>
#include <type_traits>

#include "tests/end_to_end/devices.h"

using namespace qn::lang;

namespace {
using D3 = std::array<double, 3>;

template <class W = HostW>
struct Body {
  In<W, vec3> position;
  In<W, quat> turn;
};

D3 axis_of(double a, double b, double c) {
  double n = std::sqrt(a * a + b * b + c * c);
  return {a / n, b / n, c / n};
}
D3 cross_of(const D3& a, const D3& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}
/// v cos α + n × v sin α + n (n · v)(1 - cos α)  (Rodrigues 1840)
D3 rodrigues(const D3& n, double angle, const D3& v) {
  D3 side = cross_of(n, v), out;
  double along = n[0] * v[0] + n[1] * v[1] + n[2] * v[2];
  for (size_t k = 0; k < 3; k++)
    out[k] =
        v[k] * std::cos(angle) + side[k] * std::sin(angle) + n[k] * along * (1 - std::cos(angle));
  return out;
}
template <class V>
double apart(const V& a, const D3& b) {
  double sum = 0;
  for (int k = 0; k < 3; k++) sum += std::pow(double(a[k]) - b[size_t(k)], 2);
  return std::sqrt(sum);
}
template <class T>
double apart(const Quaternion<HostW, T>& a, const Quaternion<HostW, T>& b) {
  return double(length(a - b));
}

template <class T>
void check_turns(const qn::Device& device) {
  using Q = Quaternion<HostW, T>;
  using V = qn::Vec<T, 3>;
  const int n = 500;
  const double bound = sizeof(T) == 4 ? 2e-6 : 4e-15;
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  std::vector<D3> axes, vectors;
  std::vector<V> axis, vector;
  std::vector<T> angle;
  for (int k = 0; k < n; k++) {
    D3 a = axis_of(normal(random), normal(random), normal(random));
    // Axes of coordinates, and half turns: where the parts of a quaternion vanish.
    if (k < 12) a = {double(k % 3 == 0), double(k % 3 == 1), double(k % 3 == 2)};
    V rounded{T(a[0]), T(a[1]), T(a[2])};
    axis.push_back(rounded);
    axes.push_back({double(rounded.x), double(rounded.y), double(rounded.z)});
    V v{T(normal(random)), T(normal(random)), T(normal(random))};
    vector.push_back(v);
    vectors.push_back({double(v.x), double(v.y), double(v.z)});
    angle.push_back(T(k < 24 ? std::numbers::pi * (k % 2) : 3 * normal(random)));
  }
  qn::Field<V> axis_field{device, {n}}, v{device, {n}}, turned{device, {n}}, by_matrix{device, {n}},
      twice{device, {n}};
  qn::Field<T> angle_field{device, {n}};
  qn::Field<Q> q{device, {n}}, back{device, {n}}, unit{device, {n}}, same{device, {n}};
  axis_field.copy_from(axis);
  v.copy_from(vector);
  angle_field.copy_from(angle);
  qn::Kernel k = [&] {
    for (auto i : q) {
      auto turn = quaternion(axis_field[i], angle_field[i]);
      q[i] = turn;
      turned[i] = rotate(turn, v[i]);
      auto m = rotation_matrix(q[i]);
      by_matrix[i] = m * v[i];
      auto found = quaternion(m);
      back[i] = found * select(dot(found, turn) < 0, -1, 1);
      auto other = quaternion(vec(axis_field[i].y, axis_field[i].z, axis_field[i].x), T(0.5));
      twice[i] = rotate(turn * other, v[i]) - rotate(turn, rotate(other, v[i]));
      auto scaled = turn * T(3);
      unit[i] = scaled * inverse(scaled);
      same[i] = exp(log(scaled)) / T(3);
    }
  };
  k();
  double worst_turn = 0, worst_matrix = 0, worst_back = 0, worst_twice = 0, worst_unit = 0,
         worst_exp = 0, worst_host = 0;
  for (int i = 0; i < n; i++) {
    const size_t s = size_t(i);
    const D3 want = rodrigues(axes[s], double(angle[s]), vectors[s]);
    const double size = std::max(1.0, apart(vector[s], {0, 0, 0}));
    const Q turn = quaternion(axis[s], angle[s]);
    worst_turn = std::max(worst_turn, apart(turned.at(i), want) / size);
    worst_matrix = std::max(worst_matrix, apart(by_matrix.at(i), want) / size);
    worst_host =
        std::max({worst_host, apart(rotate(turn, vector[s]), want) / size,
                  apart(rotation_matrix(turn) * vector[s], want) / size, apart(turn, q.at(i))});
    worst_back = std::max(worst_back, apart(back.at(i), q.at(i)));
    worst_twice = std::max(worst_twice, apart(twice.at(i), {0, 0, 0}) / size);
    worst_unit = std::max(worst_unit, apart(unit.at(i), Q{0, 0, 0, 1}));
    worst_exp = std::max(worst_exp, apart(same.at(i), q.at(i)));
  }
  INFO(sizeof(T) * 8 << " bits");
  CHECK(worst_turn <= bound);
  CHECK(worst_matrix <= bound);
  CHECK(worst_host <= bound);
  CHECK(worst_back <= bound);
  CHECK(worst_twice <= 2 * bound);
  CHECK(worst_unit <= bound);
  CHECK(worst_exp <= bound);
}

template <class T>
void check_slerp(const qn::Device& device) {
  using Q = Quaternion<HostW, T>;
  using V = qn::Vec<T, 3>;
  const double bound = sizeof(T) == 4 ? 1e-6 : 2e-15;
  const V axis{T(0.6), T(0), T(0.8)};
  const double angles[] = {0, 1e-9, 1e-4, 1.9e-3, 2.1e-3, 0.5, 1.5, 3.1, 4.0, 6.0};
  qn::Field<Q> ends{device, {2}}, at{device, {5}};
  qn::Kernel k = [&] {
    for (auto i : at) at[i] = slerp(ends[0], ends[1], cast<T>(i) / 4);
  };
  for (double angle : angles) {
    const Q a = quaternion(V{0, 1, 0}, T(1)), b = quaternion(axis, T(angle)) * a;
    ends.copy_from(std::vector<Q>{a, b});
    k();
    for (int i = 0; i <= 4; i++) {
      // The short way: more than half a turn goes on the other side.
      const double part = (angle > std::numbers::pi ? angle - 2 * std::numbers::pi : angle) * i / 4;
      const Q want = quaternion(axis, T(part)) * a;
      INFO(sizeof(T) * 8 << " bits, angle " << angle << ", " << i << " quarters");
      CHECK(std::min(apart(at.at(i), want), apart(at.at(i), -want)) <= bound);
      CHECK(apart(slerp(a, b, T(i) / 4), at.at(i)) <= bound);
    }
  }
  const Q a = quaternion(axis, T(0.3)), b = quaternion(axis, T(0.9));
  CHECK(apart(nlerp(a, b, T(0.5)), slerp(a, b, T(0.5))) <= bound);
  CHECK(apart(nlerp(a, -b, T(0.5)), slerp(a, b, T(0.5))) <= bound);
}
}  // namespace

TEST_CASE("quaternions turn vectors as Rodrigues' formula does, and form a group") {
  on_every_device([](qn::Device& device) {
    check_turns<float>(device);
    check_turns<double>(device);
  });
}

TEST_CASE("slerp goes from end to end the short way, at a constant rate") {
  on_every_device([](qn::Device& device) {
    check_slerp<float>(device);
    check_slerp<double>(device);
  });
}

TEST_CASE("quaternions multiply as Hamilton's i, j, k, on the host") {
  constexpr quat i{1, 0, 0, 0}, j{0, 1, 0, 0}, k{0, 0, 1, 0}, one{0, 0, 0, 1};
  static_assert(i * j == k && j * k == i && k * i == j && j * i == -k);
  static_assert(i * i == -one && j * j == -one && k * k == -one);
  static_assert(i + j - j == i && i != j && 2 * i == i * 2 && 4 * i / 2 == i + i);
  static_assert(conjugate(i + one) == one - i && dot(i + j, i) == 1);
  static_assert(std::is_aggregate_v<quat> && sizeof(dquat) == 32);
  CHECK(length(quat{1, 2, 2, 4}) == 5);
  CHECK(normalize(quat{0, 0, 3, 4}) == quat{0, 0, 0.6f, 0.8f});
  CHECK(inverse(quat{0, 0, 2, 0}) == quat{0, 0, -0.5f, 0});
  CHECK(quaternion(0, 0, 0, 1.0f) == one);
  // exp of a half turn, and log of -1: i · π.
  CHECK(apart(exp(quat{0, std::numbers::pi_v<float>, 0, 0}), -one) < 1e-6);
  CHECK(apart(log(-one), std::numbers::pi_v<float> * i) < 1e-6);
  CHECK(log(one) == quat{0, 0, 0, 0});
}

TEST_CASE("quaternions are elements, members, variables, parameters and results") {
  on_every_device([](qn::Device& device) {
    qn::Field<Body<>> bodies{device, {4}};
    bodies.fill(Body<>{vec3(1, 0, 0), quat{0, 0, 0, 1}});
    const quat quarter = quaternion(vec3(0, 0, 1), std::numbers::pi_v<float> / 2);
    qn::Func turned = [](Val<quat> q, Vec3 v) { return rotate(q, v); };
    qn::Kernel k = [&](Quat by) {
      for (auto i : bodies) {
        Var<quat> q = bodies[i].turn;
        for (auto step : range(i)) q = by * q;
        q.x += 0;
        bodies[i].turn = normalize(q);
        bodies[i].position = turned(q, bodies[i].position);
        check(q == quat{0, 0, 0, 1} || i > 0, "turned early");
      }
      Var<quat> last = by * quat{0, 0, 0, 1};
      last = 2 * last;
      return last;
    };
    const quat twice = k(quarter);
    CHECK(twice == 2 * quarter);
    const vec3 want[] = {{1, 0, 0}, {0, 1, 0}, {-1, 0, 0}, {0, -1, 0}};
    for (int i = 0; i < 4; i++) CHECK(length(bodies.at(i).position - want[i]) < 1e-6f);
  });
}
