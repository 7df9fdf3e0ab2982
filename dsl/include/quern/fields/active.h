#pragma once
// What exists of a field on a tree (quern/sparse.h). Of other fields all elements are active.
#include "quern/fields/field.h"

namespace quern {
namespace detail {

template <Activity what, class T, int N>
auto of_element(const Field<T, N>& u, const Id (&index)[size_t(N)], Loc loc) {
  const Id answer = activity(what, u.object(), index, N, loc);
  if constexpr (what == Activity::is_active) return value<bool>(answer);
}

}  // namespace detail

namespace lang {

#define QUERN_ACTIVITY(name)                                                                       \
  template <class T>                                                                               \
  QUERN_RECORDS auto name(const Field<T, 1>& u, detail::Index i) {                                 \
    return detail::of_element<detail::Activity::name, T, 1>(u, {i.id}, i.loc);                     \
  }                                                                                                \
  template <class T>                                                                               \
  QUERN_RECORDS auto name(const Field<T, 2>& u, detail::Index i, detail::Index j) {                \
    return detail::of_element<detail::Activity::name, T, 2>(u, {i.id, j.id}, i.loc);               \
  }                                                                                                \
  template <class T>                                                                               \
  QUERN_RECORDS auto name(const Field<T, 3>& u, detail::Index i, detail::Index j,                  \
                          detail::Index k) {                                                       \
    return detail::of_element<detail::Activity::name, T, 3>(u, {i.id, j.id, k.id}, i.loc);         \
  }                                                                                                \
  template <class T>                                                                               \
  QUERN_RECORDS auto name(const Field<T, 4>& u, detail::Index i, detail::Index j, detail::Index k, \
                          detail::Index m) {                                                       \
    return detail::of_element<detail::Activity::name, T, 4>(u, {i.id, j.id, k.id, m.id}, i.loc);   \
  }                                                                                                \
  template <class T, int N>                                                                        \
    requires(N > 1)                                                                                \
  QUERN_RECORDS auto name(const Field<T, N>& u, std::type_identity_t<detail::IndexVector<N>> i) {  \
    return detail::of_element<detail::Activity::name, T, N>(u, i.id, i.loc);                       \
  }

/// `is_active(u, i, j)`: is there an element? Where iterations that run now make it, either.
QUERN_ACTIVITY(is_active)
/// Makes the element active; it is the background until something is written there.
QUERN_ACTIVITY(activate)
/// The element, if it is active, ends with the loop: from then on it is not active and is the
/// background, whatever was written to it meanwhile. Throws Error, when launched, for a field that is
/// on no tree.
QUERN_ACTIVITY(deactivate)
#undef QUERN_ACTIVITY

}  // namespace lang
}  // namespace quern
