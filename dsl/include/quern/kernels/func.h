#pragma once
// Functions that are recorded once and called from kernels, where an ordinary C++ function or
// generic lambda would be inlined.
#include "quern/kernels/kernel.h"

namespace quern {
namespace detail {
/// `out` receives an id for each of the result's scalars. `handle` is the Func: while it is being
/// recorded it has no function yet, and calling it is recursion.
QUERN_RECORDS void call(const void* handle, FuncObject* function, const Id* arguments, int count,
                        Id* out, int results, Loc loc);

template <class X>
struct FunctionParameter {
  static_assert(
      never<X>,
      "quern: a function's parameter is a value (F32, I32, Val<T>); capture fields instead");
  static constexpr int count = 1;
  using device = Arg<int>;
};
template <Device X>
struct FunctionParameter<X> : Parameter<X> {};

/// The values a call yields, for `auto [a, b] = f(x)`.
template <class... T>
struct Called {
  Id ids[size_t((count_of<T> + ... + 1))];
  template <std::size_t K>
  auto get() const {
    using V = Nth<K, T...>;
    Ids<V> part;
    for (int k = 0; k < count_of<V>; k++) part.v[k] = ids[first_scalar<K, T...>() + k];
    return value<V>(part);
  }
};
}  // namespace detail

template <class Signature>
class Func;

template <class R, class... A>
class Func<R(A...)> {
  using Returned = detail::TypeList<typename detail::ResultOf<R>::types>;

 public:
  template <class F>
    requires(!std::is_same_v<F, Func>)
  Func(F f, detail::Source source = detail::Source::here(QUERN_CHECKED_HERE)) {
    detail::Recorder recorder(this, detail::is_checked({}, source.checked), Returned::scalars,
                              Returned::count, source.loc);
    detail::Trace<R, A...>::run(f, source.loc);
    object_ = detail::Ref<detail::FuncObject>(detail::make_function(recorder.finish()));
  }

  auto operator()(typename detail::FunctionParameter<detail::bare<A>>::device... a,
                  Loc l = Loc::here()) const {
    constexpr int count = (detail::FunctionParameter<detail::bare<A>>::count + ... + 0);
    detail::Id arguments[size_t(count) + 1];
    [[maybe_unused]] detail::Id* next = arguments;
    [[maybe_unused]] auto append = [&](const auto& list) {
      for (detail::Id id : list.v) *next++ = id;
    };
    (append(a.ids), ...);
    if constexpr (sizeof...(A) > 1) detail::in_order(l, a.ids...);
    return finish(arguments, count, l, typename detail::ResultOf<R>::types{});
  }

  detail::FuncObject* object() const { return object_.get(); }

 private:
  template <class... T>
  auto finish(const detail::Id* arguments, int count, Loc l, detail::Types<T...>) const {
    detail::Called<T...> out;
    detail::call(this, object_.get(), arguments, count, out.ids, Returned::count, l);
    if constexpr (sizeof...(T) == 1)
      return out.template get<0>();
    else if constexpr (sizeof...(T) > 1)
      return out;
  }
  detail::Ref<detail::FuncObject> object_;
};

template <class F>
  requires detail::HasSignature<F>
Func(F) -> Func<typename detail::Signature<F>::type>;

}  // namespace quern

template <class... T>
struct std::tuple_size<quern::detail::Called<T...>>
    : std::integral_constant<std::size_t, sizeof...(T)> {};
template <std::size_t K, class... T>
struct std::tuple_element<K, quern::detail::Called<T...>> {
  using type = quern::Val<quern::detail::Nth<K, T...>>;
};
