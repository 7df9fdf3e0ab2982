#pragma once
// Atomic updates of elements, each indivisible and yielding the old value; of an iteration's own
// variables and arrays, where nothing else meets, the same. On a kernel-level variable inside a
// parallel loop they are reductions, whose old value nobody can know.
#include "quern/values/elem.h"

namespace quern {
namespace detail {
template <class T, class A>
void refuse_atomic_snapshot() {
  static_assert(never<T>,
                "quern: this names a snapshot of an element; pass the element itself, as in "
                "atomic_add(x[i], v)");
}
/// Exchanging is indivisible for one scalar only.
template <class T>
struct Single {
  static constexpr bool ok = is_scalar<T>;
  static_assert(ok,
                "quern: this atomic takes a scalar element: its components would change one "
                "after the other");
};
template <class T, bool Numbers, bool Integers>
Val<T> atomic_on(Atomic op, const Elem<T>& e, const Arg<T>& v) {
  static_assert(Compound<T, Numbers, Integers>::ok);
  return value<T>(atomic_all(op, e.quern_places(), v.ids, v.loc));
}
/// Of a variable, or of an element of a local array.
template <class T, class Ids>
Val<T> local_atomic(Atomic op, const Ids& places, const Arg<T>& v) {
  detail::Ids<T> old;
  for (int k = 0; k < count_of<T>; k++) old.v[k] = update(op, places.v[k], v.ids.v[k], v.loc);
  return value<T>(old);
}
template <class T, bool Numbers, bool Integers>
Val<T> atomic_on(Atomic op, const Var<T>& variable, const Arg<T>& v) {
  static_assert(Compound<T, Numbers, Integers>::ok);
  return local_atomic<T>(op, variable.quern_slots(), v);
}
template <class T, bool Numbers, bool Integers>
Val<T> atomic_on(Atomic op, const Item<T>& item, const Arg<T>& v) {
  static_assert(Compound<T, Numbers, Integers>::ok);
  return local_atomic<T>(op, item.quern_items(), v);
}
}  // namespace detail

namespace lang {
#define QUERN_ATOMIC(name, op, numbers, integers)                                    \
  template <class T>                                                                 \
  Val<T> name(Elem<T>&& e, Arg<std::type_identity_t<T>> v) {                         \
    return detail::atomic_on<T, numbers, integers>(detail::Atomic::op, e, v);        \
  }                                                                                  \
  template <class T>                                                                 \
  void name(Elem<T>&, Arg<std::type_identity_t<T>>) {                                \
    detail::refuse_atomic_snapshot<T, void>();                                       \
  }                                                                                  \
  template <class T>                                                                 \
  Val<T> name(Var<T>& variable, Arg<std::type_identity_t<T>> v) {                    \
    return detail::atomic_on<T, numbers, integers>(detail::Atomic::op, variable, v); \
  }                                                                                  \
  template <class T>                                                                 \
  Val<T> name(Item<T>&& item, Arg<std::type_identity_t<T>> v) {                      \
    return detail::atomic_on<T, numbers, integers>(detail::Atomic::op, item, v);     \
  }
QUERN_ATOMIC(atomic_add, add, true, false)
QUERN_ATOMIC(atomic_mul, mul, true, false)
QUERN_ATOMIC(atomic_min, min, true, false)
QUERN_ATOMIC(atomic_max, max, true, false)
QUERN_ATOMIC(atomic_and, bit_and, false, true)
QUERN_ATOMIC(atomic_or, bit_or, false, true)
QUERN_ATOMIC(atomic_xor, bit_xor, false, true)
#undef QUERN_ATOMIC

template <class T>
Val<T> atomic_exchange(Elem<T>&& e, Arg<std::type_identity_t<T>> v) {
  static_assert(detail::Single<T>::ok);
  return detail::atomic_on<T, false, false>(detail::Atomic::exchange, e, v);
}
template <class T>
void atomic_exchange(Elem<T>&, Arg<std::type_identity_t<T>>) {
  detail::refuse_atomic_snapshot<T, void>();
}
/// Stores `v` where the element equals `expected`; yields what it was.
template <class T>
Val<T> atomic_cas(Elem<T>&& e, Arg<std::type_identity_t<T>> expected,
                  Arg<std::type_identity_t<T>> v) {
  static_assert(detail::Single<T>::ok);
  detail::Id ids[] = {expected.id(), v.id()};
  return detail::value<T>(
      detail::atomic(detail::Atomic::cas, e.quern_places().v[0], ids, 2, expected.loc));
}
template <class T>
void atomic_cas(Elem<T>&, Arg<std::type_identity_t<T>>, Arg<std::type_identity_t<T>>) {
  detail::refuse_atomic_snapshot<T, void>();
}
/// A read that may stand beside other iterations' atomics.
template <class T>
Val<T> atomic_load(Elem<T>&& e, Loc l = Loc::here()) {
  detail::Ids<T> out = e.quern_places();
  for (detail::Id& id : out.v) id = detail::atomic(detail::Atomic::load, id, nullptr, 0, l);
  return detail::value<T>(out);
}
template <class T>
void atomic_load(Elem<T>&) {
  detail::refuse_atomic_snapshot<T, void>();
}
}  // namespace lang

using lang::atomic_add;
using lang::atomic_and;
using lang::atomic_cas;
using lang::atomic_exchange;
using lang::atomic_load;
using lang::atomic_max;
using lang::atomic_min;
using lang::atomic_mul;
using lang::atomic_or;
using lang::atomic_xor;
}  // namespace quern
