#pragma once
// Values: what every expression yields. They never change.
//
// Val, Var and Elem derive from the user's structures: the names of their members and parameters
// must not meet those of a structure, hence the prefix quern_ and the trailing underscores.
#include "quern/values/ops.h"
#include "quern/values/parts.h"

namespace quern {
namespace detail {

/// Refuses assignment to a value; a base, so that the message comes once.
template <class T>
struct Unchanging {
  template <class U>
  static void refuse() {
    static_assert(never<U>,
                  "quern: this is a value and never changes; declare it `Var<T> name = ...` to "
                  "assign to it. Of an element's array or vector at an index of the device: `Var e "
                  "= x[i]; e.a[j] = v; x[i] = e`");
  }
};

/// How many rows can make a T: components of a vector, row vectors of a matrix.
template <class T>
inline constexpr int rows_of = Traits<T>::rows == 1 ? 0 : Traits<T>::rows;

template <class T, class... A>
Ids<T> joined(const A&... parts) {
  Ids<T> out;
  int at = 0;
  auto append = [&](const auto& list) {
    for (Id id : list.v) out.v[at++] = id;
  };
  (append(parts), ...);
  return out;
}

template <class T, class First, class... A>
[[gnu::cold]] Ids<T> rows(const First& first, const A&... more) {
  in_order(first.loc, first.ids, more.ids...);
  return joined<T>(first.ids, more.ids...);
}
/// An array of its elements.
template <class T, class E, class... A>
[[gnu::cold]] Ids<T> elements(const Arg<E>& first, A&&... more) {
  constexpr bool as_many = count_of<T> == int(sizeof...(A) + 1) * count_of<E>;
  static_assert(as_many, "quern: an array takes as many values as it has elements");
  if constexpr (as_many)
    return rows<T>(first, Arg<E>(std::forward<A>(more), first.loc)...);
  else
    return {};
}

}  // namespace detail

#define QUERN_UNCHANGING                         \
  template <class U>                             \
  void operator=(const U&) {                     \
    detail::Unchanging<U>::template refuse<U>(); \
  }                                              \
  template <class U>                             \
  void operator+=(const U&) {                    \
    detail::Unchanging<U>::template refuse<U>(); \
  }                                              \
  template <class U>                             \
  void operator-=(const U&) {                    \
    detail::Unchanging<U>::template refuse<U>(); \
  }                                              \
  template <class U>                             \
  void operator*=(const U&) {                    \
    detail::Unchanging<U>::template refuse<U>(); \
  }                                              \
  template <class U>                             \
  void operator/=(const U&) {                    \
    detail::Unchanging<U>::template refuse<U>(); \
  }

/// One value of a recording (SSA), of host type T.
template <class T>
class Val : public detail::Ops<T>, public detail::Parts<Val, T> {
  static_assert(detail::Traits<T>::supported, "quern: not a type a device value can have");
  using Base = detail::Parts<quern::Val, T>;
  using Row = Arg<detail::row_t<T>>;

 public:
  explicit Val(const detail::Ids<T>& ids_) : Base(ids_) {}
  Val(const Val&) = default;
  Val(const Val& u_, Loc) : Val(u_) {}  // generic code says where it converts
  template <detail::Operand U>
    requires(!std::is_same_v<detail::bare<U>, Val>)
  Val(U&& u_, Loc l_ = Loc::here()) : Val(detail::converted<T>(std::forward<U>(u_), l_)) {}
  /// A vector of its components, a matrix of its rows.
  Val(Row a_, Row b_)
    requires(detail::rows_of<T> == 2)
      : Val(detail::rows<T>(a_, b_)) {}
  Val(Row a_, Row b_, Row c_)
    requires(detail::rows_of<T> == 3)
      : Val(detail::rows<T>(a_, b_, c_)) {}
  Val(Row a_, Row b_, Row c_, Row d_)
    requires(detail::rows_of<T> == 4)
      : Val(detail::rows<T>(a_, b_, c_, d_)) {}
  /// A matrix of its numbers, row by row.
  template <detail::Operand... A>
    requires(detail::is_matrix<T> && int(sizeof...(A)) == detail::count_of<T>)
  Val(A&&... a_) : Val(detail::rows<T>(Arg<detail::scalar_t<T>>(std::forward<A>(a_), Loc{})...)) {}
  /// An array of its elements, as in `{1, 2, 3}`, or of those of a std::array.
  template <detail::Operand... A>
    requires(detail::is_array<T> && sizeof...(A) >= 1)
  Val(Arg<typename detail::ArrayElement<T>::type> first_, A&&... more_)
      : Val(detail::elements<T>(first_, std::forward<A>(more_)...)) {}
  template <detail::StandardArray C>
    requires detail::is_array<T>
  Val(const C& c_, Loc l_ = Loc::here()) : Val(detail::own_array(c_), l_) {}
  template <class U = T>
  Val() : Base(detail::Ids<T>{}) {
    static_assert(detail::never<U>,
                  "quern: a value needs an initialiser; a variable to be assigned later is "
                  "`Var<T> name;`");
  }
  Val& operator=(const Val&)
    requires(sizeof(T) == 0);
  QUERN_UNCHANGING

  detail::Ids<T> quern_ids(Loc) const& {
    return detail::named(detail::leaves<quern::Val, T>(*this));
  }
  detail::Ids<T> quern_ids(Loc) && { return detail::leaves<quern::Val, T>(*this); }
  /// For structured bindings of a vector.
  template <int K>
  auto get() const {
    return this->quern_part(K);
  }
};
#undef QUERN_UNCHANGING

}  // namespace quern

template <class T, int N>
struct std::tuple_size<quern::Val<quern::Vec<T, N>>> : std::integral_constant<std::size_t, N> {};
template <std::size_t K, class T, int N>
struct std::tuple_element<K, quern::Val<quern::Vec<T, N>>> {
  using type = quern::Val<T>;
};
