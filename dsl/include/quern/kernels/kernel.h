#pragma once
// Kernels: a lambda recorded once, launched any number of times.
#include "quern/kernels/signature.h"

namespace quern {

/// A yes or no that may be left to the default.
struct Choice {
  signed char state = -1;
  constexpr Choice() = default;
  constexpr Choice(bool on) : state(on) {}
};

/// How a kernel is compiled.
struct Options {
  Choice strict = {};  ///< the same bits on every device; default: QUERN_STRICT=1, else no
  /// Indices, divisions and casts are tested; default: where NDEBUG is not defined. The
  /// environment's QUERN_CHECKED=0|1 overrides.
  Choice checked = {};
  Choice contract = {};        ///< a·b + c may be rounded once; default: yes unless strict
  const char* name = nullptr;  ///< in messages and listings
};

namespace detail {

/// Where a kernel is written, and whether that file is compiled for debugging.
struct Source {
  Loc loc;
  bool checked;
  static constexpr Source here(bool is_checked, const char* file = __builtin_FILE(),
                               int line = __builtin_LINE()) {
    return {{file, line}, is_checked};
  }
};
#ifdef NDEBUG
#define QUERN_CHECKED_HERE false
#else
#define QUERN_CHECKED_HERE true
#endif

/// Is it checked, given the options and whether the file is compiled for debugging?
bool is_checked(Choice option, bool debugging);
void set_modes(KernelObject* kernel, const Options& options, bool checked);
/// Null where the kernel has no results.
LaunchObject* launch(KernelObject* kernel, const Argument* arguments, int count, Loc loc);
/// Waits. Throws Error where the launch failed, and for null, a result that was moved from.
uint64_t launch_result(LaunchObject* launch, int k, Loc loc);

}  // namespace detail

/// What a launch yields; converting it waits for the kernel, and throws, each time, the failed check
/// that ended the launch or kept it from running. Several results: `auto [a, b] = k();`.
template <class... T>
class Result {
 public:
  explicit Result(detail::LaunchObject* launch) : launch_(launch) {}
  template <std::size_t K>
  auto get(Loc l = Loc::here()) const {
    int k = detail::first_scalar<K, T...>();
    return detail::from_bits<detail::Nth<K, T...>>(
        [&] { return detail::launch_result(launch_.get(), k++, l); });
  }
  /// The only result.
  auto value(Loc l = Loc::here()) const
    requires(sizeof...(T) == 1)
  {
    return get<0>(l);
  }
  operator detail::Nth<0, T...>() const
    requires(sizeof...(T) == 1)
  {
    return get<0>(Loc{});
  }

 private:
  detail::Ref<detail::LaunchObject> launch_;
};

template <class Signature>
class Kernel;

template <class R, class... A>
class Kernel<R(A...)> {
  using Returned = detail::TypeList<typename detail::ResultOf<R>::types>;

 public:
  template <class F>
    requires(!std::is_same_v<F, Kernel>)
  Kernel(F f, Options options = {},
         detail::Source source = detail::Source::here(QUERN_CHECKED_HERE)) {
    bool checked = detail::is_checked(options.checked, source.checked);
    detail::Recorder recorder(nullptr, checked, Returned::scalars, Returned::count, source.loc);
    detail::Trace<R, A...>::run(f, source.loc);
    object_ =
        detail::Ref<detail::KernelObject>(detail::make_kernel(recorder.finish(), options.name));
    detail::set_modes(object_.get(), options, checked);
  }

  /// Launches; may return before the kernel ends. Yields Result<…>, or nothing.
  auto operator()(typename detail::Parameter<detail::bare<A>>::host... a,
                  Loc l = Loc::here()) const {
    constexpr int count = (detail::Parameter<detail::bare<A>>::count + ... + 0);
    detail::Argument arguments[size_t(count) + 1];
    [[maybe_unused]] detail::Argument* next = arguments;
    (detail::Parameter<detail::bare<A>>::pass(
         a, std::exchange(next, next + detail::Parameter<detail::bare<A>>::count)),
     ...);
    return finish(detail::launch(object_.get(), arguments, count, l),
                  typename detail::ResultOf<R>::types{});
  }

  detail::KernelObject* object() const { return object_.get(); }

 private:
  static void finish(detail::LaunchObject*, detail::Types<>) {}
  template <class... T>
  static Result<T...> finish(detail::LaunchObject* launch, detail::Types<T...>) {
    return Result<T...>(launch);
  }
  detail::Ref<detail::KernelObject> object_;
};

template <class F>
Kernel(F) -> Kernel<detail::signature_t<F>>;
template <class F>
Kernel(F, Options) -> Kernel<detail::signature_t<F>>;

template <>
class Kernel<detail::GenericLambda> {
 public:
  template <class F>
  Kernel(F, Options = {}) {
    static_assert(detail::never<F>,
                  "quern: a kernel's parameters are spelled out, as in [](F32 a, Field<float> x) "
                  "{...}; a generic lambda, [](auto a), has no one signature");
  }
};

}  // namespace quern

template <class... T>
struct std::tuple_size<quern::Result<T...>> : std::integral_constant<std::size_t, sizeof...(T)> {};
template <std::size_t K, class... T>
struct std::tuple_element<K, quern::Result<T...>> {
  using type = quern::detail::Nth<K, T...>;
};
