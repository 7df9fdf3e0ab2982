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

/// Of the list at these indices of all axes but the last.
template <Activity what, class T, int N>
Val<int32_t> of_list(const Field<T, N>& u, std::initializer_list<Index> before, Loc loc) {
  Id index[size_t(N)];
  Id* next = index;
  for (const Index& i : before) *next++ = i.id;
  *next = first_index(u.object(), N - 1, Scalar::i64, loc);
  return value<int32_t>(convert(activity(what, u.object(), index, N, loc), Scalar::i32, loc));
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

/// `length(x, i, j)`: how many elements the list of x(i, j, …) has, on a tree whose innermost level is
/// dynamic. Where iterations that run now append to it, what it was or more. Of a field on no tree the
/// extent of its last axis. Throws Error, when launched, for one on another tree.
template <class T>
QUERN_RECORDS I32 length(const Field<T, 1>& u, Loc l = Loc::here()) {
  return detail::of_list<detail::Activity::length>(u, {}, l);
}
template <class T>
QUERN_RECORDS I32 length(const Field<T, 2>& u, detail::Index i) {
  return detail::of_list<detail::Activity::length>(u, {i}, i.loc);
}
template <class T>
QUERN_RECORDS I32 length(const Field<T, 3>& u, detail::Index i, detail::Index j) {
  return detail::of_list<detail::Activity::length>(u, {i, j}, i.loc);
}
template <class T>
QUERN_RECORDS I32 length(const Field<T, 4>& u, detail::Index i, detail::Index j, detail::Index k) {
  return detail::of_list<detail::Activity::length>(u, {i, j, k}, i.loc);
}

/// `I32 k = append(x, i, j, v)`: v becomes the last element of the list of x(i, j, …), x(i, j, k); of
/// iterations that append to one list each gets a place of its own. A list that is full, of as many
/// elements as the last axis has, is a failed check, and k one less than its first index. Throws Error,
/// when launched, for a field on no tree whose innermost level is dynamic.
template <class T, class U>
QUERN_RECORDS I32 append(const Field<T, 1>& u, const U& v, Loc l = Loc::here()) {
  I32 k = detail::of_list<detail::Activity::append>(u, {}, l);
  for ([[maybe_unused]] auto has_place : when({k >= u.first(0, l), l})) u(detail::Index(k, l)) = v;
  return k;
}
template <class T, class U>
QUERN_RECORDS I32 append(const Field<T, 2>& u, detail::Index i, const U& v) {
  I32 k = detail::of_list<detail::Activity::append>(u, {i}, i.loc);
  for ([[maybe_unused]] auto has_place : when({k >= u.first(1, i.loc), i.loc}))
    u(i, detail::Index(k, i.loc)) = v;
  return k;
}
template <class T, class U>
QUERN_RECORDS I32 append(const Field<T, 3>& u, detail::Index i, detail::Index j, const U& v) {
  I32 k = detail::of_list<detail::Activity::append>(u, {i, j}, i.loc);
  for ([[maybe_unused]] auto has_place : when({k >= u.first(2, i.loc), i.loc}))
    u(i, j, detail::Index(k, i.loc)) = v;
  return k;
}
template <class T, class U>
QUERN_RECORDS I32 append(const Field<T, 4>& u, detail::Index i, detail::Index j, detail::Index k,
                         const U& v) {
  I32 m = detail::of_list<detail::Activity::append>(u, {i, j, k}, i.loc);
  for ([[maybe_unused]] auto has_place : when({m >= u.first(3, i.loc), i.loc}))
    u(i, j, k, detail::Index(m, i.loc)) = v;
  return m;
}

}  // namespace lang
}  // namespace quern
