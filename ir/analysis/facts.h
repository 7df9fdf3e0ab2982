#pragma once
// Small questions about one instruction that passes and analyses ask.
#include "quern/ir/ir.h"

namespace quern::ir {

inline const Inst* constant_of(const Value* v) {
  return v->inst && v->inst->is(Op::constant) ? v->inst : nullptr;
}
inline bool is_constant(const Value* v, int64_t n) {
  const Inst* c = constant_of(v);
  return c && c->imm == bits_of_int(n, v->type);
}

/// Below access lowering: an atomic load that nobody uses. It reads nothing, and its address may be
/// any: it only says which line of memory will be wanted soon.
inline bool is_hint(const Inst* inst) {
  return inst->is(Op::rmw) && inst->atomic() == AtomicOp::load && !inst->used();
}

/// Is it known that the loop has a round?
bool has_rounds(const Inst* loop);
/// How many values more a loop may carry to save accesses of memory. Beyond that they would not
/// stand in registers, and through long code even few of them cost a compiler more time than the
/// code does.
size_t worth_carrying(const Inst* loop);

/// May the instruction raise an error of checked mode? Pure instructions only.
bool may_fail(const Inst* inst);
/// The same in the kernel's mode; below access lowering checks are code and arithmetic is total.
bool can_fail(const Kernel& kernel, const Inst* inst);

/// May it stand in a function with a derivative of its own: does it depend on its operands and the
/// function's own slots alone, without effects, and cannot fail?
bool is_of_arguments(const Inst* inst);
/// The first of the instruction, what is in it and in what it calls that may not; null: there is
/// none.
const Inst* beyond_arguments(const Kernel& kernel, const Inst* inst);

/// Does it take much longer than most? Not to be run where the program would not have run it.
bool costly(const Inst* inst);

/// From here on it is to run where the program may not have run it. Of a kernel that may yet be
/// differentiated that is noted (`unasked`), but of what gives zeros for zeros anyway. False: it
/// may not, as a function's rule does as it likes.
bool run_unasked(const Kernel& kernel, Inst* inst);

/// May the instruction be dropped when its results are unused? (Control is judged by its content.)
bool removable(const Kernel& kernel, const Inst* inst);

}  // namespace quern::ir
