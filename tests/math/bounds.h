#pragma once
// What docs/math.md promises: the largest errors in units in the last place, with strict arithmetic
// and with contraction.
#include "quern/ir/ops.h"

namespace quern::test {

struct Bound {
  ir::Op op;
  double f32, f64;
};
inline constexpr Bound bounds[] = {
    {ir::Op::sin, 1.5, 1.5},      {ir::Op::cos, 1.5, 1.5},     {ir::Op::atan2, 2, 2},
    {ir::Op::tan, 2, 2},          {ir::Op::asin, 1.25, 1.25},  {ir::Op::acos, 1.25, 1.25},
    {ir::Op::atan, 2, 2},         {ir::Op::erf, 2, 2},         {ir::Op::erfc, 4, 4},
    {ir::Op::tgamma, 0.51, 1.25}, {ir::Op::lgamma, 1, 2},      {ir::Op::fmod, 0, 0},
    {ir::Op::remainder, 0, 0},    {ir::Op::sinh, 2, 2},        {ir::Op::cosh, 2, 2},
    {ir::Op::tanh, 1.5, 1.5},     {ir::Op::asinh, 1.5, 1.5},   {ir::Op::acosh, 2, 2},
    {ir::Op::atanh, 1.5, 1.5},    {ir::Op::exp, 1.25, 1.25},   {ir::Op::exp2, 1.25, 1.25},
    {ir::Op::expm1, 2, 1.5},      {ir::Op::log, 1, 1},         {ir::Op::log2, 2, 1.25},
    {ir::Op::log10, 2, 1.25},     {ir::Op::log1p, 1.25, 1.25}, {ir::Op::pow, 0.51, 1.25},
    {ir::Op::sech2, 3, 2.5},      {ir::Op::cbrt, 1.5, 1.5},    {ir::Op::hypot, 1.25, 1.5},
    {ir::Op::rsqrt, 2, 1.5},
};

}  // namespace quern::test
