#pragma once
// What derivatives of all kinds ask: the floats among scalars, and arguments and fields by handle.
#include "quern/quern.h"

namespace quern::detail {

constexpr bool is_float(Scalar s) {
  return s == Scalar::f16 || s == Scalar::f32 || s == Scalar::f64;
}
/// Floats among the scalars of T….
template <class... T>
consteval int floats_in() {
  int count = 0;
  for (Scalar s : TypeList<Types<T...>>::list.v) count += is_float(s);
  return count;
}
template <int K, class... T>
consteval int floats_before() {
  int count = 0, n = 0;
  for (Scalar s : TypeList<Types<T...>>::list.v)
    count += n++ < first_scalar<K, T...>() && is_float(s);
  return count;
}

/// What a launch yields from its k-th result on, of which each is of a float; other scalars are 0.
template <class Derivative>
Derivative derivative_of_results(LaunchObject* launch, int k, Loc loc) {
  constexpr auto scalars = Traits<Derivative>::scalars();
  int n = 0;
  return from_bits<Derivative>(
      [&] { return is_float(scalars.v[n++]) ? launch_result(launch, k++, loc) : 0; });
}

/// Of a parameter: the floats in it, unless it is a field, and what it is made of then.
template <class X>
struct ScalarsOfParameter {
  static constexpr int floats = 0;
  using type = void;
};
template <class T>
struct ScalarsOfParameter<Val<T>> {
  static constexpr int floats = floats_in<T>();
  using type = T;
};

/// The arguments for parameters X….
template <class... X, class... H>
void pass_values(Argument* arguments, const H&... a) {
  [[maybe_unused]] Argument* next = arguments;
  (Parameter<X>::pass(a, std::exchange(next, next + Parameter<X>::count)), ...);
}

inline Ref<FieldObject> shared(FieldObject* field) {
  retain(field);
  return Ref<FieldObject>(field);
}

}  // namespace quern::detail
