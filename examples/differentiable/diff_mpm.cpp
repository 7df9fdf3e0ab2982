#include "examples/differentiable/diff_mpm.h"

#include <array>

namespace examples {

namespace qn = quern;
using namespace qn::lang;

namespace {

constexpr int n_grid = 120;
constexpr double dx = 1.0 / n_grid, inv_dx = n_grid, dt = 3e-4, stiffness = 100, gravity = 9.8;
constexpr double target_x = 0.3, target_y = 0.6;

/// Quadratic B-splines: weights of the 3 × 3 nodes from `base` on, at the distance `f` from it in
/// cells.
template <class Real>
struct Spline {
  using Vector = Val<qn::Vec<Real, 2>>;
  IVec2 base;
  Vector f;
  std::array<Vector, 3> w;
  /// body(node, weight, way to it in cells) for each of them.
  template <class F>
  void each(F body) const {
    for (int i = 0; i < 3; i++)
      for (int j = 0; j < 3; j++) {
        Val<Real> weight = w[size_t(i)].x * w[size_t(j)].y;
        body(base + ivec2(i, j), weight, qn::Vec<Real, 2>(Real(i), Real(j)) - f);
      }
  }
};
template <class Real>
Spline<Real> spline(const Val<qn::Vec<Real, 2>>& x) {
  auto base = cast<int>(x * inv_dx - 0.5);
  auto f = x * inv_dx - cast<Real>(base);
  auto a = 1.5 - f, b = f - 1, c = f - 0.5;
  return {base, f, {0.5 * a * a, 0.75 - b * b, 0.5 * c * c}};
}

/// The rotation of the polar decomposition.
template <class Real>
Val<qn::Mat<Real, 2, 2>> rotation(const Val<qn::Mat<Real, 2, 2>>& m) {
  Val<Real> c = m(0, 0) + m(1, 1), s = m(1, 0) - m(0, 1);
  Val<Real> scale = 1 / sqrt(c * c + s * s);
  return {scale * c, -scale * s, scale * s, scale * c};
}

}  // namespace

template <class Real>
DiffMpm<Real>::DiffMpm(const qn::Device& device, const Setup& setup)
    : velocity{device, {1}},
      setup_(setup),
      x_{device, {setup.side * setup.side}},
      v_{device, {setup.side * setup.side}},
      affine_{device, {setup.side * setup.side}},
      deformation_{device, {setup.side * setup.side}},
      mass_{device, {n_grid, n_grid}},
      flow_{device, {n_grid, n_grid}},
      centre_{device, {1}},
      loss_{device},
      begin_{[this] {
        for (auto p : x_) {
          Val<qn::Vec<int, 2>> place = vec(p / setup_.side, p % setup_.side);
          x_[p] = dx * (0.5 * cast<Real>(place) + Vector(10, 25));
          v_[p] = velocity[0];
          affine_[p] = Matrix();
          deformation_[p] = Matrix::identity();
        }
        centre_[0] = Vector();
      }},
      clear_{[this] {
        for (auto I : mass_) {
          mass_[I] = 0;
          flow_[I] = Vector();
        }
      }},
      scatter_{[this] {  // particles to grid; each has mass and volume 1
        for (auto p : x_) {
          Val<Matrix> C = affine_[p];
          Val<Matrix> F = (Matrix::identity() + dt * C) * deformation_[p];
          deformation_[p] = F;
          Val<Real> J = determinant(F);
          Val<Matrix> stress = 2 * stiffness * (F - rotation<Real>(F)) * transpose(F) +
                               stiffness * J * (J - 1) * Matrix::identity();
          Val<Matrix> affine = C - dt * 4 * inv_dx * inv_dx * stress;
          Val<Vector> v = v_[p];
          spline<Real>(x_[p]).each(
              [&](const IVec2& node, const Val<Real>& weight, const Val<Vector>& way) {
                flow_[node] += weight * (v + affine * (dx * way));
                mass_[node] += weight;
              });
        }
      }},
      push_{[this] {  // gravity and walls
        for (auto I : mass_) {
          Var<Vector> v = flow_[I] / (mass_[I] + 1e-10);
          v.y -= dt * gravity;
          If(I.x < 3 && v.x < 0) v.x = 0;
          If(I.x > n_grid - 3 && v.x > 0) v.x = 0;
          If(I.y < 3 && v.y < 0) v.y = 0;
          If(I.y > n_grid - 3 && v.y > 0) v.y = 0;
          flow_[I] = v;
        }
      }},
      gather_{[this] {  // grid to particles
        for (auto p : x_) {
          Val<Vector> x = x_[p];
          Var<Vector> v = Vector();
          Var<Matrix> C = Matrix();
          spline<Real>(x).each(
              [&](const IVec2& node, const Val<Real>& weight, const Val<Vector>& way) {
                Val<Vector> u = weight * flow_[node];
                v += u;
                C += 4 * inv_dx * outer(u, way);
              });
          v_[p] = v;
          affine_[p] = C;
          x_[p] = x + dt * v;
        }
      }},
      average_{[this] {
        for (auto p : x_) centre_[0] += x_[p] / cast<Real>(x_.dim(0));
      }},
      measure_{[this] {
        Val<Vector> off = centre_[0] - Vector(Real(target_x), Real(target_y));
        loss_() = 0.5 * dot(off, off);
      }},
      descent_(velocity) {}

template <class Real>
void DiffMpm<Real>::forward() {
  begin_();
  for (int s = 0; s < setup_.steps; s++) {
    clear_();
    scatter_();
    push_();
    gather_();
  }
  average_();
  measure_();
}

template <class Real>
double DiffMpm<Real>::loss() {
  forward();
  return double(loss_.at({}));
}

template <class Real>
double DiffMpm<Real>::loss_and_gradient() {
  velocity.grad().fill({});
  return differentiate(loss_, quern::wrt(velocity), [this] { forward(); });
}

template class DiffMpm<float>;
template class DiffMpm<double>;

}  // namespace examples
