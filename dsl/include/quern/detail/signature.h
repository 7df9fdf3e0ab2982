#pragma once
// From a lambda to a signature: what its parameters are, and what it yields.
#include "quern/field.h"

namespace quern {

/// Several results of a kernel: `return result(a, b);`.
template <class... T>
struct Results {
  detail::Id ids[sizeof...(T)];
};

namespace lang {
template <detail::Operand... U>
auto result(const U&... u) {
  return Results<detail::canonical_t<detail::elem_t<U>>...>{
      {detail::operand_ids<detail::canonical_t<detail::elem_t<U>>>(u, Loc{}).v[0]...}};
}
}  // namespace lang

namespace detail {

template <class... T>
struct Types {};
template <class L>
struct TypeList;
template <std::size_t K, class T, class... R>
struct NthOf : NthOf<K - 1, R...> {};
template <class T, class... R>
struct NthOf<0, T, R...> {
  using type = T;
};
template <std::size_t K, class... T>
using Nth = typename NthOf<K, T...>::type;

/// A result type decomposed into host types.
template <class R>
struct ResultOf {
  static_assert(Operand<R>, "quern: a kernel returns a value, result(a, b), or nothing");
  using types = Types<canonical_t<elem_t<R>>>;
};
template <>
struct ResultOf<void> {
  using types = Types<>;
};
template <class... T>
struct ResultOf<Results<T...>> {
  using types = Types<T...>;
};

struct GenericLambda {};
template <class F>
struct Signature : Signature<decltype(&F::operator())> {};
template <class R, class... A>
struct Signature<R (*)(A...)> {
  using type = R(A...);
};
template <class C, class R, class... A>
struct Signature<R (C::*)(A...)> {
  using type = R(A...);
};
template <class C, class R, class... A>
struct Signature<R (C::*)(A...) const> {
  using type = R(A...);
};
template <class C, class R, class... A>
struct Signature<R (C::*)(A...) noexcept> {
  using type = R(A...);
};
template <class C, class R, class... A>
struct Signature<R (C::*)(A...) const noexcept> {
  using type = R(A...);
};
template <class F>
concept HasSignature =
    std::is_pointer_v<F> || requires { typename std::type_identity<decltype(&F::operator())>; };
template <class F, bool = HasSignature<F>>
struct SignatureOr {
  using type = GenericLambda;
};
template <class F>
struct SignatureOr<F, true> {
  using type = typename Signature<F>::type;
};
template <class F>
using signature_t = typename SignatureOr<F>::type;

/// What is passed for one parameter of a launch.
struct Argument {
  uint64_t bits = 0;
  FieldObject* field = nullptr;
};
template <class T>
Argument scalar_argument(T v) {
  static_assert(sizeof(T) <= 8);
  Argument a;
  __builtin_memcpy(&a.bits, &v, sizeof v);
  return a;
}
/// Throws Error where a parameter of this type cannot hold the host value.
void expect_holds(Scalar type, int64_t v, Loc loc);
void expect_holds(Scalar type, uint64_t v, Loc loc);
void expect_holds(Scalar type, double v, Loc loc);

/// What the host passes for a parameter of type T; as in a recording, a number must fit.
template <class T>
struct Passed {
  T v;
  template <class U>
    requires std::is_convertible_v<const U&, T>
  Passed(const U& u, Loc l = Loc::here()) : v(checked(u, l)) {}

 private:
  template <class U>
  static T checked(const U& u, Loc l) {
    if constexpr (std::is_arithmetic_v<U> && !std::is_same_v<U, T> && !std::is_same_v<T, bool>) {
      if constexpr (std::is_floating_point_v<U>)
        expect_holds(scalar_of<T>(), double(u), l);
      else if constexpr (std::is_signed_v<U>)
        expect_holds(scalar_of<T>(), int64_t(u), l);
      else
        expect_holds(scalar_of<T>(), uint64_t(u), l);
    }
    return static_cast<T>(u);
  }
};
template <class T>
T from_bits(uint64_t bits) {
  T v;
  __builtin_memcpy(&v, &bits, sizeof v);
  return v;
}

// ---- the recording of a kernel or function
struct Recording;
/// Opens a recording; leaving without finish (an exception of the user's) drops it.
class Recorder {
 public:
  Recorder(bool function, const Scalar* results, int count, Loc loc);
  Recorder(const Recorder&) = delete;
  ~Recorder();
  /// Throws the first error; else the caller owns what was recorded.
  Recording* finish();

 private:
  bool open_ = true;
};
KernelObject* make_kernel(Recording* owned, const char* name);
FuncObject* make_function(Recording* owned);
Id parameter(Scalar type, Loc loc);
FieldObject* field_parameter(FieldType type, Loc loc);
/// The native `return` at the end.
void native_return(const Id* values, int count);

/// A parameter: made at recording, and given by `host` at a launch or by `device` at a call.
template <class X>
struct Parameter {
  static_assert(never<X>, "quern: a kernel parameter is a value (F32, I32, Val<T>) or a Field");
  using host = X;
  using device = X;
};
template <DeviceScalar T>
struct Parameter<Val<T>> {
  static Val<T> make(Loc l) { return value<T>(parameter(scalar_of<T>(), l)); }
  using host = Passed<T>;
  using device = Arg<T>;
  static Argument pass(Passed<T> a) { return scalar_argument(a.v); }
};
template <class T>
struct Parameter<Var<T>> {
  static_assert(never<T>,
                "quern: a kernel parameter is a value: write Val<T> (F32, I32, ...), and copy it "
                "into a Var inside");
  using host = T;
  using device = T;
};
template <class T, int N>
struct Parameter<Field<T, N>> {
  static Field<T, N> make(Loc l) {
    return Field<T, N>(Ref<FieldObject>(field_parameter({type_of<T>, count_of<T>, N}, l)));
  }
  using host = Field<T, N>;
  static Argument pass(const Field<T, N>& f) { return {0, f.object()}; }
};

/// Runs the user's function, with parameters made in order, and records its native result.
template <class R, class... A>
struct Trace {
  template <class F>
  struct Ordered {
    QUERN_RECORDS Ordered(F& f, bare<A>... a) {
      if constexpr (std::is_void_v<R>)
        f(a...);
      else
        record(f(a...));
    }
    template <Operand V>
    static void record(const V& v) {
      auto ids = operand_ids<canonical_t<elem_t<V>>>(v, Loc{});
      native_return(ids.v, 1);
    }
    template <class... T>
    static void record(const Results<T...>& v) {
      native_return(v.ids, int(sizeof...(T)));
    }
  };
  template <class F>
  static void run(F& f, [[maybe_unused]] Loc loc) {
    Ordered<F>{f, Parameter<bare<A>>::make(loc)...};
  }
};

template <class... T>
struct TypeList<Types<T...>> {
  static constexpr int count = int(sizeof...(T));
  static constexpr Scalar scalars[] = {scalar_of<T>()..., Scalar::none};
};

}  // namespace detail
}  // namespace quern
