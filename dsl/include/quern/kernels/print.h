#pragma once
// What a kernel tells the host: lines of text, and checks that end a launch with an error.
#include "quern/values/elem.h"

namespace quern {
namespace detail {
/// A format and where it was written: a variadic function cannot default its last argument.
struct Format {
  const char* text;
  Loc loc;
  Format(const char* t, Loc l = Loc::here()) : text(t), loc(l) {}
};
/// Writes {} for a scalar, (…, …) for what has parts.
template <class T>
struct FormOf {
  static constexpr char* write(char* out) {
    for (const char* p = "{}"; *p; p++) *out++ = *p;
    return out;
  }
};
template <int N, class T>
constexpr char* write_parts(char* out) {
  *out++ = '(';
  for (int k = 0; k < N; k++) {
    if (k > 0) *out++ = ',', *out++ = ' ';
    out = FormOf<T>::write(out);
  }
  *out++ = ')';
  return out;
}
template <class... M>
constexpr char* write_members(char* out, Types<M...>) {
  *out++ = '(';
  int written = 0;
  auto separated = [&](char* at) {
    if (written++ > 0) *at++ = ',', *at++ = ' ';
    return at;
  };
  ((out = FormOf<M>::write(separated(out))), ...);
  *out++ = ')';
  return out;
}
template <class T>
  requires(is_structure<T> && !is_array<T>)
struct FormOf<T> {
  static constexpr char* write(char* out) {
    return write_members(out, typename Traits<T>::members{});
  }
};
template <class S, int N>
struct FormOf<Vec<S, N>> {
  static constexpr char* write(char* out) { return write_parts<N, S>(out); }
};
template <class S, int R, int C>
struct FormOf<Mat<S, R, C>> {
  static constexpr char* write(char* out) { return write_parts<R, Vec<S, C>>(out); }
};
template <class T, int N>
struct FormOf<Array<T, N>> {
  static constexpr char* write(char* out) { return write_parts<N, T>(out); }
};
/// The form of a T, its scalars in parentheses as they belong together.
template <class T>
const char* form_of() {
  static constexpr struct Text {
    char v[size_t(8 * count_of<T> + 32)] = {};
    constexpr Text() { FormOf<T>::write(v); }
  } text;
  return text.v;
}

/// Values to report, read in order.
template <Operand... U>
struct Reports {
  static constexpr int count = int(sizeof...(U));
  Id ids[size_t((count_of<elem_t<U>> + ... + 1))];
  Reported values[size_t(count + 1)] = {};
  explicit Reports([[maybe_unused]] Loc loc, U&&... u) {
    [[maybe_unused]] Id* next = ids;
    [[maybe_unused]] Reported* value = values;
    [[maybe_unused]] auto append = [&](const char* form, const auto& list, int n) {
      *value++ = {form, next, n};
      for (Id id : list.v) *next++ = id;
    };
    (append(form_of<elem_t<U>>(), result_ids(std::forward<U>(u), loc), count_of<elem_t<U>>), ...);
    Evaluated operands[size_t(count + 1)] = {};
    for (int k = 0; k < count; k++) operands[k] = {values[k].scalars, values[k].count};
    in_order(operands, count, loc);
  }
};
}  // namespace detail

namespace lang {
/// `print("{} {}", a, b)`: each {} is replaced by a value, a vector's by (x, y, z), a matrix's by
/// its rows, a structure's by its members; the line appears at the next host wait. At most 16
/// scalars.
template <detail::Operand... A>
void print(detail::Format format, A&&... a) {
  detail::Reports<A...> all(format.loc, std::forward<A>(a)...);
  detail::print(format.text, all.values, all.count, format.loc);
}
/// An error, thrown at the next host wait, where `c` is false.
template <detail::Operand... A>
void check(Arg<bool> c, const char* message, A&&... a) {
  detail::Reports<A...> all(c.loc, std::forward<A>(a)...);
  detail::check(c.id(), message, all.values, all.count, c.loc);
}
}  // namespace lang
}  // namespace quern
