#include "examples/differentiable/diff_render.h"

#include <quern/sample.h>

#include <cmath>

namespace examples {

namespace qn = quern;
using namespace qn::lang;

template <class Real>
DiffRender<Real>::DiffRender(const qn::Device& device, const Setup& setup)
    : cloud{device, {setup.side, setup.side, setup.side}},
      pictures{device, {setup.views, setup.width, setup.width}},
      targets{device, {setup.views, setup.width, setup.width}},
      setup_(setup),
      loss_{device},
      mean_{device, {setup.side, setup.side, setup.side}},
      square_{device, {setup.side, setup.side, setup.side}},
      begin_{[this] { loss_() = 0; }},
      render_{[this](Volume volume, Pictures to) {
        const double reach = std::sqrt(2.0), length = 2 * reach / setup_.samples;
        auto index = [&](const Val<Real>& x) { return (x + 1) * (0.5 * (setup_.side - 1)); };
        for (auto [view, i, j] : to) {
          Val<Real> angle = M_PI / setup_.views * cast<Real>(view);
          Val<Real> c = cos(angle), s = sin(angle);
          Val<Real> height = 1 - (2 * cast<Real>(i) + 1) / setup_.width;
          Val<Real> across = (2 * cast<Real>(j) + 1) / setup_.width - 1;
          Var<Real> light = Real(0), passes = Real(1);
          for (auto k : range(setup_.samples)) {
            Val<Real> far = (cast<Real>(k) + 0.5) * length;
            Val<Real> x = c * across - s * (far - reach), y = s * across + c * (far - reach);
            Val<Real> root = sample(volume, index(x), index(height), index(y), border::constant(0));
            Val<Real> kept = exp(-length * root * root);
            light += passes * (1 - kept) * exp(-0.5 * far);
            passes *= kept;
          }
          to(view, i, j) = light;
        }
      }},
      measure_{[this] {
        const double part = 1.0 / double(pictures.size());
        for (auto I : pictures) {
          auto off = pictures[I] - targets[I];
          loss_() += part * off * off;
        }
      }},
      descent_(cloud, mean_, square_) {
  qn::Kernel draw = [&] {
    for (auto [a, h, b] : cloud) {
      const double unit = 2.0 / (setup.side - 1);
      Val<Real> x = unit * cast<Real>(a) - 1, z = unit * cast<Real>(h) - 1;
      Val<Real> y = unit * cast<Real>(b) - 1;
      Val<Real> from_circle = sqrt(x * x + y * y) - 0.6;
      auto ring = from_circle * from_circle + z * z < 0.04;
      auto ball = x * x + y * y + (z - 0.5) * (z - 0.5) < 0.09;
      cloud(a, h, b) = select(ring || ball, Real(2), Real(0));
    }
  };
  draw();
  render_(cloud, targets);
  cloud.fill(Real(0.3));
}

template <class Real>
void DiffRender<Real>::forward() {
  begin_();
  render_(cloud, pictures);
  measure_();
}

template <class Real>
double DiffRender<Real>::loss() {
  forward();
  return double(loss_.at({}));
}

template <class Real>
double DiffRender<Real>::loss_and_gradient() {
  cloud.grad().fill(0);
  return differentiate(loss_, quern::wrt(cloud), [this] { forward(); });
}

template class DiffRender<float>;
template class DiffRender<double>;

}  // namespace examples
