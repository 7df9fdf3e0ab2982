#pragma once
// Functions of the library whose derivative is given by a rule, as it is better than what their code
// would give: decompositions, solutions of systems. A kernel keeps calls of them until it has been
// differentiated.
#include "quern/values/elem.h"

namespace quern::detail {

/// The types of the values that such a function gives: of one, or of a structure with that many
/// members, which names them `parts`.
template <class R>
struct PartsOf {
  using types = typename R::parts;
};
template <class T>
struct PartsOf<Val<T>> {
  using types = Types<T>;
};

template <class T>
Val<T> value_at(const Id* ids) {
  Ids<T> own;
  for (Id& id : own.v) id = *ids++;
  return Val<T>(own);
}
template <class T>
Id* append_ids(const Val<T>& v, Id* to) {
  for (Id id : v.quern_ids(Loc{}).v) *to++ = id;
  return to;
}

/// From values to ids and back, of results R of types T….
template <class R, class T>
struct Flat;
template <class R, class... T>
struct Flat<R, Types<T...>> {
  static constexpr int count = (count_of<T> + ...);
  static void ids(const R& r, Id* to) {
    if constexpr (sizeof...(T) == 1) {
      append_ids(r, to);
    } else if constexpr (sizeof...(T) == 2) {
      const auto& [a, b] = r;
      append_ids(b, append_ids(a, to));
    } else {
      const auto& [a, b, c] = r;
      append_ids(c, append_ids(b, append_ids(a, to)));
    }
  }
  static R values(const Id* ids) {
    return [&]<std::size_t... K>(std::index_sequence<K...>) {
      return R{value_at<T>(ids + first_scalar<K, T...>())...};
    }(std::index_sequence_for<T...>{});
  }
};

/// The operand as a value of the device.
template <class A>
Val<elem_t<A>> device_value(const A& a, [[maybe_unused]] Loc l) {
  if constexpr (Device<A>)
    return Val<elem_t<A>>(a.quern_ids(Loc{}));
  else
    return Val<elem_t<A>>(a, l);
}

/// f(a, b, …) by a function whose derivative the rule of this name gives (ir::Function::derivative).
/// With operands of the device it is a call of what is recorded once a kernel: f of their values,
/// without effects, of its arguments alone, and unable to fail.
template <class F, class... A>
constexpr auto by_rule(const char* rule, Loc l, F f, const A&... a) {
  if constexpr (!(Device<A> || ...)) {
    return f(a...);
  } else {
    using R = decltype(f(std::declval<const Val<elem_t<A>>&>()...));
    using Result = Flat<R, typename PartsOf<R>::types>;
    constexpr int count = (count_of<elem_t<A>> + ...);
    Id arguments[std::size_t(count)], parameters[std::size_t(count)],
        out[std::size_t(Result::count)];
    Id* next = arguments;
    ((next = append_ids(device_value(a, l), next)), ...);
    if (begin_function(rule, arguments, count, Result::count, parameters)) {
      [&]<std::size_t... K>(std::index_sequence<K...>) {
        Result::ids(f(value_at<elem_t<A>>(parameters + first_scalar<K, elem_t<A>...>())...), out);
      }(std::index_sequence_for<A...>{});
      end_function(out, Result::count);
    }
    apply(rule, arguments, count, out, Result::count, l);
    return Result::values(out);
  }
}

}  // namespace quern::detail
