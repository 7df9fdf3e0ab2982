#pragma once
// One launch that is gone back through.
#include "quern/autodiff/floats.h"

namespace quern {

namespace detail {
struct ReverseObject;
struct PullbackObject;
void retain(ReverseObject*) noexcept;
void release(ReverseObject*) noexcept;
void retain(PullbackObject*) noexcept;
void release(PullbackObject*) noexcept;
ReverseObject* make_reverse(KernelObject* kernel, Loc loc);
PullbackObject* launch_recorded(ReverseObject* reverse, const Argument* arguments, int count,
                                Loc loc);
/// Of the launch itself; null where the kernel has no results.
LaunchObject* recorded_launch(PullbackObject* pullback);
/// `seeds`: bits of the adjoints of the kernel's float results.
LaunchObject* go_back(PullbackObject* pullback, const uint64_t* seeds, int count, Loc loc);
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
    constexpr int floats[] = {detail::ScalarsOfParameter<A>::floats...};
    int k = 0;
    for (size_t before = 0; before < K; before++) k += floats[before];
    return detail::derivative_of_results<Derivative>(launch_.get(), k, l);
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

  /// Throws Error at the line of what has no adjoint: what jvp() refuses, an element that is read
  /// while other iterations of the same loop add to it.
  auto operator()(typename detail::Parameter<detail::bare<A>>::host... a,
                  Loc l = Loc::here()) const {
    constexpr int count = (detail::Parameter<detail::bare<A>>::count + ... + 0);
    detail::Argument arguments[size_t(count) + 1];
    detail::pass_values<detail::bare<A>...>(arguments, a...);
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
