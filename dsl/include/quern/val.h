#pragma once
// Values: what every expression yields. They never change.
#include "quern/ops.h"

namespace quern {
namespace detail {

/// Refuses assignment to a value; a base, so that the message comes once.
template <class T>
struct Unchanging {
  template <class U>
  static void refuse() {
    static_assert(never<U>,
                  "quern: this is a value and never changes; declare it `Var<T> name = ...` to "
                  "assign to it");
  }
};

/// Named components of a vector, each a Val, Var or Elem of the scalar.
template <template <class> class K, class T>
struct Components;
template <template <class> class K, class S>
struct Components<K, Vec<S, 2>> {
  K<S> x, y;
  template <class F>
  Components(F make) : x(make(0)), y(make(1)) {}
};
template <template <class> class K, class S>
struct Components<K, Vec<S, 3>> {
  K<S> x, y, z;
  template <class F>
  Components(F make) : x(make(0)), y(make(1)), z(make(2)) {}
};
template <template <class> class K, class S>
struct Components<K, Vec<S, 4>> {
  K<S> x, y, z, w;
  template <class F>
  Components(F make) : x(make(0)), y(make(1)), z(make(2)), w(make(3)) {}
};

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
class Val : public detail::Ops<T> {
  static_assert(detail::DeviceScalar<T>, "quern: not a type a device value can have");

 public:
  explicit Val(detail::Ids<T> ids) : id_(ids.v[0]) {}
  Val(const Val&) = default;
  template <detail::Operand U>
    requires(!std::is_same_v<U, Val>)
  Val(const U& u, Loc l = Loc::here()) : Val(detail::converted<T>(u, l)) {}
  template <class U = T>
  Val() {
    static_assert(detail::never<U>,
                  "quern: a value needs an initialiser; a variable to be assigned later is "
                  "`Var<T> name;`");
  }
  Val& operator=(const Val&)
    requires(sizeof(T) == 0);
  QUERN_UNCHANGING

  detail::Ids<T> ids(Loc) const { return {{id_}}; }

 private:
  detail::Id id_;
};

/// A vector is its scalars.
template <class S, int N>
class Val<Vec<S, N>> : public detail::Ops<Vec<S, N>>, public detail::Components<Val, Vec<S, N>> {
  using T = Vec<S, N>;
  using Base = detail::Components<quern::Val, T>;

 public:
  explicit Val(detail::Ids<T> ids)
      : Base([&](int k) { return Val<S>(detail::Ids<S>{{ids.v[k]}}); }) {}
  Val(const Val&) = default;
  template <detail::Operand U>
    requires(!std::is_same_v<U, Val>)
  Val(const U& u, Loc l = Loc::here()) : Val(detail::converted<T>(u, l)) {}
  Val(Arg<S> a, Arg<S> b)
    requires(N == 2)
      : Val(detail::Ids<T>{{a.id(), b.id()}}) {}
  Val(Arg<S> a, Arg<S> b, Arg<S> c)
    requires(N == 3)
      : Val(detail::Ids<T>{{a.id(), b.id(), c.id()}}) {}
  Val(Arg<S> a, Arg<S> b, Arg<S> c, Arg<S> d)
    requires(N == 4)
      : Val(detail::Ids<T>{{a.id(), b.id(), c.id(), d.id()}}) {}
  Val& operator=(const Val&)
    requires(sizeof(T) == 0);
  QUERN_UNCHANGING

  Val<S> operator[](int k) const { return detail::component(*this, k); }
  template <int K>
  Val<S> get() const {
    return detail::component(*this, K);
  }
  detail::Ids<T> ids(Loc l) const {
    detail::Ids<T> out;
    for (int k = 0; k < N; k++) out.v[k] = (*this)[k].ids(l).v[0];
    return out;
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
