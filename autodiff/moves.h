#pragma once
// Where values go without being changed, through slots, branches and loops, and how one finds what follows
// from where they go.
#include "quern/ir/ir.h"

namespace quern::autodiff {

/// `move(from, to)` for each value or slot that becomes another one by the instruction. Says whether it is
/// one of those that do nothing else.
template <class F>
bool each_move(const ir::Inst* inst, F&& move) {
  using ir::Op;
  using ir::Region;
  switch (inst->op) {
    case Op::put: move(inst->operands.back().value, inst->operand(0)); return true;
    case Op::get: move(inst->operand(0), inst->result()); return true;
    case Op::reduce: move(inst->operand(1), inst->operand(0)); return true;
    case Op::if_:
      for (size_t k = 0; k < inst->results.size(); k++)
        for (const Region* region : inst->regions)
          move(region->terminator()->operand(k), inst->result(k));
      return true;
    case Op::loop: {
      const Region* body = inst->region(0);
      for (size_t k = 0; k < inst->results.size(); k++) {
        move(inst->operand(3 + k), body->arg(1 + k));
        move(body->terminator()->operand(k), body->arg(1 + k));
        move(body->arg(1 + k), inst->result(k));  // where it has no rounds
      }
      return true;
    }
    case Op::while_: {
      const Region *condition = inst->region(0), *body = inst->region(1);
      for (size_t k = 0; k < inst->results.size(); k++) {
        move(inst->operand(k), condition->arg(k));
        move(body->terminator()->operand(k), condition->arg(k));
        move(condition->terminator()->operand(1 + k), body->arg(k));
        move(condition->terminator()->operand(1 + k), inst->result(k));
      }
      return true;
    }
    default: return false;
  }
}

/// `visit(inst)` for each instruction from the last one on, before those in its regions: what follows
/// from the uses of values is found in a few rounds of it, however long the code.
template <class F>
void walk_back(const ir::Region* region, F&& visit) {
  for (const ir::Inst* inst = region->last; inst; inst = inst->prev) {
    visit(inst);
    for (size_t k = inst->regions.size(); k-- > 0;) walk_back(inst->regions[k], visit);
  }
}

}  // namespace quern::autodiff
