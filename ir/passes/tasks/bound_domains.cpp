#include "ir/passes/tasks/bound_domains.h"

#include <algorithm>
#include <unordered_set>

#include "quern/ir/builder.h"

namespace quern::ir {

namespace {

enum class Side { below, above };

class Bounder {
 public:
  Bounder(Kernel& kernel, const Region* domain) : b_(kernel) {
    for (const Inst* inst : *domain) {
      bool depends = inst->is(Op::load);
      for (const Use& use : inst->operands) depends |= depends_.contains(use.value);
      if (depends && !inst->results.empty()) depends_.insert(inst->result());
    }
  }

  bool reads_frame() const { return !depends_.empty(); }

  Region* bounds(const Task& task) {
    Region* region = b_.make_region();
    b_.at_end(region).at(task.loc);
    std::vector<Value*> out;
    Side side = Side::below;
    for (const Use& use : task.domain->last->operands) {
      out.push_back(bound(use.value, side));
      side = side == Side::below ? Side::above : Side::below;
    }
    b_.yield(out);
    return region;
  }

 private:
  /// Copies what depends on no cell.
  Value* exact(const Value* v) {
    if (auto it = copies_.find(v); it != copies_.end()) return it->second;
    for (const Use& use : v->inst->operands) exact(use.value);
    clone_inst(b_, v->inst, copies_);
    return copies_.at(v);
  }

  Value* bound(const Value* v, Side side) {
    if (!depends_.contains(v)) return exact(v);
    const Inst* inst = v->inst;
    if (inst->is(Op::min) || inst->is(Op::max))
      return b_.binary(inst->op, bound(inst->operand(0), side), bound(inst->operand(1), side));
    if (inst->is(Op::convert) && is_int(inst->operand(0)->type) &&
        bit_width(inst->operand(0)->type) < bit_width(v->type) &&
        (is_signed(v->type) || is_unsigned(inst->operand(0)->type)))
      return b_.convert(bound(inst->operand(0), side), v->type);
    return b_.integer(v->type, side == Side::below ? least(v->type) : most(v->type));
  }

  static int64_t least(Type t) { return is_signed(t) ? int64_t(-1) << (bit_width(t) - 1) : 0; }
  static int64_t most(Type t) {
    return is_signed(t) ? ~least(t) : int64_t(~uint64_t(0) >> (64 - bit_width(t)));
  }

  Builder b_;
  std::unordered_set<const Value*> depends_;  ///< values that frame cells decide
  ValueMap copies_;
};

/// Such a buffer is as large as the host says.
bool has_buffer_of_iterations(const Kernel& kernel, const Task& task) {
  return std::ranges::any_of(kernel.bindings, [&](const Binding& b) {
    return b.kind == Binding::buffer && b.size.rule == BufferSize::iterations &&
           &kernel.tasks[b.size.task] == &task;
  });
}

}  // namespace

void bound_domains(Kernel& kernel) {
  for (Task& task : kernel.tasks) {
    if (!task.domain || task.walk != Task::element || task.lanes) continue;
    Bounder bounder(kernel, task.domain);
    if (bounder.reads_frame() && !has_buffer_of_iterations(kernel, task))
      task.bound = bounder.bounds(task);
  }
}

}  // namespace quern::ir
