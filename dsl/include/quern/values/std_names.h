#pragma once
// std::sin(value) and its like: functions of <cmath> with a name of Quern's. They have no meaning
// for device values, and the library's own overloads answer with pages. These answer in words. They
// take the base of values, so that each other overload is the better one: a program with `using
// namespace std` calls Quern's functions.
#include "quern/values/ops.h"

namespace quern::detail {
template <class T>
void refuse_std_function() {
  static_assert(never<T>,
                "quern: a function of std takes no device value; leave out `std::`: write sin(x), "
                "pow(x, y), abs(x)");
}
}  // namespace quern::detail

namespace std {
#define QUERN_OF_ONE(name)                              \
  template <class T>                                    \
  quern::Val<T> name(const quern::detail::Common<T>&) { \
    quern::detail::refuse_std_function<T>();            \
    return quern::Val<T>(quern::detail::Ids<T>{});      \
  }
#define QUERN_OF_TWO(name)                                        \
  template <class T, quern::detail::Operand U>                    \
  quern::Val<T> name(const quern::detail::Common<T>&, const U&) { \
    quern::detail::refuse_std_function<T>();                      \
    return quern::Val<T>(quern::detail::Ids<T>{});                \
  }                                                               \
  template <quern::detail::Host U, class T>                       \
  quern::Val<T> name(const U&, const quern::detail::Common<T>&) { \
    quern::detail::refuse_std_function<T>();                      \
    return quern::Val<T>(quern::detail::Ids<T>{});                \
  }
QUERN_OF_ONE(abs)
QUERN_OF_ONE(sqrt)
QUERN_OF_ONE(cbrt)
QUERN_OF_ONE(floor)
QUERN_OF_ONE(ceil)
QUERN_OF_ONE(trunc)
QUERN_OF_ONE(round)
QUERN_OF_ONE(sin)
QUERN_OF_ONE(cos)
QUERN_OF_ONE(tan)
QUERN_OF_ONE(asin)
QUERN_OF_ONE(acos)
QUERN_OF_ONE(atan)
QUERN_OF_ONE(sinh)
QUERN_OF_ONE(cosh)
QUERN_OF_ONE(tanh)
QUERN_OF_ONE(asinh)
QUERN_OF_ONE(acosh)
QUERN_OF_ONE(atanh)
QUERN_OF_ONE(exp)
QUERN_OF_ONE(exp2)
QUERN_OF_ONE(expm1)
QUERN_OF_ONE(log)
QUERN_OF_ONE(log2)
QUERN_OF_ONE(log10)
QUERN_OF_ONE(log1p)
QUERN_OF_ONE(erf)
QUERN_OF_ONE(erfc)
QUERN_OF_ONE(tgamma)
QUERN_OF_ONE(lgamma)
QUERN_OF_ONE(isnan)
QUERN_OF_ONE(isinf)
QUERN_OF_ONE(isfinite)
QUERN_OF_ONE(isnormal)
QUERN_OF_ONE(signbit)
QUERN_OF_TWO(pow)
QUERN_OF_TWO(atan2)
QUERN_OF_TWO(hypot)
QUERN_OF_TWO(fmod)
QUERN_OF_TWO(remainder)
QUERN_OF_TWO(fmin)
QUERN_OF_TWO(fmax)
QUERN_OF_TWO(copysign)
#undef QUERN_OF_ONE
#undef QUERN_OF_TWO
}  // namespace std
