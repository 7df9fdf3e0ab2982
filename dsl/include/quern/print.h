#pragma once
// What a kernel tells the host: lines of text, and checks that end a launch with an error.
#include "quern/elem.h"

namespace quern {
namespace detail {
/// A format and where it was written: a variadic function cannot default its last argument.
struct Format {
  const char* text;
  Loc loc;
  Format(const char* t, Loc l = Loc::here()) : text(t), loc(l) {}
};
template <Operand U>
Id reported(const U& u, Loc loc) {
  using T = elem_t<U>;
  static_assert(is_scalar<T>, "quern: print and check take scalars; pass the components");
  return operand_ids<canonical_t<T>>(u, loc).v[0];
}
}  // namespace detail

namespace lang {
/// `print("{} {}", a, b)`: each {} is replaced by a value; the line appears at the next host wait.
template <detail::Operand... A>
void print(detail::Format format, const A&... a) {
  detail::Id ids[sizeof...(A) + 1] = {detail::reported(a, format.loc)...};
  detail::print(format.text, ids, int(sizeof...(A)), format.loc);
}
/// An error, thrown at the next host wait, where `c` is false.
template <detail::Operand... A>
void check(Arg<bool> c, const char* message, const A&... a) {
  detail::Id ids[sizeof...(A) + 1] = {detail::reported(a, c.loc)...};
  detail::check(c.id(), message, ids, int(sizeof...(A)), c.loc);
}
}  // namespace lang
}  // namespace quern
