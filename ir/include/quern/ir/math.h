#pragma once
// The math library: functions in IR.
//
// Each function is a Function whose body takes the operands as region arguments and ends in `yield
// result`. Bodies hold + - × ÷ √, fma, floor, trunc, round, integer operations, comparisons,
// selects, bitcasts and conversions, and no slot or memory access, so that they vectorise like any
// code. What hardly ever happens stands in an `if.rarely`, which may hold a loop: the reduction of
// huge arguments of sin, cos and tan, quotients of more than 50 bits of fmod and remainder.
// Legalise inlines the bodies (inline_region) where a target wants it.
//
// With strict arithmetic a function gives the same bits everywhere. In default mode a back end may
// contract a × b + c: instructions that must not be are marked `uncontracted`, and the error bounds
// of docs/math.md hold either way. Special values are those of C's Annex F.
//
// Functions are made on first use, once per process, live for ever and may be read from any thread.
#include "quern/ir/ir.h"

namespace quern::ir {

/// The body of a `library` row for f16, f32 or f64.
const Function& math_function(Op op, Type type);

/// fma without an fma instruction, correctly rounded: (a, b, c) -> a·b + c.
const Function& fma_function(Type type);
/// f32 division and square root through f64, correctly rounded wherever f64's are.
const Function& div_function(Type type);
const Function& sqrt_function(Type type);

/// A half's bits (u16) to f32, exactly; f32 to them, rounded to nearest even. In integer operations
/// and one f32 sum of normal numbers each.
const Function& widen_half_function();
const Function& round_to_half_function();
/// f64 to f32, an inexact result with its last bit set (rounding to odd): rounded again to fewer
/// than 23 bits it gives what rounding once gives (Boldo and Melquiond, 2008).
const Function& round_to_odd_function();

}  // namespace quern::ir
