#pragma once
// Functions whose derivative their author gives.
#include "quern/kernels/func.h"
#include "quern/types/derivative.h"

namespace quern {
namespace detail {

// ---- what rules take and give

/// Are derivatives taken by values of this type?
template <class T>
struct Varies {
  static constexpr int floats() {
    int count = 0;
    for (Scalar s : scalars_of<T>.v)
      count += s == Scalar::f16 || s == Scalar::f32 || s == Scalar::f64;
    return count;
  }
  static constexpr bool value = floats() > 0;
  static_assert(floats() == 0 || floats() == count_of<T>,
                "quern: a function with a derivative of its own takes and gives no structure of "
                "floats and others; pass its members");
};

template <class... L>
struct JoinedTypes;
template <class... A>
struct JoinedTypes<Types<A...>> {
  using type = Types<A...>;
};
template <class... A, class... B, class... L>
struct JoinedTypes<Types<A...>, Types<B...>, L...> : JoinedTypes<Types<A..., B...>, L...> {};

/// The types of derivatives of those of T… that vary.
template <class L>
struct DerivativesOf;
template <class... T>
struct DerivativesOf<Types<T...>> {
  template <class U>
  static auto one() {
    if constexpr (Varies<U>::value)
      return std::type_identity<Types<derivative_t<U>>>{};
    else
      return std::type_identity<Types<>>{};
  }
  using type = typename JoinedTypes<Types<>, typename decltype(one<T>())::type...>::type;
};

/// Of a function that takes A… and gives R…, all lists of host types.
template <bool Back, class A, class R>
struct RuleOf {
  using taken =
      typename JoinedTypes<A, R,
                           typename DerivativesOf<std::conditional_t<Back, R, A>>::type>::type;
  using given = typename DerivativesOf<std::conditional_t<Back, A, R>>::type;
};

template <class X>
struct ValueOf {
  static_assert(never<X>, "quern: a function's parameter is a value (F32, I32, Val<T>)");
};
template <class T>
struct ValueOf<Val<T>> {
  using type = T;
};
template <class S>
struct SignatureTypes;
template <class R, class... A>
struct SignatureTypes<R(A...)> {
  using arguments = Types<typename ValueOf<bare<A>>::type...>;
  using results = typename ResultOf<R>::types;
};

/// A rule's signature: that of the lambda, or for a generic one what it is called with.
template <class F, class Taken, bool = HasSignature<F>>
struct RuleSignature {
  using type = signature_t<F>;
};
template <class F, class... T>
struct RuleSignature<F, Types<T...>, false> {
  static_assert(std::is_invocable_v<F&, Val<T>...>,
                "quern: a rule takes the arguments and the results of its function, and then the "
                "adjoints of its float results (a pullback) or the tangents of its float arguments "
                "(a pushforward)");
  using type = std::invoke_result_t<F&, Val<T>...>(Val<T>...);
};

template <bool Back, class Signature, class Expected>
struct FitsRule {
  using types = SignatureTypes<Signature>;
  static constexpr bool takes = std::is_same_v<typename types::arguments, typename Expected::taken>;
  static_assert(!Back || takes,
                "quern: a pullback takes the arguments of its function, its results, and the "
                "adjoints of its float results");
  static_assert(Back || takes,
                "quern: a pushforward takes the arguments of its function, its results, and the "
                "tangents of its float arguments");
  static constexpr bool gives = !takes || std::is_same_v<typename types::results, Types<>> ||
                                std::is_same_v<typename types::results, typename Expected::given>;
  static_assert(!Back || gives,
                "quern: a pullback returns the adjoints of the float arguments: one, result(a, b), "
                "or nothing for zeros");
  static_assert(Back || gives,
                "quern: a pushforward returns the tangents of the float results: one, result(a, "
                "b), or nothing for zeros");
};

template <bool Back, class F>
struct GivenRule {
  F f;
  Source source;
};

/// Throws Error with the line of what reads more than the function's arguments, has an effect or
/// may fail.
void expect_of_arguments(FuncObject* function);
/// The function's own from here on.
void give_rule(FuncObject* function, bool back, FuncObject* rule);

/// The signature of a function, and of a rule for it, from what they are recorded of.
template <class F>
struct FunctionSignature {
  static_assert(HasSignature<F>,
                "quern: a function's parameters are spelled out, as in [](F32 a, F32 b) {...}");
  using type = signature_t<F>;
};
template <class S>
struct FunctionSignature<Func<S>> {
  using type = S;
};
template <class F, class Given>
struct RuleFor;
template <class F, bool Back, class G>
struct RuleFor<F, GivenRule<Back, G>> {
  using own = SignatureTypes<typename FunctionSignature<F>::type>;
  using expected = RuleOf<Back, typename own::arguments, typename own::results>;
  using type = typename RuleSignature<G, typename expected::taken>::type;
  using fits = FitsRule<Back, type, expected>;
};

template <class F>
using FunctionOf = Func<typename FunctionSignature<F>::type>;

/// What a call gives, to be returned.
template <class T>
Val<T> results_of(const Val<T>& v) {
  return v;
}
template <class... T>
Results<T...> results_of(const Called<T...>& called) {
  Results<T...> out;
  for (int k = 0; k < (count_of<T> + ... + 0); k++) out.ids[k] = called.ids[k];
  return out;
}

/// A function of its own that does what `f` does.
template <class S, class F>
Func<S> own_function(F f, Source source) {
  return Func<S>(std::move(f), source);
}
template <class S, class R, class... A>
Func<S> own_function(Func<R(A...)> f, Source source) {
  const auto call = [&](bare<A>... a) {
    if constexpr (std::is_same_v<typename ResultOf<R>::types, Types<>>)
      f(a...);
    else
      return results_of(f(a...));
  };
  return Func<S>(call, source);
}

template <class F, class... Rules>
FunctionOf<F> differentiable(F f, Source source, const Rules&... rules) {
  auto function = own_function<typename FunctionSignature<F>::type>(std::move(f), source);
  expect_of_arguments(function.object());
  const auto give = [&]<bool Back, class G>(const GivenRule<Back, G>& given) {
    const Func<typename RuleFor<F, GivenRule<Back, G>>::type> rule(given.f, given.source);
    give_rule(function.object(), Back, rule.object());
  };
  (give(rules), ...);
  return function;
}

}  // namespace detail

/// How a function's derivative is carried back: [](arguments…, results…, adjoints of the float
/// results…), which returns the adjoints of the float arguments, of type derivative_t, or nothing
/// where they are zero.
template <class F>
detail::GivenRule<true, F> pullback(
    F f, detail::Source source = detail::Source::here(QUERN_CHECKED_HERE)) {
  return {std::move(f), source};
}
/// How it is carried forward: [](arguments…, results…, tangents of the float arguments…), which
/// returns the tangents of the float results, or nothing where they are zero.
template <class F>
detail::GivenRule<false, F> pushforward(
    F f, detail::Source source = detail::Source::here(QUERN_CHECKED_HERE)) {
  return {std::move(f), source};
}

/// A function, from a lambda or a Func, with a derivative of its own: what differentiates a kernel
/// that calls it takes these rules in place of its code. Other kernels do not notice. It and its
/// rules depend on their arguments alone, have no effect and cannot fail: they read no field and draw
/// no random number, print and check nothing, index no local array, and neither divide integers by
/// what is no constant nor cast floats to integers. Throws Error with the line where they do.
template <class F, bool Back, class G>
detail::FunctionOf<F> differentiable(
    F f, const detail::GivenRule<Back, G>& rule,
    detail::Source source = detail::Source::here(QUERN_CHECKED_HERE)) {
  [[maybe_unused]] typename detail::RuleFor<F, detail::GivenRule<Back, G>>::fits fits;
  return detail::differentiable(std::move(f), source, rule);
}
template <class F, bool Back, class G, class H>
detail::FunctionOf<F> differentiable(
    F f, const detail::GivenRule<Back, G>& rule, const detail::GivenRule<!Back, H>& other,
    detail::Source source = detail::Source::here(QUERN_CHECKED_HERE)) {
  [[maybe_unused]] typename detail::RuleFor<F, detail::GivenRule<Back, G>>::fits fits;
  [[maybe_unused]] typename detail::RuleFor<F, detail::GivenRule<!Back, H>>::fits both_fit;
  return detail::differentiable(std::move(f), source, rule, other);
}

}  // namespace quern
