#pragma once
// Elementary and special functions, of vectors by component, for operands of the host and of the
// device. Their special values stand in docs/semantics.md, their error bounds in docs/math.md; on
// the host they are the C library's.
#include "quern/math/functions.h"

namespace quern::lang {

#define QUERN_ELEMENTARY(name)                                                   \
  template <detail::DeviceUniform U>                                             \
  auto name(U&& u, Loc l = Loc::here()) {                                        \
    using T = detail::elem_t<U>;                                                 \
    static_assert(detail::Takes<T, true>::ok);                                   \
    return detail::map<T>(detail::Op::name, std::forward<U>(u).quern_ids(l), l); \
  }                                                                              \
  template <detail::HostFloat U>                                                 \
  constexpr auto name(const U& u) {                                              \
    return detail::host_map(                                                     \
        [](auto v) {                                                             \
          if constexpr (sizeof v == 4)                                           \
            return __builtin_##name##f(v);                                       \
          else                                                                   \
            return __builtin_##name(v);                                          \
        },                                                                       \
        u);                                                                      \
  }
QUERN_ELEMENTARY(sin)
QUERN_ELEMENTARY(cos)
QUERN_ELEMENTARY(tan)
QUERN_ELEMENTARY(asin)
QUERN_ELEMENTARY(acos)
QUERN_ELEMENTARY(atan)
QUERN_ELEMENTARY(sinh)
QUERN_ELEMENTARY(cosh)
QUERN_ELEMENTARY(tanh)
QUERN_ELEMENTARY(asinh)
QUERN_ELEMENTARY(acosh)
QUERN_ELEMENTARY(atanh)
QUERN_ELEMENTARY(exp)
QUERN_ELEMENTARY(exp2)
QUERN_ELEMENTARY(expm1)
QUERN_ELEMENTARY(log)
QUERN_ELEMENTARY(log2)
QUERN_ELEMENTARY(log10)
QUERN_ELEMENTARY(log1p)
QUERN_ELEMENTARY(cbrt)
QUERN_ELEMENTARY(erf)
QUERN_ELEMENTARY(erfc)
QUERN_ELEMENTARY(tgamma)
QUERN_ELEMENTARY(lgamma)
#undef QUERN_ELEMENTARY

/// 1 / √u, where a GPU has an instruction for it.
template <detail::DeviceUniform U>
auto rsqrt(U&& u, Loc l = Loc::here()) {
  using T = detail::elem_t<U>;
  static_assert(detail::Takes<T, true>::ok);
  return detail::map<T>(detail::Op::rsqrt, std::forward<U>(u).quern_ids(l), l);
}
template <detail::HostFloat U>
constexpr auto rsqrt(const U& u) {
  return 1 / sqrt(u);
}

#define QUERN_ELEMENTARY(name)                                 \
  template <class A, class B>                                  \
    requires detail::OneDevice<A, B>                           \
  auto name(A&& a, B&& b, Loc l = Loc::here()) {               \
    using T = detail::meet_t<A, B>;                            \
    static_assert(detail::Takes<T, true>::ok);                 \
    auto x = detail::meeting<T>(std::forward<A>(a), l);        \
    auto y = detail::meeting<T>(std::forward<B>(b), l);        \
    return detail::map<T>(detail::Op::name, x, y, l);          \
  }                                                            \
  template <class A, class B>                                  \
    requires detail::HostPair<A, B>                            \
  constexpr auto name(const A& a, const B& b) {                \
    using S = detail::scalar_t<detail::host_meet_t<A, B>>;     \
    return detail::host_map(                                   \
        [](S x, S y) -> S {                                    \
          if constexpr (sizeof x == 4)                         \
            return S(__builtin_##name##f(float(x), float(y))); \
          else                                                 \
            return S(__builtin_##name(double(x), double(y)));  \
        },                                                     \
        a, b);                                                 \
  }
QUERN_ELEMENTARY(pow)
QUERN_ELEMENTARY(atan2)
QUERN_ELEMENTARY(hypot)
QUERN_ELEMENTARY(fmod)       // x - y·trunc(x / y), exact
QUERN_ELEMENTARY(remainder)  // x - y·round(x / y), ties to even, exact
#undef QUERN_ELEMENTARY

}  // namespace quern::lang

namespace quern {
// Found through the operands' namespace, too.
using lang::acos;
using lang::acosh;
using lang::asin;
using lang::asinh;
using lang::atan;
using lang::atan2;
using lang::atanh;
using lang::cbrt;
using lang::cos;
using lang::cosh;
using lang::erf;
using lang::erfc;
using lang::exp;
using lang::exp2;
using lang::expm1;
using lang::fmod;
using lang::hypot;
using lang::lgamma;
using lang::log;
using lang::log10;
using lang::log1p;
using lang::log2;
using lang::pow;
using lang::remainder;
using lang::rsqrt;
using lang::sin;
using lang::sinh;
using lang::tan;
using lang::tanh;
using lang::tgamma;
}  // namespace quern
