#include "ir/passes/checks/check_arithmetic.h"

#include <cmath>

#include "ir/analysis/facts.h"
#include "ir/analysis/float_ranges.h"
#include "quern/ir/builder.h"

namespace quern::ir {

namespace {

/// Does a float fit the integer type it is converted to?
Value* fits(Builder& b, Value* v, Type to) {
  if (v->type == Type::f16) v = b.convert(v, Type::f32);  // a half does not hold the bounds
  Value* whole = b.unary(Op::trunc, v);
  int digits = int(bit_width(to)) - (is_signed(to) ? 1 : 0);
  Value* least = b.real(v->type, is_signed(to) ? -std::ldexp(1.0, digits) : 0.0);
  Value* above = b.real(v->type, std::ldexp(1.0, digits));
  Value* low_enough = b.lt(whole, above);
  return b.binary(Op::bit_and, b.binary(Op::ge, whole, least), low_enough);
}

/// By the values that the operands may have there.
bool cannot_fail(Ranges& ranges, FloatRanges& floats, const Inst* inst) {
  if (inst->is(Op::convert)) return floats.fits(inst->operand(0), inst->type());
  if (!inst->is(Op::div) && !inst->is(Op::rem)) return false;
  const Affine& by = ranges.exact(inst->operand(1));
  const std::optional<Affine> above = sum(by, {{}, -1}, 1), below = sum({{}, -1}, by, -1);
  return (above && ranges.not_negative(*above, inst->parent)) ||
         (below && ranges.not_negative(*below, inst->parent));
}

}  // namespace

void check_arithmetic(Kernel& kernel) {
  if (!kernel.modes.checked) return;
  Builder b(kernel);
  for (Task& task : kernel.tasks) {
    Ranges ranges(task.body, &kernel);
    FloatRanges floats(ranges);
    walk(task.body, [&](Inst* inst) {
      if (inst->site == no_site || !can_fail(kernel, inst)) return;
      if (cannot_fail(ranges, floats, inst)) {
        inst->site = no_site;
        return;
      }
      b.before(inst).at(inst->loc);
      Inst* check = nullptr;
      if (inst->is(Op::div) || inst->is(Op::rem)) {
        Value* by = inst->operand(1);
        check = b.make(Op::check, {}, {b.binary(Op::ne, by, b.integer(by->type, 0))});
      } else if (inst->is(Op::convert)) {
        Value* v = inst->operand(0);
        // A lossless conversion before it may have been folded in since the site was made.
        Value* told = b.convert(v, kernel.sites[inst->site].values[0]);
        check = b.make(Op::check, {}, {fits(b, v, inst->type()), told});
      } else {
        return;
      }
      check->site = inst->site;
      inst->site = no_site;
    });
  }
}

}  // namespace quern::ir
