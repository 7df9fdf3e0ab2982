#pragma once
// From a lambda to a signature: what its parameters are, and what it yields.
#include "quern/fields/field.h"

namespace quern {

/// Several results of a kernel: `return result(a, b);`.
template <class... T>
struct Results {
  detail::Id ids[size_t((detail::count_of<T> + ... + 0))];
};

namespace lang {
template <detail::Operand... U>
auto result(const U&... u) {
  Results<detail::canonical_t<detail::elem_t<U>>...> out;
  detail::Id* next = out.ids;
  auto append = [&](const auto& list) {
    for (detail::Id id : list.v) *next++ = id;
  };
  (append(detail::result_ids(u, Loc{})), ...);
  return out;
}
/// Ends a kernel or function with several results: `Return(result(a, b))`.
template <class... T>
void Return(const Results<T...>& several, Loc l = Loc::here()) {
  detail::return_(several.ids, (detail::count_of<T> + ... + 0), l);
}
}  // namespace lang

namespace detail {

template <class L>
struct TypeList;
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
/// The scalars of a host value.
template <class T>
void value_arguments(const T& v, Argument* out) {
  Traits<T>::each(v, [&](const auto& scalar) {
    static_assert(sizeof scalar <= 8);
    __builtin_memcpy(&out++->bits, &scalar, sizeof scalar);
  });
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
    requires std::is_convertible_v<const U&, T> || (is_half<T> && std::is_arithmetic_v<U>)
  Passed(const U& u, Loc l = Loc::here()) : v(checked(u, l)) {}

 private:
  template <class U>
  static T checked(const U& u, [[maybe_unused]] Loc l) {
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
/// A host value of its scalars' bits, `next()` after `next()`.
template <class T, class F>
T from_bits(F next) {
  T v{};
  Traits<T>::each(v, [&](auto& scalar) {
    uint64_t bits = next();
    __builtin_memcpy(static_cast<void*>(&scalar), &bits, sizeof scalar);
  });
  return v;
}

// ---- the recording of a kernel or function
/// Opens a recording; leaving without finish (an exception of the user's) drops it.
class Recorder {
 public:
  /// A kernel, or (`function`: the address of its handle) a function, with these results.
  Recorder(const void* function, bool checked, const Scalar* results, int count, Loc loc);
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
  static constexpr int count = 1;
  using host = X;
  using device = X;
};
template <class T>
struct Parameter<Val<T>> {
  static constexpr int count = count_of<T>;
  static Val<T> make(Loc l) {
    Ids<T> ids;
    for (int k = 0; k < count; k++) ids.v[k] = parameter(scalars_of<T>.v[k], l);
    return value<T>(ids);
  }
  using host = Passed<T>;
  using device = Arg<T>;
  static void pass(const Passed<T>& a, Argument* out) { value_arguments(a.v, out); }
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
  static constexpr int count = 1;
  static Field<T, N> make(Loc l) {
    return Field<T, N>(Ref<FieldObject>(field_parameter(Field<T, N>::type(), l)));
  }
  using host = Field<T, N>;
  static void pass(const Field<T, N>& f, Argument* out) { *out = {0, f.object()}; }
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
      auto ids = result_ids(v, Loc{});
      native_return(ids.v, count_of<elem_t<V>>);
    }
    template <class... T>
    static void record(const Results<T...>& v) {
      native_return(v.ids, (count_of<T> + ... + 0));
    }
  };
  template <class F>
  static void run(F& f, [[maybe_unused]] Loc loc) {
    Ordered<F>{f, Parameter<bare<A>>::make(loc)...};
  }
};

/// The scalars of results T….
template <class... T>
struct TypeList<Types<T...>> {
  static constexpr int count = (count_of<T> + ... + 0);
  static constexpr ScalarList<count> list = joined_scalars<T...>();
  static constexpr const Scalar* scalars = list.v;
};

}  // namespace detail
}  // namespace quern
