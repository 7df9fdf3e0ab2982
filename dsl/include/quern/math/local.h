#pragma once
// Algorithms in steps, written once for operands of the host and of the device: numbers that
// change.
#include "quern/math/linear.h"

namespace quern::detail {

/// A number that changes while it is computed.
template <class S>
using local_t = typename std::conditional_t<Device<S>, std::type_identity<Var<elem_t<S>>>,
                                            std::type_identity<S>>::type;
/// The number that a component of M is.
template <class M>
using element_t = std::conditional_t<Device<M>, Val<scalar_t<elem_t<M>>>, scalar_t<elem_t<M>>>;
/// The value it has now.
template <class S, class L>
S now(const L& local) {
  if constexpr (Device<S>)
    return S(local);
  else
    return local;
}
/// Exchanges two of them where `c` holds.
template <class S, class B>
void exchange(const B& c, local_t<S>& x, local_t<S>& y) {
  S first = now<S>(x), second = now<S>(y);
  x = select(c, second, first);
  y = select(c, first, second);
}

}  // namespace quern::detail
