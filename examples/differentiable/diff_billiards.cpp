#include "examples/differentiable/diff_billiards.h"

namespace examples {

namespace qn = quern;
using namespace qn::lang;

namespace {
constexpr int layers = 4, balls = 1 + layers * (layers + 1) / 2;
constexpr double dt = 0.003, radius = 0.03, elasticity = 0.8;
constexpr double goal_x = 0.9, goal_y = 0.75;
}  // namespace

template <class Real>
DiffBilliards<Real>::DiffBilliards(const qn::Device& device, const Setup& setup)
    : cue{device, {2}},
      setup_(setup),
      start_{device, {balls}},
      x_{device, {balls}},
      v_{device, {balls}},
      push_{device, {balls}},
      shift_{device, {balls}},
      loss_{device},
      begin_{[this] {
        for (auto i : x_) {
          x_[i] = select(i == 0, cue[0], start_[i]);
          v_[i] = select(i == 0, cue[1], Vector());
        }
      }},
      collide_{[this] {
        for (auto i : x_) {
          Val<Vector> x = x_[i], v = v_[i];
          Var<Vector> push = Vector(), shift = Vector();
          for (auto j : range(balls)) {
            Val<Vector> speed = v - v_[j];
            Val<Vector> way = x - x_[j] + dt * speed;  // at the end of the step
            If(j != i && length(way) < 2 * radius) {
              Val<Real> far = length(way);
              Val<Vector> normal = way / far;
              Val<Real> approach = dot(normal, speed);
              If(approach < 0) {
                Val<Vector> gained = -0.5 * (1 + elasticity) * approach * normal;
                // They met this long before the end of the step.
                Val<Real> since = (far - 2 * radius) / min(approach, -1e-3);
                push += gained;
                shift += min(since - dt, 0) * gained;
              }
            }
          }
          push_[i] = push;
          shift_[i] = shift;
        }
      }},
      move_{[this] {
        for (auto i : x_) {
          Val<Vector> v = v_[i] + push_[i];
          v_[i] = v;
          x_[i] = x_[i] + dt * v + shift_[i];
        }
      }},
      measure_{[this] {
        Val<Vector> off = x_[balls - 1] - Vector(Real(goal_x), Real(goal_y));
        loss_() = dot(off, off);
      }},
      descent_(cue) {
  int ball = 1;
  for (int i = 0; i < layers; i++)
    for (int j = 0; j <= i; j++)
      start_.set(ball++,
                 Vector(Real(i * 2 * radius + 0.5), Real(j * 2 * radius + 0.5 - i * radius * 0.7)));
  cue.set(0, Vector(Real(0.1), Real(0.5)));
  cue.set(1, Vector(Real(0.3), Real(0)));
}

template <class Real>
void DiffBilliards<Real>::forward() {
  begin_();
  for (int s = 0; s < setup_.steps; s++) {
    collide_();
    move_();
  }
  measure_();
}

template <class Real>
double DiffBilliards<Real>::loss() {
  forward();
  return double(loss_.at({}));
}

template <class Real>
double DiffBilliards<Real>::loss_and_gradient() {
  cue.grad().fill({});
  return differentiate(loss_, quern::wrt(cue), [this] { forward(); });
}

template class DiffBilliards<float>;
template class DiffBilliards<double>;

}  // namespace examples
