#include "examples/differentiable/diff_smoke.h"

#include <quern/sample.h>

#include <string>

namespace examples {

namespace qn = quern;
using namespace qn::lang;

template <class Real>
DiffSmoke<Real>::DiffSmoke(const qn::Device& device, const Setup& setup, qn::Loc loc)
    : wind{device, {setup.side, setup.side}},
      start{device, {setup.side, setup.side}},
      target{device, {setup.side, setup.side}},
      setup_(setup),
      flow_{device, {setup.side, setup.side}},
      carried_{device, {setup.side, setup.side}},
      even_{device, {setup.side, setup.side}},
      odd_{device, {setup.side, setup.side}},
      divergence_{device, {setup.side, setup.side}},
      pressure_{device, {setup.side, setup.side}},
      next_pressure_{device, {setup.side, setup.side}},
      loss_{device},
      begin_{[this] {
        for (auto I : wind) {
          flow_[I] = wind[I];
          even_[I] = start[I];
        }
        loss_() = 0;
      }},
      carry_flow_{[this] {
        for (auto [i, j] : flow_) {
          Val<qn::Vec<Real, 2>> v = flow_(i, j);
          carried_(i, j) = sample(flow_, cast<Real>(i) - v.x, cast<Real>(j) - v.y, border::wrap);
        }
      }},
      diverge_{[this] {
        auto v = bordered(carried_, border::wrap);
        for (auto [i, j] : divergence_) {
          divergence_(i, j) = 0.5 * (v(i + 1, j).x - v(i - 1, j).x + v(i, j + 1).y - v(i, j - 1).y);
          pressure_(i, j) = 0;
        }
      }},
      relax_{[this](Scalars from, Scalars to) {
        auto p = bordered(from, border::wrap);
        for (auto [i, j] : to)
          to(i, j) =
              0.25 * (p(i - 1, j) + p(i + 1, j) + p(i, j - 1) + p(i, j + 1) - divergence_(i, j));
      }},
      project_{[this] {
        auto p = bordered(pressure_, border::wrap);
        for (auto [i, j] : flow_)
          flow_(i, j) =
              carried_(i, j) - 0.5 * vec(p(i + 1, j) - p(i - 1, j), p(i, j + 1) - p(i, j - 1));
      }},
      carry_{[this](Scalars from, Scalars to) {
        for (auto [i, j] : to) {
          Val<qn::Vec<Real, 2>> v = flow_(i, j);
          to(i, j) = sample(from, cast<Real>(i) - v.x, cast<Real>(j) - v.y, border::wrap);
        }
      }},
      measure_{[this](Scalars smoke) {
        const double part = 1.0 / setup_.side / setup_.side;
        for (auto I : smoke) {
          auto off = smoke[I] - target[I];
          loss_() += part * off * off;
        }
      }},
      descent_(wind) {
  if (setup.pressure % 2 != 0)
    throw qn::Error(loc, "the number of Jacobi's iterations must be even, not " +
                             std::to_string(setup.pressure));
  qn::Kernel draw = [&] {
    for (auto [i, j] : target) {
      Val<Real> x = (cast<Real>(j) + 0.5) / setup.side - 0.5;
      Val<Real> y = (cast<Real>(i) + 0.5) / setup.side - 0.5;
      start(i, j) = select((j * 10 / setup.side) % 2 == 0, Real(1), Real(0));
      target(i, j) = select(abs(sqrt(x * x + y * y) - 0.3) < 0.08, Real(1), Real(0));
    }
  };
  draw();
  // What is sampled exactly at an element does not vary with the place, so still air would teach nothing.
  wind.fill({Real(0.01), Real(0.01)});
}

template <class Real>
void DiffSmoke<Real>::forward() {
  begin_();
  for (int s = 1; s <= setup_.steps; s++) {
    carry_flow_();
    diverge_();
    for (int k = 0; k < setup_.pressure; k += 2) {
      relax_(pressure_, next_pressure_);
      relax_(next_pressure_, pressure_);
    }
    project_();
    if (s % 2 == 0)
      carry_(odd_, even_);
    else
      carry_(even_, odd_);
  }
  measure_(reached());
}

template <class Real>
double DiffSmoke<Real>::loss() {
  forward();
  return double(loss_.at({}));
}

template <class Real>
double DiffSmoke<Real>::loss_and_gradient() {
  wind.grad().fill({});
  return differentiate(loss_, quern::wrt(wind), [this] { forward(); });
}

template class DiffSmoke<float>;
template class DiffSmoke<double>;

}  // namespace examples
