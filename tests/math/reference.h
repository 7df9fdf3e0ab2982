#pragma once
// Errors in units in the last place against MPFR, and random arguments.
#include <mpfr.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>

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
    constexpr mpfr_rnd_t nearest = MPFR_RNDN;
    switch (op_) {
      case ir::Op::sin: mpfr_sin(value_, a_, nearest); break;
      case ir::Op::cos: mpfr_cos(value_, a_, nearest); break;
      case ir::Op::tan: mpfr_tan(value_, a_, nearest); break;
      case ir::Op::asin: mpfr_asin(value_, a_, nearest); break;
      case ir::Op::acos: mpfr_acos(value_, a_, nearest); break;
      case ir::Op::atan: mpfr_atan(value_, a_, nearest); break;
      case ir::Op::sinh: mpfr_sinh(value_, a_, nearest); break;
      case ir::Op::cosh: mpfr_cosh(value_, a_, nearest); break;
      case ir::Op::tanh: mpfr_tanh(value_, a_, nearest); break;
      case ir::Op::sech2:
        mpfr_sech(value_, a_, nearest);
        mpfr_sqr(value_, value_, nearest);
        break;
      case ir::Op::asinh: mpfr_asinh(value_, a_, nearest); break;
      case ir::Op::acosh: mpfr_acosh(value_, a_, nearest); break;
      case ir::Op::atanh: mpfr_atanh(value_, a_, nearest); break;
      case ir::Op::exp: mpfr_exp(value_, a_, nearest); break;
      case ir::Op::exp2: mpfr_exp2(value_, a_, nearest); break;
      case ir::Op::expm1: mpfr_expm1(value_, a_, nearest); break;
      case ir::Op::log: mpfr_log(value_, a_, nearest); break;
      case ir::Op::log2: mpfr_log2(value_, a_, nearest); break;
      case ir::Op::log10: mpfr_log10(value_, a_, nearest); break;
      case ir::Op::log1p: mpfr_log1p(value_, a_, nearest); break;
      case ir::Op::cbrt: mpfr_cbrt(value_, a_, nearest); break;
      case ir::Op::rsqrt: mpfr_rec_sqrt(value_, a_, nearest); break;
      case ir::Op::erf: mpfr_erf(value_, a_, nearest); break;
      case ir::Op::erfc: mpfr_erfc(value_, a_, nearest); break;
      case ir::Op::tgamma: mpfr_gamma(value_, a_, nearest); break;
      case ir::Op::lgamma: mpfr_lgamma(value_, &gamma_sign_, a_, nearest); break;
      case ir::Op::atan2: mpfr_atan2(value_, a_, b_, nearest); break;
      case ir::Op::pow: mpfr_pow(value_, a_, b_, nearest); break;
      case ir::Op::hypot: mpfr_hypot(value_, a_, b_, nearest); break;
      case ir::Op::fmod: mpfr_fmod(value_, a_, b_, nearest); break;
      case ir::Op::remainder: mpfr_remainder(value_, a_, b_, nearest); break;
      default: throw std::logic_error("no reference for " + std::string(ir::info(op_).name));
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
  int gamma_sign_ = 1;
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
