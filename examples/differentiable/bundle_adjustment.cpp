#include "examples/differentiable/bundle_adjustment.h"

#include <cmath>
#include <random>

namespace examples {

namespace qn = quern;
using namespace qn::lang;

namespace {

/// `p` turned by `turn`, and moved. For vectors of the host and of the device.
template <class V>
V placed(const V& turn, const V& move, const V& p) {
  const V across = cross(turn, p);
  return p + 2 / (1 + dot(turn, turn)) * (across + cross(turn, across)) + move;
}

class Generator {
 public:
  explicit Generator(unsigned seed) : bits_(seed) {}
  double uniform(double low, double high) {
    return low + (high - low) * (double(bits_()) + 0.5) / 4294967296.0;
  }
  double normal() {  // by Box and Muller
    const double radius = std::sqrt(-2 * std::log(uniform(0, 1)));
    return radius * std::cos(uniform(0, 2 * M_PI));
  }
  Scene::Vector vector(double extent) {
    const double x = uniform(-extent, extent), y = uniform(-extent, extent);
    return {x, y, uniform(-extent, extent)};
  }

 private:
  std::mt19937 bits_;
};

}  // namespace

Scene Scene::arc(int cameras, int points, double noise, unsigned seed) {
  Generator random(seed);
  Scene scene;
  scene.noise = noise;
  for (int c = 0; c < cameras; c++) {
    const double angle = 2 * (double(c) + 0.5) / cameras - 1;
    scene.turns.push_back({0.1 * std::sin(3.0 * c), std::tan(0.5 * angle), 0});
    scene.moves.push_back({0, 0, 4});
  }
  for (int p = 0; p < points; p++) scene.points.push_back(random.vector(1));
  for (int c = 0; c < cameras; c++)
    for (int p = 0; p < points; p++) {
      const Vector at =
          placed(scene.turns[size_t(c)], scene.moves[size_t(c)], scene.points[size_t(p)]);
      const double x = at.x / at.z + noise * random.normal();
      scene.sights.push_back({c, p, {x, at.y / at.z + noise * random.normal()}});
    }
  return scene;
}

Scene Scene::displaced(double by, unsigned seed) const {
  Generator random(seed);
  Scene other = *this;
  for (auto* vectors : {&other.turns, &other.moves, &other.points})
    for (Vector& v : *vectors) v = v + random.vector(by);
  return other;
}

template <class Real>
BundleAdjustment<Real>::BundleAdjustment(const qn::Device& device, const Scene& start,
                                         const Setup& setup)
    : parameters{device, {2 * start.turns.size() + start.points.size()}},
      setup_(setup),
      which_{device, {start.sights.size()}},
      seen_{device, {start.sights.size()}},
      residual_{device, {start.sights.size()}},
      change_{device, {2 * start.turns.size() + start.points.size()}},
      rest_{device, {2 * start.turns.size() + start.points.size()}},
      measure_{[&] {
        Var<double> sum = 0.0;
        for (auto s : which_) {
          Val<qn::Vec<Real, 2>> off = residual(int(start.turns.size()), s);
          sum += 0.5 * cast<double>(dot(off, off));
        }
        return sum;
      }},
      differentiate_(qn::value_and_grad(measure_, qn::wrt(parameters))),
      project_{[&] {
        for (auto s : residual_) residual_[s] = residual(int(start.turns.size()), s);
      }},
      begin_{[this] {
        Var<double> squared = 0.0;
        for (auto k : parameters) {
          Val<Vector> downhill = -parameters.grad()[k];
          change_[k] = Vector();
          rest_[k] = downhill;
          parameters.dual()[k] = downhill;
          squared += cast<double>(dot(downhill, downhill));
        }
        return squared;
      }},
      prepare_{[this](Val<Real> damping) {
        for (auto s : residual_) residual_.grad()[s] = residual_.dual()[s];
        for (auto k : parameters) parameters.grad()[k] = damping * parameters.dual()[k];
      }},
      curvature_{[this] {
        Var<double> sum = 0.0;
        for (auto k : parameters)
          sum += cast<double>(dot(parameters.dual()[k], parameters.grad()[k]));
        return sum;
      }},
      advance_{[this](Val<Real> length) {
        Var<double> squared = 0.0;
        for (auto k : parameters) {
          Val<Vector> rest = rest_[k] - length * parameters.grad()[k];
          change_[k] = change_[k] + length * parameters.dual()[k];
          rest_[k] = rest;
          squared += cast<double>(dot(rest, rest));
        }
        return squared;
      }},
      turn_{[this](Val<Real> part) {
        for (auto k : parameters) parameters.dual()[k] = rest_[k] + part * parameters.dual()[k];
      }},
      move_{[this](Val<Real> part) {
        for (auto k : parameters) parameters[k] = parameters[k] + part * change_[k];
      }},
      push_(qn::jvp(project_)),
      pull_(qn::vjp(project_)) {
  std::vector<Vector> values;
  for (const auto* vectors : {&start.turns, &start.moves, &start.points})
    for (const auto& v : *vectors) values.push_back(Vector(Real(v.x), Real(v.y), Real(v.z)));
  parameters.copy_from(values);
  std::vector<qn::Vec<int, 2>> which;
  std::vector<qn::Vec<Real, 2>> seen;
  for (const Scene::Sight& s : start.sights) {
    which.push_back({s.camera, s.point});
    seen.push_back({Real(s.at.x), Real(s.at.y)});
  }
  which_.copy_from(which);
  seen_.copy_from(seen);
}

/// Of sight number `s`: how far what is seen is from what should be.
template <class Real>
Val<qn::Vec<Real, 2>> BundleAdjustment<Real>::residual(int cameras, const I32& s) const {
  I32 camera = which_[s].x, point = which_[s].y;
  Val<Vector> at = placed<Val<Vector>>(parameters[camera], parameters[cameras + camera],
                                       parameters[2 * cameras + point]);
  return at.xy() / at.z - seen_[s];
}

template <class Real>
double BundleAdjustment<Real>::loss() {
  return double(measure_());
}

template <class Real>
double BundleAdjustment<Real>::loss_and_gradient() {
  return differentiate_().value();
}

template <class Real>
void BundleAdjustment<Real>::solve() {
  const auto back = pull_();
  double squared = begin_();
  const double enough = 1e-4 * squared;
  for (int k = 0; k < setup_.most_products && squared > enough; k++) {
    push_();
    prepare_(Real(setup_.damping));
    back();
    const double before = squared;
    squared = advance_(Real(squared / double(curvature_())));
    turn_(Real(squared / before));
  }
}

template <class Real>
void BundleAdjustment<Real>::step() {
  const double before = loss_and_gradient();
  solve();
  move_(Real(1));
  if (loss() < before) {
    setup_.damping *= 0.1;
  } else {
    move_(Real(-1));
    setup_.damping *= 10;
  }
}

template class BundleAdjustment<float>;
template class BundleAdjustment<double>;

}  // namespace examples
