#pragma once
// Errors in units in the last place against MPFR, and random arguments.
#include <mpfr.h>

#include <cmath>
#include <cstdint>
#include <limits>

#include "quern/ir/math.h"

namespace quern::test {

/// The exact value of a function at doubles (f32 arguments are doubles too), to 140 bits.
class Reference {
 public:
  explicit Reference(ir::Op op) : op_(op) {
    mpfr_inits2(140, value_, a_, b_, nullptr);
    mpfr_set_emin(-100000);
    mpfr_set_emax(100000);
  }
  ~Reference() { mpfr_clears(value_, a_, b_, nullptr); }
  Reference(const Reference&) = delete;

  void compute(double a, double b) {
    mpfr_set_d(a_, a, MPFR_RNDN);
    mpfr_set_d(b_, b, MPFR_RNDN);
    switch (op_) {
      case ir::Op::sin: mpfr_sin(value_, a_, MPFR_RNDN); break;
      case ir::Op::cos: mpfr_cos(value_, a_, MPFR_RNDN); break;
      case ir::Op::exp: mpfr_exp(value_, a_, MPFR_RNDN); break;
      case ir::Op::log: mpfr_log(value_, a_, MPFR_RNDN); break;
      case ir::Op::atan2: mpfr_atan2(value_, a_, b_, MPFR_RNDN); break;
      default: mpfr_pow(value_, a_, b_, MPFR_RNDN); break;
    }
  }

  /// Distance of `got` from the value in units in the last place of T; where the value lies beyond
  /// the largest number infinity is right (and that number within rounding of it).
  template <class T>
  double ulps(T got) {
    if (mpfr_nan_p(value_)) return std::isnan(got) ? 0 : 1e9;
    if (std::isnan(got)) return 1e9;
    if (mpfr_inf_p(value_)) return double(got) == mpfr_get_d(value_, MPFR_RNDN) ? 0 : 1e9;
    constexpr int digits = std::numeric_limits<T>::digits;
    constexpr int lowest =
        std::numeric_limits<T>::min_exponent;  // of the smallest normal, in [½, 1)
    constexpr int highest = std::numeric_limits<T>::max_exponent;
    long e = mpfr_zero_p(value_) ? lowest : mpfr_get_exp(value_);
    if (std::isinf(got)) {
      // infinity stands for 2^highest
      mpfr_set_ui_2exp(a_, 1, highest, MPFR_RNDN);
      if (got < 0) mpfr_neg(a_, a_, MPFR_RNDN);
      if (e > highest) return (got < 0) == (mpfr_sgn(value_) < 0) ? 0 : 1e9;
    } else {
      mpfr_set_d(a_, double(got), MPFR_RNDN);
    }
    mpfr_sub(a_, a_, value_, MPFR_RNDN);
    long unit = (e < lowest ? lowest : e > highest ? highest : e) - digits;
    mpfr_mul_2si(a_, a_, -unit, MPFR_RNDN);
    return std::fabs(mpfr_get_d(a_, MPFR_RNDN));
  }

 private:
  ir::Op op_;
  mpfr_t value_, a_, b_;
};

/// SplitMix64 (Steele, Lea & Flood, 2014).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t bits() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  double uniform(double lo, double hi) { return lo + (hi - lo) * double(bits() >> 11) * 0x1p-53; }
  /// Magnitude log-uniform between 2^lo and 2^hi, random sign.
  double spread(double lo, double hi) {
    double v = std::exp2(uniform(lo, hi));
    return bits() & 1 ? -v : v;
  }

 private:
  uint64_t state_;
};

}  // namespace quern::test
