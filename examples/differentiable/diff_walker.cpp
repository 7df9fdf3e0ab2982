#include "examples/differentiable/diff_walker.h"

#include <cmath>
#include <iterator>

namespace examples {

namespace qn = quern;
using namespace qn::lang;

namespace {

constexpr double dt = 0.001, ground = 0.1, gravity = 9.8, friction = 1, damping = 10;
constexpr double rest = 0.12, stiffness = 15, actuation = 0.05, omega = 30;
constexpr double goal_x = 0.9, goal_y = 0.15;
constexpr double share = 0.5;  ///< of what would stop a corner: others touch the ground too
constexpr int n_waves = 10;

constexpr struct {
  double x, y, half_width, half_height;
} bodies[] = {{0.3, 0.25, 0.15, 0.03},
              {0.2, 0.15, 0.03, 0.02},
              {0.3, 0.15, 0.03, 0.02},
              {0.4, 0.15, 0.03, 0.02}};
constexpr struct {
  int foot;
  double at;  ///< to the right of the first body's centre
} springs[] = {{1, -0.03}, {1, -0.1}, {2, -0.03}, {2, 0.03}, {3, 0.03}, {3, 0.1}};
constexpr int n_bodies = std::size(bodies), n_springs = std::size(springs);

template <class Real>
using Vector = qn::Vec<Real, 2>;

template <class Real>
Val<Real> cross(const Val<Vector<Real>>& a, const Val<Vector<Real>>& b) {
  return a.x * b.y - a.y * b.x;
}
template <class Real>
Val<Vector<Real>> turned(const Val<Vector<Real>>& a, const Val<Real>& angle) {
  Val<Real> c = cos(angle), s = sin(angle);
  return vec(c * a.x - s * a.y, s * a.x + c * a.y);
}

/// What an impulse does to a body, per unit.
template <class Real>
struct Inertia {
  Val<Real> by_mass, by_moment;
  explicit Inertia(const Val<Vector<Real>>& half)
      : by_mass(1 / (4 * half.x * half.y)), by_moment(3 * by_mass / dot(half, half)) {}
  /// How fast a point at `arm` from the centre becomes along `direction` by an impulse in it.
  Val<Real> yields(const Val<Vector<Real>>& arm, const Vector<Real>& direction) const {
    Val<Real> lever = arm.x * direction.y - arm.y * direction.x;
    return by_mass + lever * lever * by_moment;
  }
};

}  // namespace

template <class Real>
DiffWalker<Real>::DiffWalker(const qn::Device& device, const Setup& setup)
    : waves{device, {n_springs, n_waves + 1}},
      setup_(setup),
      start_(vectors(device)),
      half_(vectors(device)),
      x_(vectors(device)),
      v_(vectors(device)),
      angle_(numbers(device)),
      spin_(numbers(device)),
      gained_x_(vectors(device)),
      gained_v_(vectors(device)),
      gained_angle_(numbers(device)),
      gained_spin_(numbers(device)),
      ends_{device, {n_springs}},
      offset_{device, {n_springs}},
      action_{device, {n_springs}},
      loss_{device},
      mean_{device, {n_springs, n_waves + 1}},
      square_{device, {n_springs, n_waves + 1}},
      begin_{[this] {
        for (auto b : x_) {
          x_[b] = start_[b];
          v_[b] = Vector();
          angle_[b] = 0;
          spin_[b] = 0;
        }
      }},
      act_{[this](I32 t) {
        for (auto s : action_) {
          Var<Real> sum = waves(s, n_waves);
          for (int k = 0; k < n_waves; k++)
            sum += waves(s, k) * sin(omega * dt * cast<Real>(t) + 2 * M_PI / n_waves * k);
          action_[s] = tanh(sum);
        }
      }},
      collide_{[this] {
        const Vector up(0, 1), along(1, 0);
        for (auto b : x_) {
          Val<Vector> x = x_[b], v = v_[b], half = half_[b];
          Inertia<Real> inertia(half);
          Var<Vector> gained_x = Vector(), gained_v = Vector();
          Var<Real> gained_angle = Real(0), gained_spin = Real(0);
          for (int corner = 0; corner < 4; corner++) {
            const Vector side(corner % 2 ? Real(1) : Real(-1), corner / 2 ? Real(1) : Real(-1));
            Val<Vector> arm = turned<Real>(side * half, angle_[b]);
            Val<Vector> speed = v + spin_[b] * vec(-arm.y, arm.x) - Real(dt * gravity) * up;
            Val<Real> height = x.y + arm.y - ground;
            If(speed.y < 0 && height + dt * speed.y < 0) {
              Val<Real> lift = -share * speed.y / inertia.yields(arm, up);
              Val<Real> drag = clamp(-share * speed.x / inertia.yields(arm, along),
                                     -friction * lift, friction * lift);
              Val<Vector> impulse = vec(drag, lift);
              Val<Real> flight = clamp(-height / min(speed.y, -1e-3), 0, dt);
              Val<Vector> push = inertia.by_mass * impulse;
              Val<Real> turn = inertia.by_moment * cross<Real>(arm + dt * speed, impulse);
              gained_v += push;
              gained_spin += turn;
              gained_x -= flight * push;
              gained_angle -= flight * turn;
            }
          }
          gained_x_[b] = gained_x;
          gained_v_[b] = gained_v;
          gained_angle_[b] = gained_angle;
          gained_spin_[b] = gained_spin;
        }
      }},
      pull_{[this] {
        for (auto s : action_) {
          I32 a = ends_[s].x, b = ends_[s].y;
          Val<Vector> arm = turned<Real>(offset_[s], angle_[a]);
          Val<Vector> way = x_[a] + arm - x_[b];
          Val<Real> far = length(way) + 1e-4;
          Val<Real> wanted = rest * (1 + actuation * action_[s]);
          Val<Vector> impulse = dt * stiffness * (far - wanted) / far * way;
          Inertia<Real> of_a(half_[a]), of_b(half_[b]);
          gained_v_[a] -= of_a.by_mass * impulse;
          gained_v_[b] += of_b.by_mass * impulse;
          gained_spin_[a] -= of_a.by_moment * cross<Real>(arm, impulse);
        }
      }},
      move_{[this] {
        const double kept = std::exp(-dt * damping);
        for (auto b : x_) {
          Val<Vector> v = kept * v_[b] + gained_v_[b] - Vector(0, Real(dt * gravity));
          Val<Real> spin = kept * spin_[b] + gained_spin_[b];
          v_[b] = v;
          spin_[b] = spin;
          x_[b] = x_[b] + dt * v + gained_x_[b];
          angle_[b] = angle_[b] + dt * spin + gained_angle_[b];
        }
      }},
      measure_{[this] { loss_() = length(x_[n_bodies - 1] - Vector(Real(goal_x), Real(goal_y))); }},
      descent_(waves, mean_, square_) {
  for (int b = 0; b < n_bodies; b++) {
    start_.set(b, Vector(Real(bodies[b].x), Real(bodies[b].y)));
    half_.set(b, Vector(Real(bodies[b].half_width), Real(bodies[b].half_height)));
  }
  for (int s = 0; s < n_springs; s++) {
    ends_.set(s, {0, springs[s].foot});
    offset_.set(s, Vector(Real(springs[s].at), 0));
    for (int k = 0; k < n_waves; k++) waves.set(s, k, Real(std::sin(3.0 * (s * n_waves + k))));
  }
}

template <class Real>
qn::Field<qn::Vec<Real, 2>> DiffWalker<Real>::vectors(const qn::Device& device) const {
  return {device, {n_bodies}};
}
template <class Real>
qn::Field<Real> DiffWalker<Real>::numbers(const qn::Device& device) const {
  return {device, {n_bodies}};
}

template <class Real>
void DiffWalker<Real>::forward() {
  begin_();
  for (int t = 0; t < setup_.steps; t++) {
    act_(t);
    collide_();
    pull_();
    move_();
  }
  measure_();
}

template <class Real>
double DiffWalker<Real>::loss() {
  forward();
  return double(loss_.at({}));
}

template <class Real>
double DiffWalker<Real>::loss_and_gradient() {
  waves.grad().fill(0);
  return differentiate(loss_, quern::wrt(waves), [this] { forward(); });
}

template class DiffWalker<float>;
template class DiffWalker<double>;

}  // namespace examples
