#include "examples/differentiable/diff_wave.h"

#include <quern/sample.h>

namespace examples {

namespace qn = quern;
using namespace qn::lang;

template <class Real>
DiffWave<Real>::DiffWave(const qn::Device& device, const Setup& setup)
    : start{device, {setup.side, setup.side}},
      target{device, {setup.side, setup.side}},
      setup_(setup),
      even_{device, {setup.side, setup.side}},
      odd_{device, {setup.side, setup.side}},
      loss_{device},
      begin_{[this] {
        for (auto I : start) {  // at rest: two states are the same
          even_[I] = start[I];
          odd_[I] = start[I];
        }
        loss_() = 0;
      }},
      advance_{
          [](qn::Field<Real, 2> now, qn::Field<Real, 2> other) {  // the state before, then behind
            auto u = bordered(now, border::constant(0));
            for (auto [i, j] : now) {
              auto around = u(i - 1, j) + u(i + 1, j) + u(i, j - 1) + u(i, j + 1);
              other(i, j) = 2 * now(i, j) - other(i, j) + (around - 4 * now(i, j)) / 3;
            }
          }},
      measure_{[this](qn::Field<Real, 2> height) {
        const double cell = 1.0 / setup_.side / setup_.side;
        for (auto I : height) {
          auto off = height[I] - target[I];
          loss_() += cell * off * off;
        }
      }},
      descent_(start) {
  qn::Kernel draw = [&] {
    for (auto [i, j] : target) {
      Val<Real> x = (cast<Real>(j) + 0.5) / setup.side - 0.5,
                y = (cast<Real>(i) + 0.5) / setup.side - 0.5;
      Val<Real> r = sqrt(x * x + y * y);
      auto ring = r > 0.28 && r < 0.36;
      auto bars = r < 0.2 && abs(x) > 0.04 && abs(y) < 0.15;
      target(i, j) = select(ring || bars, Real(1), Real(0));
    }
  };
  draw();
}

template <class Real>
void DiffWave<Real>::forward() {
  begin_();
  for (int s = 1; s <= setup_.steps; s++) {
    if (s % 2 == 0)
      advance_(odd_, even_);
    else
      advance_(even_, odd_);
  }
  measure_(reached());
}

template <class Real>
double DiffWave<Real>::loss() {
  forward();
  return double(loss_.at({}));
}

template <class Real>
double DiffWave<Real>::loss_and_gradient() {
  start.grad().fill(0);
  return differentiate(loss_, quern::wrt(start), [this] { forward(); });
}

template class DiffWave<float>;
template class DiffWave<double>;

}  // namespace examples
