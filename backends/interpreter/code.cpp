#include "backends/interpreter/code.h"

#include "quern/ir/math.h"
#include "quern/ir/schedule.h"

namespace quern::interpreter {

using namespace ir;

Code::Code(const Kernel& of) : kernel(of), layout(abi::layout(of)) {
  if (kernel.body) body = block(kernel.body);
  const std::set<uint32_t> conditions = condition_cells(kernel);
  for (const ir::Task& t : kernel.tasks) {
    Task task;
    if (t.domain) task.domain = block(t.domain);
    task.body = block(t.body);
    walk(t.body, [&](const Inst* inst) {
      if (inst->is(Op::read) && inst->imm == abi::error_class) task.tests_record = true;
      if (!inst->is(Op::store) || kernel.bindings[inst->binding()].kind != Binding::frame) return;
      if (conditions.contains(inst->component())) task.conditions.push_back(inst->component());
    });
    tasks.push_back(std::move(task));
  }
}

uint32_t Code::define(std::span<const Value> list) {
  uint32_t first = uint32_t(values.size());
  for (const Value& v : list) {
    numbers_[&v] = uint32_t(values.size());
    values.push_back(0);
  }
  return first;
}

const Block* Code::block(const Region* region) {
  blocks_.emplace_back();
  Block& made = blocks_.back();
  made.args = uint32_t(region->args.size());
  made.first_arg = define(region->args);
  for (const Inst* inst = region->first; inst; inst = inst->next) {
    if (has(inst->op, flag::ends)) {
      made.end = inst->op;
      made.exit = inst->imm;
      for (const Use& use : inst->operands) {
        made.yields.push_back(number(use.value));
        made.yield_types.push_back(use.value->type);
      }
    } else if (inst->is(Op::constant)) {
      values[define(inst->results)] = inst->imm;
    } else if (inst->is(Op::slot)) {
      // The value is the place of the slot's first element.
      Step s = step(inst);
      values[s.result] = slot_elements;
      slot_elements += inst->imm;
      made.steps.push_back(s);
    } else {
      made.steps.push_back(step(inst));
    }
  }
  return &made;
}

const Block* Code::function(const Region* region) {
  auto found = functions_.find(region);
  if (found != functions_.end()) return found->second;
  const Block* made = block(region);
  return functions_[region] = made;
}

Step Code::step(const Inst* inst) {
  Step s;
  s.op = inst->op;
  s.kind = inst->kind;
  bool library = info(inst->op).library;
  s.elementwise = info(inst->op).rule != OperandRule::special && !library;
  s.type = inst->type();
  s.elem = inst->elem;
  s.imm = inst->imm;
  s.inst = inst;
  s.count = uint32_t(inst->operand_count());
  std::vector<uint32_t>& list = operands_.emplace_back();
  for (const Use& use : inst->operands) {
    list.push_back(number(use.value));
    s.operand = use.value->type;
  }
  s.operands = list.data();
  if (inst->is(Op::loop)) s.index = inst->operand(0)->type;
  for (size_t k = 0; k < 3 && k < list.size(); k++) s.in[k] = list[k];
  for (size_t k = 0; k < inst->regions.size(); k++) s.inner[k] = block(inst->region(k));
  if (library) s.inner[0] = function(math_function(inst->op, inst->type()).body);
  if (info(inst->op).names == NameUse::callee)
    s.inner[0] = function(kernel.callees.at(inst->imm).body);
  s.results = uint32_t(inst->results.size());
  s.result = define(inst->results);
  return s;
}

}  // namespace quern::interpreter
