#pragma once
#include "quern/autodiff/floats.h"

namespace quern {

/// Fields to take derivatives by: `wrt(x, y)`. A view stands for all of the field that it is of.
template <int N>
struct Wrt {
  detail::Ref<detail::FieldObject> fields[size_t(N)];
};
template <class... T, int... N>
Wrt<int(sizeof...(T))> wrt(const Field<T, N>&... fields) {
  static_assert(sizeof...(T) > 0, "quern: wrt() takes the fields that derivatives are taken by");
  static_assert(
      ((detail::floats_in<T>() > 0) && ...),
      "quern: derivatives are taken by floats, and the elements of a field here have none");
  return {{detail::shared(fields.object())...}};
}

}  // namespace quern
