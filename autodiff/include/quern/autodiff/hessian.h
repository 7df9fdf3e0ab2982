#pragma once
// Second derivatives of kernels that yield one float.
#include "quern/autodiff/gradient.h"
#include "quern/autodiff/jvp.h"

namespace quern {

/// The value y = f(x) of one launch, its gradient ∇f(x) and ∇²f(x) v: of scalar arguments here, of
/// fields x in x.grad() and x.grad().dual().
template <class T, class Choice, class... A>
class HessianVector : public ValueAndGradient<T, Choice, A...> {
 public:
  explicit HessianVector(detail::GradientLaunches launches)
      : ValueAndGradient<T, Choice, A...>(launches) {}
  /// ∇²f(x) v, where it belongs to the K-th parameter: of its type, of halves float. Waits.
  template <std::size_t K>
  auto product(Loc l = Loc::here()) const {
    return this->template second<K>(l);
  }
};

template <class Signature, class Choice>
class HessianVectorOf;

/// A kernel y = f(x) with one float for its result, of which it computes value, gradient and the
/// Hessian times a direction v: forward over reverse, of the cost of a few gradients, whatever the
/// number of inputs. It takes the kernel's arguments. Of fields x that derivatives are taken by v
/// is x.dual(), and x.grad() and x.grad().dual() are *set*; of a scalar argument v is 0 unless
/// given (Dual). What else holds is said at ValueAndGrad. Where f has a kink its second derivative
/// is that of the side taken.
template <class R, class... A, class Choice>
class HessianVectorOf<R(A...), Choice> {
  using Value = typename detail::OneFloat<typename detail::ResultOf<R>::types>::type;

 public:
  /// Throws Error where `inputs` names a field that the kernel does not capture.
  HessianVectorOf(const Kernel<R(A...)>& kernel, const detail::Inputs& inputs, Loc l)
      : object_(
            detail::gradient_of<Choice, R, detail::bare<A>...>(kernel.object(), inputs, true, l)) {}

  /// Throws Error as Vjp does.
  HessianVector<Value, Choice, detail::bare<A>...> operator()(
      typename detail::ForwardParameter<detail::bare<A>>::host... a, Loc l = Loc::here()) const {
    constexpr int count = (detail::Parameter<detail::bare<A>>::count + ... + 0);
    detail::Argument arguments[size_t(count) + 1];
    uint64_t tangents[size_t(count) + 1] = {};
    detail::pass_forward<detail::bare<A>...>(arguments, tangents, a...);
    return HessianVector<Value, Choice, detail::bare<A>...>(
        detail::launch_gradient(object_.get(), arguments, tangents, count, l));
  }

 private:
  detail::Ref<detail::GradientObject> object_;
};

/// By what derivatives are taken is said at value_and_grad().
template <std::size_t... K, class Signature>
HessianVectorOf<Signature, detail::By<sizeof...(K) == 0, K...>> hessian_vector(
    const Kernel<Signature>& kernel, Loc l = Loc::here()) {
  return {kernel, {.all = sizeof...(K) == 0}, l};
}
template <std::size_t... K, class Signature, int N>
HessianVectorOf<Signature, detail::By<false, K...>> hessian_vector(const Kernel<Signature>& kernel,
                                                                   const Wrt<N>& fields,
                                                                   Loc l = Loc::here()) {
  return {kernel, {.all = false, .captured = fields.fields, .captured_count = N}, l};
}

}  // namespace quern
