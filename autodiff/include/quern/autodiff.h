#pragma once
// Derivatives of kernels. A `Tape` records launches and goes back through them: adjoints of fields,
// in their `grad()`. `vjp(kernel)` does it for one launch. `jvp(kernel)` runs forward: it computes
// what the kernel does, and tangents beside it, which fields keep in their `dual()`.
#include "quern/quern.h"

namespace quern {

namespace detail {
struct ForwardObject;
void retain(ForwardObject*) noexcept;
void release(ForwardObject*) noexcept;
ForwardObject* make_forward(KernelObject* kernel, Loc loc);
/// `tangents`: the bits of each argument's, in its derivative's type; of those without one any.
LaunchObject* launch_forward(ForwardObject* forward, const Argument* arguments,
                             const uint64_t* tangents, int count, Loc loc);

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
    constexpr auto scalars = detail::Traits<Derivative>::scalars();
    int k = (detail::count_of<T> + ... + 0) + detail::floats_before<int(K), T...>(), n = 0;
    return detail::from_bits<Derivative>([&] {
      return detail::is_float(scalars.v[n++]) ? detail::launch_result(launch_.get(), k++, l) : 0;
    });
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
  /// Throws Error at the line of what has no tangent: an atomic minimum, maximum, product, exchange
  /// or compare-and-swap of floats, the old value of an atomic sum, a minimum, maximum or product
  /// that a loop reduces, the bits of a float, decompositions.
  explicit Jvp(const Kernel<R(A...)>& kernel, Loc l = Loc::here())
      : object_(detail::make_forward(kernel.object(), l)) {}

