#pragma once
// The math library: functions in IR.
//
// Each function is a Function whose body takes the operands as region arguments and ends in `yield
// result`. Bodies hold + - × ÷ √, floor, integer operations, comparisons, selects, bitcasts and
// conversions, and no loop, slot or memory access, so that they vectorise like any code; sin and
// cos have one `if` whose first region reduces huge arguments. Legalise inlines them
// (inline_region) where a target wants it.
//
// With strict arithmetic a function gives the same bits everywhere. In default mode a back end may
// contract a × b + c: instructions that must not be are marked `uncontracted`, and the error bounds
// of docs/math.md hold either way. Special values are those of C's Annex F.
//
// Functions are made on first use, once per process, live for ever and may be read from any thread.
#include "quern/ir/ir.h"

namespace quern::ir {

/// The body of a `library` row for f32 or f64.
const Function& math_function(Op op, Type type);

/// fma without an fma instruction, correctly rounded: (a, b, c) -> a·b + c.
const Function& fma_function(Type type);
/// f32 division and square root through f64, correctly rounded wherever f64's are.
const Function& div_function(Type type);
const Function& sqrt_function(Type type);

}  // namespace quern::ir
