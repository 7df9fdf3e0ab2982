#include "runtime/host_expression.h"

#include <cstring>
#include <unordered_map>

#include "quern/ir/text.h"

namespace quern::runtime {

using namespace ir;

HostExpression::HostExpression(const Kernel& kernel, const Region* region,
                               const abi::Layout& layout) {
  std::unordered_map<const Value*, uint32_t> number;
  for (const Inst* inst = region->first; inst && inst != region->last; inst = inst->next) {
    Step step;
    step.op = inst->op;
    step.result = inst->type();
    switch (inst->op) {
      case Op::constant:
        step.source = constant;
        step.imm = inst->imm;
        break;
      case Op::param:
        step.source = argument;
        step.imm = layout.places[inst->binding()].value();
        break;
      case Op::extent:
        step.source = argument;
        step.imm = layout.places[inst->binding()].extent(inst->axis());
        break;
      case Op::first:
        step.source = argument;
        step.imm = layout.places[inst->binding()].first(inst->axis());
        break;
      case Op::load:
        if (kernel.bindings[inst->binding()].kind != Binding::frame || inst->operand_count() != 0)
          throw InternalError("a task's domain reads a field: " + print(inst));
        step.source = cell;
        step.imm = inst->component() * 8;
        reads_frame_ = true;
        break;
      default:
        if (!is_pure(inst->op) || info(inst->op).library || inst->operand_count() > 3)
          throw InternalError("a task's domain holds what the host cannot evaluate: " +
                              print(inst));
        step.count = uint8_t(inst->operand_count());
        for (size_t k = 0; k < inst->operand_count(); k++)
          step.operands[k] = number.at(inst->operand(k));
        step.operand = inst->operand(inst->operand_count() - 1)->type;
    }
    number[inst->result()] = uint32_t(steps_.size());
    steps_.push_back(step);
  }
  for (const Use& use : region->last->operands) {
    results_.push_back(number.at(use.value));
    types_.push_back(use.value->type);
  }
}

void HostExpression::evaluate(const std::byte* args, const std::byte* frame,
                              std::span<int64_t> out) const {
  Bits small[64];
  std::vector<Bits> large;
  Bits* values = small;
  if (steps_.size() > 64) {
    large.resize(steps_.size());
    values = large.data();
  }
  for (size_t k = 0; k < steps_.size(); k++) {
    const Step& s = steps_[k];
    Bits v = 0;
    if (s.source == constant)
      v = s.imm;
    else if (s.source == value) {
      Bits operands[3];
      for (int n = 0; n < s.count; n++) operands[n] = values[s.operands[n]];
      if (!ir::evaluate(s.op, s.operand, s.result, {operands, s.count}, v))
        throw InternalError("a task's domain holds '" + std::string(info(s.op).name) + "'");
    } else {
      std::memcpy(&v, (s.source == argument ? args : frame) + s.imm, 8);
      v = truncate(v, s.result);
    }
    values[k] = v;
  }
  for (size_t k = 0; k < results_.size(); k++)
    out[k] = is_signed(types_[k]) ? to_signed(values[results_[k]], types_[k])
                                  : int64_t(values[results_[k]]);
}

}  // namespace quern::runtime
