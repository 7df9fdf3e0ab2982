#include "ir/passes/record/inline_calls.h"

#include "quern/ir/builder.h"

namespace quern::ir {

namespace {

class Inliner {
 public:
  /// Inlines what `op` calls.
  Inliner(Kernel& kernel, Op op)
      : kernel_(kernel), op_(op), states_(kernel.callees.size(), untouched) {}

  void run(Region* root) {
    std::vector<Inst*> calls;
    walk(root, [&](Inst* inst) {
      if (inst->is(op_)) calls.push_back(inst);
    });
    for (Inst* call : calls) expand(call);
  }

 private:
  enum State : uint8_t { untouched, open, done };

  void expand(Inst* call) {
    Function& callee = kernel_.callees.at(call->imm);
    State& state = states_[call->imm];
    if (state == open) throw InternalError("function '" + callee.name + "' calls itself");
    if (state == untouched) {
      state = open;
      run(callee.body);
      state = done;
    }
    ValueMap map;
    for (size_t k = 0; k < call->operand_count(); k++) map[callee.body->arg(k)] = call->operand(k);
    Builder b(kernel_);
    b.before(call);
    Inst* before = call->prev;
    std::vector<Value*> values = inline_region(b, callee.body, map);
    if (op_ == Op::apply) place(before ? before->next : call->parent->first, call);
    for (size_t k = 0; k < call->results.size(); k++) call->result(k)->replace_with(values[k]);
    call->erase();
  }

  /// Gives the instructions from `made` up to the call, with their regions, its location.
  static void place(Inst* made, const Inst* call) {
    for (; made != call; made = made->next) {
      made->loc = call->loc;
      for (Region* r : made->regions) walk(r, [&](Inst* inst) { inst->loc = call->loc; });
    }
  }

  Kernel& kernel_;
  const Op op_;
  std::vector<State> states_;
};

/// Of each function: is it the rule of another's derivative?
std::vector<bool> rules(const Kernel& kernel) {
  std::vector<bool> all(kernel.callees.size());
  for (const Function& f : kernel.callees)
    for (uint32_t rule : {f.pushforward, f.pullback})
      if (rule != no_function) all[rule] = true;
  return all;
}

/// Inlines what `op` calls, and drops it. Rules are there as long as what they are the rules of.
void inline_those(Kernel& kernel, Op op) {
  if (kernel.callees.empty()) return;
  Inliner inliner(kernel, op);
  for (Region* root : roots(kernel)) inliner.run(root);
  const std::vector<bool> is_rule = rules(kernel);
  std::vector<uint32_t> number;
  std::vector<Function> kept;
  for (size_t k = 0; k < kernel.callees.size(); k++) {
    Function& f = kernel.callees[k];
    number.push_back(uint32_t(kept.size()));
    const bool is_differentiated = !f.derivative.empty() || is_rule[k];
    if (is_differentiated == (op == Op::call))
      kept.push_back(std::move(f));
    else
      while (f.body->last) f.body->last->erase();
  }
  kernel.callees = std::move(kept);
  for (Function& f : kernel.callees)
    for (uint32_t* rule : {&f.pushforward, &f.pullback})
      if (*rule != no_function) *rule = number[*rule];
  if (kernel.callees.empty()) return;
  walk(kernel, [&](Inst* inst) {
    if (info(inst->op).names == NameUse::callee) inst->imm = number[inst->imm];
  });
}

}  // namespace

void inline_calls(Kernel& kernel) { inline_those(kernel, Op::call); }

void inline_applied(Kernel& kernel) { inline_those(kernel, Op::apply); }

}  // namespace quern::ir
