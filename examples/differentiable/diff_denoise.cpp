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
      measure_{[this] {
        Var<Real> loss = Real(0);
        auto u = bordered(picture, border::clamp);
        for (auto [i, j] : picture) {
          Val<Real> here = picture(i, j), off = here - seen_(i, j);
          Val<Real> down = u(i + 1, j) - here, right = u(i, j + 1) - here;
          Val<Real> steep = sqrt(down * down + right * right + setup_.softness * setup_.softness);
          loss += 0.5 * off * off + setup_.weight * steep;
        }
        return loss;
      }},
      differentiate_(qn::value_and_grad(measure_, qn::wrt(picture))),
      descent_(picture) {
  qn::Kernel copy = [&] {
    for (auto I : picture) picture[I] = seen[I];
  };
  copy();
}

template <class Real>
double DiffDenoise<Real>::loss() {
  return double(measure_());
}

template <class Real>
double DiffDenoise<Real>::loss_and_gradient() {
  return double(differentiate_().value());
}

template class DiffDenoise<float>;
template class DiffDenoise<double>;

}  // namespace examples
