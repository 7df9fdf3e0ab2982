#pragma once
// Are derivatives right? A tool for tests of programs that use them.
#include <functional>
#include <string>
#include <vector>

#include "quern/autodiff/gradient.h"

namespace quern {

/// What check_gradient() found.
struct GradientReport {
  /// Of one input, a field or a scalar argument: how what a gradient does not explain of f falls
  /// with h, for a random direction v of this input alone. Where all is computed in doubles that is
  /// f(x + h v) - f(x) - h ⟨∇f, v⟩. Of floats, whose values have seven digits, it is
  /// (f(x + h v) - f(x - h v)) / 2 - h ⟨∇f, v⟩, which falls below the noise sooner, at larger
  /// steps. Of a few random v it is the one along which f changes most, by its gradient.
  struct Input {
    std::string name;
    std::vector<double> steps;  ///< h, the largest first: doubles 0.1, 0.01, …; floats 1/8, 1/16, …
    std::vector<double> remainders;  ///< magnitudes
    double noise = 0;  ///< in values of f: remainders up to some times this say nothing
    /// The order of remainders at the smallest steps that say something, at least: 2 or more
    /// (floats: up to 3) where the gradient is right, 1 where it is wrong or f has a kink; NaN:
    /// none says anything, as of linear functions.
    double slope = 0;
    /// |⟨∇f, v⟩ - central difference| in proportion to the larger; what noise makes uncertain of
    /// the difference is not counted.
    double error = 0;
    /// Errors of ⟨∇f, v⟩ up to this, in proportion, would not have shown in the noise of f; 1:
    /// nothing would.
    double unseen = 0;
    bool passed = false;
    /// Where it did not pass, the element that differs most: "x[17]: …"; found by bisection.
    std::string where;
  };
  std::vector<Input> inputs;
  /// ⟨J v, w⟩ forward and ⟨v, Jᵀ w⟩ back, for random v and w; of kernels only.
  bool has_products = false;
  double forward = 0, reverse = 0;
  double product_error = 0;  ///< their difference, in proportion to the magnitudes of the terms
  double worst_error = 0;    ///< of all errors above
  bool passed = false;
  /// All of it, for people; where it did not pass the first line says so.
  std::string text() const;
};

namespace detail {
GradientReport check_kernel(KernelObject* kernel, const Argument* arguments, int count,
                            uint32_t seed, Loc loc);
GradientReport check_fields(const std::function<double()>& value,
                            const std::function<void()>& gradient, const Ref<FieldObject>* fields,
                            int count, uint32_t seed, Loc loc);
}  // namespace detail

template <class Signature>
class GradientCheck;

/// Checks what Quern makes of a kernel, at the arguments given: forward against reverse by the dot
/// product test, and reverse by Taylor remainders of ⟨w, f⟩, f being all floats that the kernel
/// yields and writes. Floats are f64 or f32. It fails where f has a kink at x, or nearby: where f
/// is curved, of doubles within a millionth or so of the size of x, of floats within some
/// hundredths.
///
/// Where any is an f32, f is known to 1e-7 or so, and as much is checked as that allows. Ways are
/// those between the numbers that an input holds, so that its own rounding is no error. The noise
/// of f is measured, by second differences (Moré and Wild, Estimating computational noise, SIAM J.
/// Sci. Comput. 33(3), 2011), and remainders are compared only where they are well above it. By
/// Taylor's formula those of a right gradient fall as h³, those of a wrong one as h; where none is
/// above the noise, the gradient is to agree with a central difference to 1e-3. Forward and reverse
/// agree to 1e-4 (doubles: 1e-10). What an error is too small for to be found says `unseen`.
///
/// Throws Error for halves, fields that share elements, kernels that Jvp and Vjp refuse, and
/// kernels that take or make no floats. Fields keep their elements; their grad() is overwritten, and
/// their dual() is 0 behind it.
template <class R, class... A>
class GradientCheck<R(A...)> {
 public:
  GradientCheck(const Kernel<R(A...)>& kernel, uint32_t seed) : kernel_(kernel), seed_(seed) {}
  GradientReport operator()(typename detail::Parameter<detail::bare<A>>::host... a,
                            Loc l = Loc::here()) const {
    constexpr int count = (detail::Parameter<detail::bare<A>>::count + ... + 0);
    detail::Argument arguments[size_t(count) + 1];
    detail::pass_values<detail::bare<A>...>(arguments, a...);
    return detail::check_kernel(kernel_.object(), arguments, count, seed_, l);
  }

 private:
  Kernel<R(A...)> kernel_;
  uint32_t seed_;
};
/// `check_gradient(kernel)(arguments…)`. `seed`: of the random directions.
template <class R, class... A>
GradientCheck<R(A...)> check_gradient(const Kernel<R(A...)>& kernel, uint32_t seed = 1) {
  return {kernel, seed};
}

/// Checks any code that computes a gradient, with custom derivatives or a tape for example, by
/// Taylor remainders: `value()` yields f of the fields' elements, and `gradient()` leaves ∂f/∂x in
/// x.grad(), which is 0 when it is called. Both are called with the elements that the fields have
/// now; value() is called some 40 times an input with others near them, which the fields do not
/// keep. What else it depends on it leaves as it was. Where a field holds f32 values of f are taken
/// to be rounded to that; where all hold f64, value() is computed in doubles throughout. Throws
/// Error for fields that hold halves, or share elements.
template <int N>
GradientReport check_gradient(const std::function<double()>& value,
                              const std::function<void()>& gradient, const Wrt<N>& fields,
                              uint32_t seed = 1, Loc l = Loc::here()) {
  return detail::check_fields(value, gradient, fields.fields, N, seed, l);
}

}  // namespace quern
