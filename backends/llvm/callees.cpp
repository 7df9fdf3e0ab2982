#include "backends/llvm/callees.h"

#include "quern/ir/abi.h"

namespace quern::codegen {

using ir::Op;

bool is_pure(const ir::Function& f) {
  bool pure = true;
  ir::walk(f.body, [&](const ir::Inst* inst) {
    pure &= !has(inst->op, ir::flag::memory | ir::flag::once);
  });
  return pure;
}

bool reports_error(const ir::Kernel& kernel, const ir::Region* region) {
  for (const ir::Inst* inst = region->first; inst; inst = inst->next) {
    if (inst->is(Op::rmw) && inst->imm == ir::abi::error_class) return true;
    if (inst->is(Op::call) && reports_error(kernel, kernel.callees.at(inst->imm).body)) return true;
  }
  return false;
}

bool is_atomic(const ir::Kernel& kernel, const ir::Inst& inst) {
  return inst.is(Op::rmw) || (inst.is(Op::call) && !is_pure(kernel.callees.at(inst.imm)));
}

}  // namespace quern::codegen
