#pragma once
// Functions that are recorded once and called from kernels, where an ordinary C++ function or
// generic lambda would be inlined.
#include "quern/detail/signature.h"

namespace quern {
namespace detail {
/// `out` receives one id for each result.
QUERN_RECORDS void call(FuncObject* function, const Id* arguments, int count, Id* out, Loc loc);

template <class X>
struct FunctionParameter {
  static_assert(
      never<X>,
      "quern: a function's parameter is a value (F32, I32, Val<T>); capture fields instead");
  using device = Arg<int>;
};
template <Device X>
struct FunctionParameter<X> : Parameter<X> {};
}  // namespace detail

template <class Signature>
class Func;

template <class R, class... A>
class Func<R(A...)> {
  using Returned = detail::TypeList<typename detail::ResultOf<R>::types>;
  static_assert(Returned::count <= 1, "quern: a function has one result or none");

 public:
  template <class F>
    requires(!std::is_same_v<F, Func>)
  Func(F f, Loc l = Loc::here()) {
    detail::Recorder recorder(true, Returned::scalars, Returned::count, l);
    detail::Trace<R, A...>::run(f, l);
    object_ = detail::Ref<detail::FuncObject>(detail::make_function(recorder.finish()));
  }

  auto operator()(typename detail::FunctionParameter<detail::bare<A>>::device... a,
                  Loc l = Loc::here()) const {
    detail::Id arguments[sizeof...(A) + 1] = {a.id()...};
    detail::Id out[1];
    detail::call(object_.get(), arguments, int(sizeof...(A)), out, l);
    return finish(out[0], typename detail::ResultOf<R>::types{});
  }

 private:
  static void finish(detail::Id, detail::Types<>) {}
  template <class T>
  static Val<T> finish(detail::Id id, detail::Types<T>) {
    return detail::value<T>(id);
  }
  detail::Ref<detail::FuncObject> object_;
};

template <class F>
  requires detail::HasSignature<F>
Func(F) -> Func<typename detail::Signature<F>::type>;

}  // namespace quern
