#include "examples/differentiable/diff_denoise.h"

#include <quern/sample.h>

namespace examples {

namespace qn = quern;
using namespace qn::lang;

template <class Real>
DiffDenoise<Real>::DiffDenoise(const qn::Device& device, const Picture& seen, const Setup& setup)
    : picture{device, {seen.shape(0), seen.shape(1)}},
      setup_(setup),
      seen_(seen),
      loss_{device},
      begin_{[this] { loss_() = 0; }},
      measure_{[this] {
        auto u = bordered(picture, border::clamp);
        for (auto [i, j] : picture) {
          Val<Real> here = picture(i, j), off = here - seen_(i, j);
          Val<Real> down = u(i + 1, j) - here, right = u(i, j + 1) - here;
          Val<Real> steep = sqrt(down * down + right * right + setup_.softness * setup_.softness);
          loss_() += 0.5 * off * off + setup_.weight * steep;
        }
      }},
      descent_(picture) {
  qn::Kernel copy = [&] {
    for (auto I : picture) picture[I] = seen[I];
  };
  copy();
}

template <class Real>
void DiffDenoise<Real>::forward() {
  begin_();
  measure_();
}

template <class Real>
double DiffDenoise<Real>::loss() {
  forward();
  return double(loss_.at({}));
}

template <class Real>
double DiffDenoise<Real>::loss_and_gradient() {
  picture.grad().fill(0);
  return differentiate(loss_, quern::wrt(picture), [this] { forward(); });
}

template class DiffDenoise<float>;
template class DiffDenoise<double>;

}  // namespace examples
