#pragma once
// Operands: host values that adopt a device type, and values converted to a known one.
#include "quern/values/record.h"

namespace quern::detail {

/// A host number as a constant of scalar S. The recorder refuses what S cannot represent.
template <class S, HostNumber H>
Id host_constant(H v, Loc loc) {
  constexpr Scalar s = scalar_of<S>();
  if constexpr (is_floating<H>)
    return constant(s, double(v), loc);
  else if constexpr (std::is_signed_v<H>)
    return constant(s, int64_t(v), loc);
  else
    return constant(s, uint64_t(v), loc);
}

/// The scalars of operand `u`: of a device value as they are, of a host value as S (of a structure,
/// as its own).
template <class S, Operand U>
auto operand_ids(U&& u, Loc loc) {
  if constexpr (Device<U>)
    return std::forward<U>(u).quern_ids(loc);
  else {
    using T = rebind_t<bare<U>, S>;
    Ids<T> out;
    int k = 0;
    Traits<bare<U>>::each(u, [&](const auto& v) {
      if constexpr (is_structure<T>)
        out.v[k++] = host_constant<bare<decltype(v)>>(v, loc);
      else
        out.v[k++] = host_constant<S>(v, loc);
    });
    return out;
  }
}

/// The scalars of a result or argument, of a host value in its own types.
template <Operand U>
auto result_ids(U&& u, Loc loc) {
  return operand_ids<scalar_t<canonical_t<elem_t<U>>>>(std::forward<U>(u), loc);
}

/// May a U initialise a T whose scalars are of one type?
template <class T, class U>
struct Initialises {
  using S = scalar_t<T>;
  using F = scalar_t<elem_t<U>>;
  static constexpr bool fits_shape = is_scalar<elem_t<U>> || same_shape<T, elem_t<U>>;
  static constexpr bool narrow = Device<U> && narrows<F, S>();
  static constexpr bool to_bool = narrow && std::is_same_v<S, bool>;
  static constexpr bool to_integer = narrow && !to_bool && std::is_integral_v<S>;
  static constexpr bool from_floating = to_integer && is_floating<F>;
  static constexpr bool inexact =
      Host<U> && ((is_floating<F> && std::is_integral_v<S>) ||
                  (std::is_same_v<S, bool> && !std::is_same_v<F, bool>));
  static_assert(fits_shape, "quern: the number of components differs");
  static_assert(!to_bool, "quern: a number narrows to bool here; write a comparison, as in n != 0");
  static_assert(!from_floating,
                "quern: a floating value narrows to an integer here; write cast<int>(value), or "
                "declare Var<float> what receives it (`Var s = 0` is a Var<int>)");
  static_assert(!to_integer || from_floating,
                "quern: a wide integer narrows here; write cast<T>(value) of the narrow type T");
  static_assert(!narrow || to_bool || to_integer,
                "quern: a wide floating value narrows here, as double to float; write "
                "cast<float>(value), or declare double what receives it (0.1, also in `Var s = "
                "0.1`, is a double, 0.1f a float)");
  static_assert(!inexact,
                "quern: a host value of this type does not initialise the device type; write "
                "cast<T>(value), or a comparison for bool");
  static constexpr bool ok = fits_shape && !narrow && !inexact;
};
/// A structure is initialised by its like only.
template <class T, class U>
  requires(is_structure<T> || is_structure<elem_t<U>>)
struct Initialises<T, U> {
  static constexpr bool ok = std::is_same_v<T, elem_t<U>>;
  static_assert(ok,
                "quern: a structure is initialised by one of its own type, an array likewise, and "
                "nothing else by either");
};

/// Initialises or assigns a T: no narrowing; a scalar fills a vector or matrix.
template <class T, Operand U>
Ids<T> converted(U&& u, Loc loc) {
  if constexpr (is_structure<T> || is_structure<elem_t<U>>) {
    if constexpr (std::is_same_v<T, elem_t<U>>)
      return operand_ids<void>(std::forward<U>(u), loc);
    else
      return static_cast<void>(Initialises<T, U>::ok), Ids<T>{};
  } else if constexpr (!Initialises<T, U>::ok) {
    return Ids<T>{};
  } else {
    Ids<T> out;
    auto from = operand_ids<scalar_t<T>>(std::forward<U>(u), loc);
    constexpr int n = count_of<elem_t<U>>;
    for (int k = 0; k < count_of<T>; k++) {
      out.v[k] = n == 1 && k > 0 ? out.v[0] : from.v[n == 1 ? 0 : k];
      if constexpr (Device<U> && type_of<elem_t<U>> != type_of<T>)
        if (n > 1 || k == 0) out.v[k] = convert(out.v[k], type_of<T>, loc);
    }
    return out;
  }
}

/// What was recorded before a left operand ended; only && and || need it.
template <class T>
struct Recorded {};
template <>
struct Recorded<bool> {
  Position position = detail::position();
};

}  // namespace quern::detail

