#include "examples/differentiable/diff_robot.h"

#include <array>
#include <cmath>
#include <random>
#include <utility>

namespace examples {

namespace qn = quern;
using namespace qn::lang;

namespace {

constexpr int n_hidden = 32, n_waves = 10;
constexpr double dt = 0.004, omega = 10, stiffness = 3e4, damping = 15, gravity = 4.8, ground = 0.1;
constexpr double goal_x = 0.9, goal_y = 0.2;
constexpr double state_scale = 0.05;  // there are many of these inputs

/// Builds a robot of cells of a lattice.
class Lattice {
 public:
  Robot robot;

  void square(int i, int j, double actuation) {
    const int a = point(i, j), b = point(i, j + 1), c = point(i + 1, j), d = point(i + 1, j + 1);
    spring(a, b, actuation);
    spring(c, d, actuation);
    connect(std::array{a, b, c, d});
  }
  void triangle(int i, int j) {
    connect(std::array{point(i + 0.5, j + 0.5), point(i, j + 1), point(i + 1, j + 1)});
  }

 private:
  int point(double i, double j) {
    const qn::Vec<double, 2> at(i * 0.05 + 0.1, j * 0.05 + 0.1);
    for (size_t k = 0; k < robot.masses.size(); k++)
      if (robot.masses[k] == at) return int(k);
    robot.masses.push_back(at);
    return int(robot.masses.size()) - 1;
  }
  /// None where there is one.
  void spring(int a, int b, double actuation) {
    for (const Robot::Spring& s : robot.springs)
      if ((s.a == a && s.b == b) || (s.a == b && s.b == a)) return;
    const qn::Vec<double, 2> way = robot.masses[size_t(a)] - robot.masses[size_t(b)];
    robot.springs.push_back({a, b, std::hypot(way.x, way.y), actuation});
  }
  template <size_t N>
  void connect(const std::array<int, N>& points) {
    for (int a : points)
      for (int b : points)
        if (a != b) spring(a, b, 0);
  }
};

/// Normally distributed, with these rows and columns and a last column of zeros.
template <class Real>
void randomise(const qn::Field<Real, 2>& weights, double scale, std::mt19937& generator) {
  const auto uniform = [&] { return (double(generator()) + 0.5) / 4294967296.0; };
  const int64_t rows = weights.shape(0), columns = weights.shape(1);
  std::vector<Real> values;
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++) {
      const double radius = std::sqrt(-2 * std::log(uniform()));  // by Box and Muller
      const double angle = 2 * M_PI * uniform();
      const double spread = scale * std::sqrt(2.0 / double(rows + columns - 1));
      values.push_back(j + 1 < columns ? Real(spread * radius * std::cos(angle)) : Real(0));
    }
  weights.copy_from(values);
}

}  // namespace

Robot Robot::two_legs() {
  Lattice lattice;
  lattice.triangle(2, 0);
  lattice.triangle(0, 0);
  lattice.square(0, 1, 0.15);
  lattice.square(0, 2, 0);
  lattice.square(1, 2, 0);
  lattice.square(2, 1, 0.15);
  lattice.square(2, 2, 0);
  return std::move(lattice.robot);
}

template <class Real>
DiffRobot<Real>::DiffRobot(const qn::Device& device, const Setup& setup)
    : DiffRobot(device, setup, Robot::two_legs()) {}

