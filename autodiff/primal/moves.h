#pragma once
// Where values go without being changed, through slots, branches and loops, and how one finds what
// follows from where they go.
#include <unordered_set>

#include "quern/ir/ir.h"

namespace quern::autodiff {

/// `move(from, to)` for each value or slot that becomes another one by the instruction. Says
/// whether it is one of those that do nothing else.
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

/// The floats of a kernel, and slots of floats, that something follows from: found from uses on.
class Sources {
 public:
  bool contains(const ir::Value* v) const { return found_.contains(v); }
  void add(const ir::Value* v) {
    if (ir::is_float(v->type) || v->type == ir::Type::slot) changed_ |= found_.insert(v).second;
  }
  void add_operands(const ir::Inst* inst) {
    for (const ir::Use& use : inst->operands) add(use.value);
  }
  /// What becomes one of them by moving is one. Says whether the instruction only moves values.
  bool follow_moves(const ir::Inst* inst) {
    return each_move(inst, [&](const ir::Value* from, const ir::Value* to) {
      if (contains(to)) add(from);
    });
  }
  /// `visit(inst)` adds some. From the last instruction on, so that a few rounds find all, however
  /// long the code; as many as it takes until what loops carry and slots keep is known.
  template <class F>
  void find(const ir::Region* body, F&& visit) {
    do {
      changed_ = false;
      back(body, visit);
    } while (changed_);
  }

 private:
  template <class F>
  void back(const ir::Region* region, F&& visit) {
    for (const ir::Inst* inst = region->last; inst; inst = inst->prev) {
      visit(inst);
      for (size_t k = inst->regions.size(); k-- > 0;) back(inst->regions[k], visit);
    }
  }

  std::unordered_set<const ir::Value*> found_;
  bool changed_ = false;
};

}  // namespace quern::autodiff
