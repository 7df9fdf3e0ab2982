#pragma once
// Gradients of kernels that yield one float.
#include "quern/autodiff/floats.h"
#include "quern/autodiff/wrt.h"

namespace quern {

namespace detail {
struct GradientObject;
void retain(GradientObject*) noexcept;
void release(GradientObject*) noexcept;

/// What derivatives are taken by. Of the rest nothing is computed.
struct Inputs {
  bool all = true;  ///< every float that the kernel reads; else:
  const bool* arguments = nullptr;
  int argument_count = 0;
  const Ref<FieldObject>* captured = nullptr;
  int captured_count = 0;
};
/// `second`: of the gradient the derivative along a direction, too.
GradientObject* make_gradient(KernelObject* kernel, const Inputs& inputs, bool second, Loc loc);
/// A launch of the kernel, and that of its derivatives by each float among the arguments that is an
/// input; null where there is none. If `second`, derivatives of these along the direction stand
/// behind them.
struct GradientLaunches {
  LaunchObject *value, *derivatives;
};
/// `tangents`: those of the arguments, as launch_forward takes them; null unless `second`.
GradientLaunches launch_gradient(GradientObject* gradient, const Argument* arguments,
                                 const uint64_t* tangents, int count, Loc loc);

/// The parameters number K…, or all of them.
template <bool All, std::size_t... K>
struct By {
  template <std::size_t I>
  static constexpr bool has = All || ((I == K) || ...);
  /// Of the parameters A….
  template <class... A>
  static constexpr bool fit = ((K < sizeof...(A)) && ...);
};

template <class Choice, class... A>
struct InputsOf {
  static constexpr int count = (Parameter<A>::count + ... + 0);
  bool arguments[size_t(count) + 1] = {};  ///< of each argument
  /// Floats of scalar arguments that are chosen, by parameter.
  int floats[sizeof...(A) + 1] = {};
  int only = -1;  ///< the only parameter that has any
  consteval InputsOf() { fill(std::index_sequence_for<A...>{}); }

 private:
  template <std::size_t... I>
  consteval void fill(std::index_sequence<I...>) {
    [[maybe_unused]] int at = 0;
    int having = 0;
    ((put(int(I), Choice::template has<I>, Parameter<A>::count, ScalarsOfParameter<A>::floats, at,
          having)),
     ...);
    if (having != 1) only = -1;
  }
  consteval void put(int number, bool has, int arguments_of_it, int floats_of_it, int& at,
                     int& having) {
    for (int k = 0; k < arguments_of_it; k++) arguments[at++] = has;
    floats[number] = has ? floats_of_it : 0;
    if (floats[number] == 0) return;
    only = number;
    having++;
  }
};

/// Of the derivative by parameter `Only`; void: there is not one alone.
template <int Only, class... A>
struct DerivativeByOnly {
  using type = void;
};
template <int Only, class... A>
  requires(Only >= 0)
struct DerivativeByOnly<Only, A...> {
  using type = derivative_t<typename ScalarsOfParameter<Nth<size_t(Only), A...>>::type>;
};

template <class R>
struct OneFloat {
  static constexpr bool value = false;
  using type = float;
};
template <class T>
struct OneFloat<Types<T>> {
  static constexpr bool value = count_of<T> == 1 && floats_in<T>() == 1;
  using type = T;
};

template <class Choice, class R, class... A>
GradientObject* gradient_of(KernelObject* kernel, Inputs inputs, bool second, Loc loc) {
  static_assert(OneFloat<typename ResultOf<R>::types>::value,
                "quern: a gradient is that of one float, and this kernel yields something else; "
                "vjp() takes an adjoint for each result");
  static_assert(Choice::template fit<A...>, "quern: a kernel's parameters are numbered from 0");
  static constexpr InputsOf<Choice, A...> chosen;
  inputs.arguments = chosen.arguments;
  inputs.argument_count = chosen.count;
  return make_gradient(kernel, inputs, second, loc);
}

/// The derivative by parameter K, or `second`: the derivative of that along the direction.
template <class Choice, std::size_t K, class... A>
auto derivative_by(LaunchObject* launch, bool second, Loc loc) {
  using X = ScalarsOfParameter<Nth<K, A...>>;
  static_assert(!std::is_void_v<typename X::type>,
                "quern: the gradient by a field is in its grad()");
  static_assert(Choice::template has<K>, "quern: no derivative was taken by this parameter");
  static constexpr InputsOf<Choice, A...> chosen;
  int first = 0;
  for (size_t before = 0; before < (second ? sizeof...(A) : K); before++)
    first += chosen.floats[before];
  for (size_t before = 0; second && before < K; before++) first += chosen.floats[before];
  return derivative_of_results<derivative_t<typename X::type>>(launch, first, loc);
}
}  // namespace detail

/// The gradient of one launch: the derivatives by its scalar arguments, and by vectors and
/// matrices; those by fields are in their grad(). A single one is what this converts to.
template <class Choice, class... A>
class Gradient {
  static constexpr detail::InputsOf<Choice, A...> chosen = {};