template <class Real>
DiffRobot<Real>::DiffRobot(const qn::Device& device, const Setup& setup, const Robot& robot)
    : hidden_weights{device, {n_hidden, n_waves + 4 * robot.masses.size() + 3}},
      spring_weights{device, {robot.springs.size(), n_hidden + 1}},
      setup_(setup),
      start_{device, {robot.masses.size()}},
      x_{device, {robot.masses.size()}},
      v_{device, {robot.masses.size()}},
      impulse_{device, {robot.masses.size()}},
      ends_{device, {robot.springs.size()}},
      length_{device, {robot.springs.size()}},
      actuation_{device, {robot.springs.size()}},
      hidden_{device, {n_hidden}},
      action_{device, {robot.springs.size()}},
      centre_{device, {1}},
      loss_{device},
      begin_{[this] {
        for (auto i : x_) {
          x_[i] = start_[i];
          v_[i] = Vector();
          impulse_[i] = Vector();
        }
      }},
      find_centre_{[this] {
        Var<Vector> sum = Vector();
        for (auto i : x_) sum += x_[i];
        centre_[0] = sum / cast<Real>(x_.dim(0));
      }},
      think_{[this](I32 t) {
        for (auto i : hidden_) {
          Val<Vector> centre = centre_[0];
          I32 masses = x_.dim(0), to_goal = n_waves + 4 * masses;
          Var<Real> sum = hidden_weights(i, to_goal + 2);
          for (int k = 0; k < n_waves; k++)
            sum += hidden_weights(i, k) * sin(omega * dt * cast<Real>(t) + 2 * M_PI / n_waves * k);
          for (auto m : range(masses)) {
            Val<Vector> offset = x_[m] - centre, v = v_[m];
            I32 at = n_waves + 4 * m;
            sum += state_scale *
                   (hidden_weights(i, at) * offset.x + hidden_weights(i, at + 1) * offset.y +
                    hidden_weights(i, at + 2) * v.x + hidden_weights(i, at + 3) * v.y);
          }
          sum += hidden_weights(i, to_goal) * (goal_x - centre.x) +
                 hidden_weights(i, to_goal + 1) * (goal_y - centre.y);
          hidden_[i] = tanh(sum);
        }
      }},
      act_{[this] {
        for (auto s : action_) {
          Var<Real> sum = spring_weights(s, n_hidden);
          for (auto i : range(n_hidden)) sum += spring_weights(s, i) * hidden_[i];
          action_[s] = tanh(sum);
        }
      }},
      pull_{[this] {
        for (auto s : length_) {
          I32 a = ends_[s].x, b = ends_[s].y;
          Val<Vector> way = x_[a] - x_[b];
          Val<Real> far = length(way) + 1e-4;
          Val<Real> rest = length_[s] * (1 + actuation_[s] * action_[s]);
          Val<Vector> impulse = dt * stiffness * (far - rest) / far * way;
          impulse_[a] -= impulse;
          impulse_[b] += impulse;
        }
      }},
      move_{[this] {
        for (auto i : x_) {
          Val<Vector> x = x_[i];
          Val<Vector> v =
              std::exp(-dt * damping) * v_[i] - Vector(0, Real(dt * gravity)) + impulse_[i];
          auto touches = x.y + dt * v.y < ground && v.y < -1e-4;
          Val<Real> flight = select(touches, (ground - x.y) / v.y, dt);
          v_[i] = select(touches, Vector(), v);
          x_[i] = x + flight * v;
          impulse_[i] = Vector();
        }
      }},
      measure_{[this] { loss_() = -x_[0].x; }},
      squared_gradient_{[this] {
        Var<double> sum = 0.0;
        for (auto I : hidden_weights) sum += pow(cast<double>(hidden_weights.grad()[I]), 2);
        for (auto I : spring_weights) sum += pow(cast<double>(spring_weights.grad()[I]), 2);
        return sum;
      }},
      hidden_descent_(hidden_weights),
      spring_descent_(spring_weights) {
  for (size_t i = 0; i < robot.masses.size(); i++)
    start_.set(i, Vector(Real(robot.masses[i].x), Real(robot.masses[i].y)));
  for (size_t s = 0; s < robot.springs.size(); s++) {
    ends_.set(s, {robot.springs[s].a, robot.springs[s].b});
    length_.set(s, Real(robot.springs[s].length));
    actuation_.set(s, Real(robot.springs[s].actuation));
  }
  std::mt19937 generator(setup.seed);
  randomise(hidden_weights, 2, generator);
  randomise(spring_weights, 3, generator);
}

template <class Real>
void DiffRobot<Real>::forward() {
  begin_();
  for (int t = 0; t + 1 < setup_.steps; t++) {
    find_centre_();
    think_(t);
    act_();
    pull_();
    move_();
  }
  measure_();
}

template <class Real>
double DiffRobot<Real>::loss() {
  forward();
  return double(loss_.at({}));
}

template <class Real>
double DiffRobot<Real>::loss_and_gradient() {
  hidden_weights.grad().fill(0);
  spring_weights.grad().fill(0);
  return differentiate(loss_, quern::wrt(hidden_weights, spring_weights), [this] { forward(); });
}

template <class Real>
void DiffRobot<Real>::step() {
  const double rate = setup_.rate / (std::sqrt(double(squared_gradient_())) + 1e-6);
  hidden_descent_.step(rate);
  spring_descent_.step(rate);
}

template class DiffRobot<float>;
template class DiffRobot<double>;

}  // namespace examples