  auto operator()(typename detail::ForwardParameter<detail::bare<A>>::host... a,
                  Loc l = Loc::here()) const {
    constexpr int count = (detail::Parameter<detail::bare<A>>::count + ... + 0);
    detail::Argument arguments[size_t(count) + 1];
    uint64_t tangents[size_t(count) + 1] = {};
    [[maybe_unused]] int at = 0;
    [[maybe_unused]] auto pass = [&]<class X>(std::type_identity<X>, const auto& argument) {
      detail::ForwardParameter<X>::pass(argument, arguments + at, tangents + at);
      at += detail::Parameter<X>::count;
    };
    (pass(std::type_identity<detail::bare<A>>{}, a), ...);
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

// ---- going back

namespace detail {
struct TapeObject;
struct ReverseObject;
struct PullbackObject;
void retain(TapeObject*) noexcept;
void release(TapeObject*) noexcept;
void retain(ReverseObject*) noexcept;
void release(ReverseObject*) noexcept;
void retain(PullbackObject*) noexcept;
void release(PullbackObject*) noexcept;
TapeObject* make_tape(Loc loc);
void go_back(TapeObject* tape, Loc loc);
ReverseObject* make_reverse(KernelObject* kernel, Loc loc);
PullbackObject* launch_recorded(ReverseObject* reverse, const Argument* arguments, int count,
                                Loc loc);
/// Of the launch itself; null where the kernel has no results.
LaunchObject* recorded_launch(PullbackObject* pullback);
/// `seeds`: bits of the adjoints of the kernel's float results.
LaunchObject* go_back(PullbackObject* pullback, const uint64_t* seeds, int count, Loc loc);
}  // namespace detail

/// Records what is launched while it lives, by all threads, and goes back through it once:
///
///     qn::Tape tape;
///     step(x, y);
///     measure(y, loss);
///     loss.grad().fill(1);
///     tape.backward();      // x.grad() += ∂loss/∂x
///
/// A field's grad() is what is known of the adjoint behind the last launch when backward() begins,
/// and that before the first one when it ends. What launches read is kept as it was then: a field
/// that is overwritten is copied. A launch throws Error where a field that it uses was written by the
/// host between it and another recorded launch; backward() where one was swapped since.
class Tape {
 public:
  explicit Tape(Loc l = Loc::here()) : object_(detail::make_tape(l)) {}
  /// Throws Error at the line of what has no adjoint (see Vjp), and where it was called before.
  void backward(Loc l = Loc::here()) { detail::go_back(object_.get(), l); }

 private:
  detail::Ref<detail::TapeObject> object_;
};

namespace detail {
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
}  // namespace detail

/// The adjoints of a launch's scalar arguments, and of vectors and matrices; fields have theirs in
/// grad().
template <class... A>
class Adjoints {
 public:
  explicit Adjoints(detail::LaunchObject* launch) : launch_(launch) {}
  /// Of the K-th parameter. Waits. What is no float in it is 0.
  template <std::size_t K>
  auto get(Loc l = Loc::here()) const {
    using Parameter = detail::ScalarsOfParameter<detail::Nth<K, A...>>;
    static_assert(!std::is_void_v<typename Parameter::type>,
                  "quern: the adjoint of a field is its grad()");
    using Derivative = derivative_t<typename Parameter::type>;
    constexpr auto scalars = detail::Traits<Derivative>::scalars();
    constexpr int floats[] = {detail::ScalarsOfParameter<A>::floats...};
    int k = 0, n = 0;
    for (size_t before = 0; before < K; before++) k += floats[before];
    return detail::from_bits<Derivative>([&] {
      return detail::is_float(scalars.v[n++]) ? detail::launch_result(launch_.get(), k++, l) : 0;
    });
  }

 private:
  detail::Ref<detail::LaunchObject> launch_;
};

/// A launch that was recorded, to go back through.
template <class Results, class... A>
class Pullback;
template <class... T, class... A>
class Pullback<detail::Types<T...>, A...> {
 public:
  explicit Pullback(detail::PullbackObject* object) : object_(object) {}
  /// What the launch yields.
  Result<T...> result() const
    requires(sizeof...(T) > 0)
  {
    return Result<T...>(detail::recorded_launch(object_.get()));
  }
  /// Adds to the adjoints of what the launch has read, given those of its results; of fields they
  /// are taken from and left in grad(). May be called again.
  Adjoints<A...> operator()(const derivative_t<T>&... seeds, Loc l = Loc::here()) const {
    uint64_t bits[size_t(detail::floats_in<T...>()) + 1] = {};
    [[maybe_unused]] uint64_t* next = bits;
    [[maybe_unused]] auto pass = [&](const auto& seed) {
      detail::Traits<detail::bare<decltype(seed)>>::each(seed, [&](const auto& scalar) {
        using S = detail::bare<decltype(scalar)>;
        if constexpr (std::is_floating_point_v<S>) __builtin_memcpy(next++, &scalar, sizeof scalar);
      });
    };
    (pass(seeds), ...);
    return Adjoints<A...>(detail::go_back(object_.get(), bits, detail::floats_in<T...>(), l));
  }

 private:
  detail::Ref<detail::PullbackObject> object_;
};

template <class Signature>
class Vjp;

/// A kernel that is launched to be gone back through: x̄ += f'(x)ᵀ ȳ. It takes the kernel's
/// arguments, runs it, and yields a Pullback. Of what the launch overwrites the adjoints are 0
/// before it. Conventions at kinks are those of docs/semantics.md, "Derivatives".
template <class R, class... A>
class Vjp<R(A...)> {
 public:
  explicit Vjp(const Kernel<R(A...)>& kernel, Loc l = Loc::here())
      : object_(detail::make_reverse(kernel.object(), l)) {}

  /// Throws Error at the line of what has no adjoint: what jvp() refuses, random numbers, an
  /// element that is read while other iterations of the same loop add to it.
  auto operator()(typename detail::Parameter<detail::bare<A>>::host... a,
                  Loc l = Loc::here()) const {
    constexpr int count = (detail::Parameter<detail::bare<A>>::count + ... + 0);
    detail::Argument arguments[size_t(count) + 1];
    [[maybe_unused]] detail::Argument* next = arguments;
    (detail::Parameter<detail::bare<A>>::pass(
         a, std::exchange(next, next + detail::Parameter<detail::bare<A>>::count)),
     ...);
    return Pullback<typename detail::ResultOf<R>::types, detail::bare<A>...>(
        detail::launch_recorded(object_.get(), arguments, count, l));
  }

 private:
  detail::Ref<detail::ReverseObject> object_;
};

template <class Signature>
Vjp<Signature> vjp(const Kernel<Signature>& kernel, Loc l = Loc::here()) {
  return Vjp<Signature>(kernel, l);
}

}  // namespace quern
