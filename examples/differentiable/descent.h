#pragma once
// What programs that optimise share: a loss with its gradient, and what goes down along one.
#include <quern/autodiff.h>

#include <cmath>

namespace examples {

/// What `forward()` leaves in `loss`; the gradient is added to the grad() of the fields `by`, which
/// `forward()` reads. It writes its state first, so that the state's adjoints are 0 behind this.
template <class Real, int N, class Forward>
double differentiate(const quern::Field<Real, 0>& loss, const quern::Wrt<N>& by, Forward forward) {
  loss.grad().fill(1);
  quern::Tape tape(by);
  forward();
  tape.backward();
  return double(loss.at({}));
}

/// A number's type, or that of a vector's components.
template <class T>
struct RealOf {
  using type = T;
};
template <class R, int N>
struct RealOf<quern::Vec<R, N>> {
  using type = R;
};

/// Steps against the gradient in x.grad(). T: numbers, or vectors of them.
template <class T, int N>
class GradientDescent {
 public:
  using Real = typename RealOf<T>::type;
  explicit GradientDescent(const quern::Field<T, N>& x) : move_(kernel(x, x.grad())) {}
  void step(double rate) { move_(Real(rate)); }

 private:
  using Move = quern::Kernel<void(quern::Val<Real>)>;
  static Move kernel(const quern::Field<T, N>& x, const quern::Field<T, N>& gradient) {
    return Move{[=](quern::Val<Real> rate) {
      for (auto I : x) x[I] = x[I] - rate * gradient[I];
    }};
  }
  Move move_;
};

/// Kingma & Ba, "Adam: A Method for Stochastic Optimization", ICLR 2015, with their constants.
template <class T, int N>
class Adam {
 public:
  using Real = typename RealOf<T>::type;
  /// `mean`, `square`: fields like x, of zeros.
  Adam(const quern::Field<T, N>& x, const quern::Field<T, N>& mean,
       const quern::Field<T, N>& square)
      : move_(kernel(x, x.grad(), mean, square)) {}
  void step(double rate) {
    steps_++;
    move_(Real(rate / (1 - std::pow(decay_mean, steps_))),
          Real(1 / (1 - std::pow(decay_square, steps_))));
  }

 private:
  static constexpr double decay_mean = 0.9, decay_square = 0.999;
  using Move = quern::Kernel<void(quern::Val<Real>, quern::Val<Real>)>;
  static Move kernel(const quern::Field<T, N>& x, const quern::Field<T, N>& gradient,
                     const quern::Field<T, N>& mean, const quern::Field<T, N>& square) {
    return Move{[=](quern::Val<Real> rate, quern::Val<Real> scale) {
      for (auto I : x) {
        quern::Val<T> g = gradient[I];
        quern::Val<T> m = decay_mean * mean[I] + (1 - decay_mean) * g;
        quern::Val<T> s = decay_square * square[I] + (1 - decay_square) * g * g;
        mean[I] = m;
        square[I] = s;
        x[I] = x[I] - rate * m / (sqrt(scale * s) + 1e-8);
      }
    }};
  }
  int steps_ = 0;
  Move move_;
};

}  // namespace examples
