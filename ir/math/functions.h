#pragma once
// The functions of the library as writers: each appends its body and returns the result.
#include "ir/math/expr.h"

namespace quern::ir::math {

Expr sin_f32(Expr x);
Expr sin_f64(Expr x);
Expr cos_f32(Expr x);
Expr cos_f64(Expr x);
Expr tan_f32(Expr x);
Expr tan_f64(Expr x);
Expr asin_f32(Expr x);
Expr asin_f64(Expr x);
Expr acos_f32(Expr x);
Expr acos_f64(Expr x);
Expr atan_f32(Expr x);
Expr atan_f64(Expr x);
Expr atan2_f32(Expr y, Expr x);
Expr atan2_f64(Expr y, Expr x);
Expr sinh_f32(Expr x);
Expr sinh_f64(Expr x);
Expr cosh_f32(Expr x);
Expr cosh_f64(Expr x);
Expr tanh_f32(Expr x);
Expr tanh_f64(Expr x);
Expr sech2_f32(Expr x);
Expr sech2_f64(Expr x);
Expr asinh_f32(Expr x);
Expr asinh_f64(Expr x);
Expr acosh_f32(Expr x);
Expr acosh_f64(Expr x);
Expr atanh_f32(Expr x);
Expr atanh_f64(Expr x);
Expr exp_f32(Expr x);
Expr exp_f64(Expr x);
Expr exp2_f32(Expr x);
Expr exp2_f64(Expr x);
Expr expm1_f32(Expr x);
Expr expm1_f64(Expr x);
Expr log_f32(Expr x);
Expr log_f64(Expr x);
Expr log2_f32(Expr x);
Expr log2_f64(Expr x);
Expr log10_f32(Expr x);
Expr log10_f64(Expr x);
Expr log1p_f32(Expr x);
Expr log1p_f64(Expr x);
Expr pow_f32(Expr x, Expr y);
Expr pow_f64(Expr x, Expr y);
Expr cbrt_f32(Expr x);
Expr cbrt_f64(Expr x);
Expr rsqrt_f32(Expr x);
Expr rsqrt_f64(Expr x);
Expr hypot_f32(Expr x, Expr y);
Expr hypot_f64(Expr x, Expr y);
Expr erf_f32(Expr x);
Expr erf_f64(Expr x);
Expr erfc_f32(Expr x);
Expr erfc_f64(Expr x);
Expr tgamma_f32(Expr x);
Expr tgamma_f64(Expr x);
Expr lgamma_f32(Expr x);
Expr lgamma_f64(Expr x);
Expr fmod_f32(Expr x, Expr y);
Expr fmod_f64(Expr x, Expr y);
Expr remainder_f32(Expr x, Expr y);
Expr remainder_f64(Expr x, Expr y);
Expr fma_f32(Expr a, Expr b, Expr c);
Expr fma_f64(Expr a, Expr b, Expr c);
Expr div_f32(Expr a, Expr b);
Expr sqrt_f32(Expr a);
Expr widen_half(Expr bits);
Expr round_to_half(Expr x);
Expr round_to_odd(Expr x);

}  // namespace quern::ir::math