 public:
  explicit Gradient(detail::LaunchObject* derivatives) : derivatives_(derivatives) {}
  /// By the K-th parameter: of its type, of halves float, 0 where it holds no float. Waits.
  template <std::size_t K>
  auto get(Loc l = Loc::here()) const {
    return detail::derivative_by<Choice, K, A...>(derivatives_.get(), false, l);
  }
  template <class T>
    requires std::is_same_v<T, typename detail::DerivativeByOnly<chosen.only, A...>::type>
  operator T() const {
    return get<size_t(chosen.only)>(Loc{});
  }

 protected:
  template <std::size_t K>
  auto second(Loc l) const {
    return detail::derivative_by<Choice, K, A...>(derivatives_.get(), true, l);
  }

 private:
  detail::Ref<detail::LaunchObject> derivatives_;
};

/// The same, and what the kernel yields.
template <class T, class Choice, class... A>
class ValueAndGradient : public Gradient<Choice, A...> {
 public:
  explicit ValueAndGradient(detail::GradientLaunches launches)
      : Gradient<Choice, A...>(launches.derivatives), value_(launches.value) {}
  /// Waits, and throws what a failed check found.
  T value(Loc l = Loc::here()) const { return value_.value(l); }

 private:
  Result<T> value_;
};

template <class Signature, class Choice>
class ValueAndGrad;

/// A kernel y = f(x) with one float for its result, which is run and gone back through from ȳ = 1.
/// Of fields x that derivatives are taken by x.grad() is *set* to ∂y/∂x, as the fields were before
/// the launch: what it held before is dropped. Fields that the kernel only writes have no part in
/// y. Those that it both reads and writes count as chosen: what is chosen may act through them.
/// Conventions at kinks are those of docs/semantics.md, "Derivatives".
template <class R, class... A, class Choice>
class ValueAndGrad<R(A...), Choice> {
  using Value = typename detail::OneFloat<typename detail::ResultOf<R>::types>::type;

 public:
  /// Throws Error where `inputs` names a field that the kernel does not capture.
  ValueAndGrad(const Kernel<R(A...)>& kernel, const detail::Inputs& inputs, Loc l)
      : object_(detail::gradient_of<Choice, R, detail::bare<A>...>(kernel.object(), inputs, false,
                                                                   l)) {}

  /// Throws Error as Vjp does.
  ValueAndGradient<Value, Choice, detail::bare<A>...> operator()(
      typename detail::Parameter<detail::bare<A>>::host... a, Loc l = Loc::here()) const {
    constexpr int count = (detail::Parameter<detail::bare<A>>::count + ... + 0);
    detail::Argument arguments[size_t(count) + 1];
    detail::pass_values<detail::bare<A>...>(arguments, a...);
    return ValueAndGradient<Value, Choice, detail::bare<A>...>(
        detail::launch_gradient(object_.get(), arguments, nullptr, count, l));
  }

 private:
  detail::Ref<detail::GradientObject> object_;
};

template <class Signature, class Choice>
class Grad;

/// The same without the value. The kernel runs all the same, with its effects and checks.
template <class R, class... A, class Choice>
class Grad<R(A...), Choice> {
 public:
  Grad(const Kernel<R(A...)>& kernel, const detail::Inputs& inputs, Loc l)
      : both_(kernel, inputs, l) {}
  Gradient<Choice, detail::bare<A>...> operator()(
      typename detail::Parameter<detail::bare<A>>::host... a, Loc l = Loc::here()) const {
    return both_(a..., l);
  }

 private:
  ValueAndGrad<R(A...), Choice> both_;
};

/// By every float that the kernel reads, of parameters and of fields that it captures; by
/// parameters number K… alone, `value_and_grad<0, 2>(kernel)`, counted from 0, fields and scalars
/// alike; by those and fields that it captures, `value_and_grad<0>(kernel, wrt(x, y))`; or by such
/// alone, `value_and_grad(kernel, wrt(x))`. Parameters are known by number when the C++ is
/// compiled, captured fields by their handles when it runs, so the former are template arguments
/// and the latter values. A captured view of the memory of a field in wrt() counts as that field.
/// By what is not chosen no derivative is computed.
template <std::size_t... K, class Signature>
ValueAndGrad<Signature, detail::By<sizeof...(K) == 0, K...>> value_and_grad(
    const Kernel<Signature>& kernel, Loc l = Loc::here()) {
  return {kernel, {.all = sizeof...(K) == 0}, l};
}
template <std::size_t... K, class Signature, int N>
ValueAndGrad<Signature, detail::By<false, K...>> value_and_grad(const Kernel<Signature>& kernel,
                                                                const Wrt<N>& fields,
                                                                Loc l = Loc::here()) {
  return {kernel, {.all = false, .captured = fields.fields, .captured_count = N}, l};
}

/// The same without the value: `double slope = grad(f)(x);`.
template <std::size_t... K, class Signature>
Grad<Signature, detail::By<sizeof...(K) == 0, K...>> grad(const Kernel<Signature>& kernel,
                                                          Loc l = Loc::here()) {
  return {kernel, {.all = sizeof...(K) == 0}, l};
}
template <std::size_t... K, class Signature, int N>
Grad<Signature, detail::By<false, K...>> grad(const Kernel<Signature>& kernel, const Wrt<N>& fields,
                                              Loc l = Loc::here()) {
  return {kernel, {.all = false, .captured = fields.fields, .captured_count = N}, l};
}

}  // namespace quern
