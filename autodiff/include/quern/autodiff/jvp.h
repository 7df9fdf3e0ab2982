#pragma once
// Kernels run forward: tangents beside values, which fields keep in their `dual()`.
#include "quern/autodiff/floats.h"

namespace quern {

namespace detail {
struct ForwardObject;
void retain(ForwardObject*) noexcept;
void release(ForwardObject*) noexcept;
/// `fields`: do fields have tangents?
ForwardObject* make_forward(KernelObject* kernel, bool fields, Loc loc);
/// `tangents`: the bits of each argument's, in its derivative's type; of those without one any.
LaunchObject* launch_forward(ForwardObject* forward, const Argument* arguments,
                             const uint64_t* tangents, int count, Loc loc);
}  // namespace detail

/// A scalar argument of `jvp(kernel)`, or a vector, matrix or structure: its value, and its
/// tangent, 0 unless it is given: `push({2.0f, 1.0f}, x)`.
template <class T>
class Dual {
 public:
  template <class U>
    requires std::is_constructible_v<detail::Passed<T>, const U&, Loc>
  Dual(const U& value, Loc l = Loc::here()) : value_(detail::Passed<T>(value, l).v) {}
  template <class U>
    requires std::is_constructible_v<detail::Passed<T>, const U&, Loc>
  Dual(const U& value, derivative_t<T> tangent, Loc l = Loc::here())
      : value_(detail::Passed<T>(value, l).v), tangent_(tangent) {}
  const T& value() const { return value_; }
  const derivative_t<T>& tangent() const { return tangent_; }

 private:
  T value_;
  derivative_t<T> tangent_{};
};

/// What a launch of `jvp(kernel)` yields: the kernel's results, and their tangents. Reading waits,
/// and throws what a failed check found.
template <class... T>
class DualResult {
 public:
  explicit DualResult(detail::LaunchObject* launch) : launch_(launch) {}
  template <std::size_t K = 0>
  auto value(Loc l = Loc::here()) const {
    int k = detail::first_scalar<K, T...>();
    return detail::from_bits<detail::Nth<K, T...>>(
        [&] { return detail::launch_result(launch_.get(), k++, l); });
  }
  /// Of floats; what else is in a structure is 0.
  template <std::size_t K = 0>
  auto tangent(Loc l = Loc::here()) const {
    using Derivative = derivative_t<detail::Nth<K, T...>>;
    constexpr int k = (detail::count_of<T> + ... + 0) + detail::floats_before<int(K), T...>();
    return detail::derivative_of_results<Derivative>(launch_.get(), k, l);
  }

 private:
  detail::Ref<detail::LaunchObject> launch_;
};

namespace detail {
template <class X>
struct ForwardParameter {
  using host = typename Parameter<X>::host;
  static void pass(const host& a, Argument* out, uint64_t*) { Parameter<X>::pass(a, out); }
};
template <class T>
struct ForwardParameter<Val<T>> {
  using host = Dual<T>;
  static void pass(const Dual<T>& a, Argument* out, uint64_t* tangents) {
    value_arguments(a.value(), out);
    Argument bits[size_t(count_of<T>)];
    value_arguments(a.tangent(), bits);
    for (const Argument& b : bits) *tangents++ = b.bits;
  }
};
}  // namespace detail

namespace detail {
template <class... X>
void pass_forward([[maybe_unused]] Argument* arguments, [[maybe_unused]] uint64_t* tangents,
                  const typename ForwardParameter<X>::host&... a) {
  [[maybe_unused]] int at = 0;
  [[maybe_unused]] auto pass = [&]<class Y>(std::type_identity<Y>, const auto& argument) {
    ForwardParameter<Y>::pass(argument, arguments + at, tangents + at);
    at += Parameter<Y>::count;
  };
  (pass(std::type_identity<X>{}, a), ...);
}
}  // namespace detail

template <class Signature>
class Jvp;

/// A kernel run forward: y = f(x) and ẏ = f'(x) ẋ in one launch. It takes the kernel's arguments;
/// of each field x that is read the tangents are x.dual(), of each that is written they are written
/// there, zeros included; of a scalar argument they are 0 unless given (Dual). Control flow,
/// indices and integers have none. An element that several iterations add to has the sum of their
/// tangents. Conventions at kinks are those of docs/semantics.md, "Derivatives".
template <class R, class... A>
class Jvp<R(A...)> {
 public:
  /// Throws Error at the line of what has no tangent: an atomic product, exchange or
  /// compare-and-swap of floats, the old value of any atomic, a minimum, maximum or product of what
  /// the loop changes itself, the bits of a float, elements that iterations certainly race for.
  /// Where that depends on how many there are, or on which fields are passed, a launch throws it.
  explicit Jvp(const Kernel<R(A...)>& kernel, Loc l = Loc::here())
      : object_(detail::make_forward(kernel.object(), true, l)) {}

  auto operator()(typename detail::ForwardParameter<detail::bare<A>>::host... a,
                  Loc l = Loc::here()) const {
    constexpr int count = (detail::Parameter<detail::bare<A>>::count + ... + 0);
    detail::Argument arguments[size_t(count) + 1];
    uint64_t tangents[size_t(count) + 1] = {};
    detail::pass_forward<detail::bare<A>...>(arguments, tangents, a...);
    return finish(detail::launch_forward(object_.get(), arguments, tangents, count, l),
                  typename detail::ResultOf<R>::types{});
  }

 private:
  static void finish(detail::LaunchObject*, detail::Types<>) {}
  template <class... T>
  static DualResult<T...> finish(detail::LaunchObject* launch, detail::Types<T...>) {
    return DualResult<T...>(launch);
  }
  detail::Ref<detail::ForwardObject> object_;
};

template <class Signature>
Jvp<Signature> jvp(const Kernel<Signature>& kernel, Loc l = Loc::here()) {
  return Jvp<Signature>(kernel, l);
}

}  // namespace quern