namespace quern {

/// A left operand of exactly T, and where it was written.
template <class T>
struct At {
  detail::Ids<T> ids;
  Loc loc;
  [[no_unique_address]] detail::Recorded<T> recorded = {};
  QUERN_RECORDS At(const Val<T>& v, Loc l = Loc::here()) : ids(v.quern_ids(l)), loc(l) {}
  QUERN_RECORDS At(Val<T>&& v, Loc l = Loc::here()) : ids(std::move(v).quern_ids(l)), loc(l) {}
  QUERN_RECORDS At(const Var<T>& v, Loc l = Loc::here()) : ids(v.quern_ids(l)), loc(l) {}
  QUERN_RECORDS At(const Elem<T>& v, Loc l = Loc::here()) : ids(v.quern_ids(l)), loc(l) {}
  QUERN_RECORDS At(Elem<T>&& v, Loc l = Loc::here()) : ids(std::move(v).quern_ids(l)), loc(l) {}
  QUERN_RECORDS At(const Item<T>& v, Loc l = Loc::here()) : ids(v.quern_ids(l)), loc(l) {}
  QUERN_RECORDS At(Item<T>&& v, Loc l = Loc::here()) : ids(std::move(v).quern_ids(l)), loc(l) {}
};

/// Anything that may initialise a T, and where it was written.
template <class T>
struct Arg {
  detail::Ids<T> ids;
  Loc loc;
  template <detail::Operand U>
    requires(!std::is_same_v<detail::bare<U>, Arg>)
  QUERN_RECORDS Arg(U&& u, Loc l = Loc::here())
      : ids(detail::converted<T>(std::forward<U>(u), l)), loc(l) {}
  detail::Id id() const { return ids.v[0]; }
};

namespace detail {

/// An index of one axis: i32, or i64 where the operand is wider than that.
struct Index {
  Id id;
  Loc loc;
  template <Operand U>
  Index(U&& u, Loc l = Loc::here()) : loc(l) {
    using S = scalar_t<elem_t<U>>;
    constexpr bool scalar = is_scalar<elem_t<U>>, integer = Integer<S>;
    static_assert(scalar,
                  "quern: this index is a vector, an index of each axis: write u[i], or name its "
                  "components, as in for (auto [i, j] : u) u(i, j)");
    static_assert(integer || !scalar, "quern: an index is an integer; write cast<int>(value)");
    if constexpr (!integer || !scalar) {
      id = {};
    } else if constexpr (Host<U>) {
      bool narrow = std::in_range<int32_t>(+u);
      id = narrow ? host_constant<int32_t>(u, l) : host_constant<int64_t>(u, l);
    } else {
      constexpr bool wide = sizeof(S) == 8 || std::is_same_v<S, uint32_t>;
      id = convert(std::forward<U>(u).quern_ids(l).v[0], wide ? Scalar::i64 : Scalar::i32, l);
    }
  }
};

/// The index of all N axes at once: an integer vector.
template <int N>
struct IndexVector {
  Id id[size_t(N)];
  Loc loc;
  template <Operand U>
    requires(!is_scalar<elem_t<U>>)
  QUERN_RECORDS IndexVector(U&& u, Loc l = Loc::here()) : loc(l) {
    using S = scalar_t<elem_t<U>>;
    constexpr bool integer = Integer<S>, matches = count_of<elem_t<U>> == N;
    static_assert(integer, "quern: an index is a vector of integers; write cast<int>(value)");
    static_assert(matches, "quern: the index has not one component per axis");
    auto from = operand_ids<canonical_t<S>>(std::forward<U>(u), l);
    constexpr bool wide = sizeof(S) == 8 || std::is_same_v<S, uint32_t>;
    for (int k = 0; k < N; k++) id[k] = convert(from.v[k], wide ? Scalar::i64 : Scalar::i32, l);
  }
};

}  // namespace detail
}  // namespace quern
