#pragma once
// The functions of the library as writers: each appends its body and returns the result.
#include "ir/math/expr.h"

namespace quern::ir::math {

Expr sin_f32(Expr x);
Expr sin_f64(Expr x);
Expr cos_f32(Expr x);
Expr cos_f64(Expr x);
Expr atan2_f32(Expr y, Expr x);
Expr atan2_f64(Expr y, Expr x);
Expr exp_f32(Expr x);
Expr exp_f64(Expr x);
Expr log_f32(Expr x);
Expr log_f64(Expr x);
Expr pow_f32(Expr x, Expr y);
Expr pow_f64(Expr x, Expr y);
Expr fma_f32(Expr a, Expr b, Expr c);
Expr fma_f64(Expr a, Expr b, Expr c);
Expr div_f32(Expr a, Expr b);
Expr sqrt_f32(Expr a);

}  // namespace quern::ir::math
