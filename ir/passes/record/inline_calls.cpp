#include "ir/passes/record/inline_calls.h"

#include "quern/ir/builder.h"

namespace quern::ir {

namespace {

class Inliner {
 public:
  explicit Inliner(Kernel& kernel) : kernel_(kernel), states_(kernel.callees.size(), untouched) {}

  void run(Region* root) {
    std::vector<Inst*> calls;
    walk(root, [&](Inst* inst) {
      if (inst->is(Op::call)) calls.push_back(inst);
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
    std::vector<Value*> values = inline_region(b, callee.body, map);
    for (size_t k = 0; k < call->results.size(); k++) call->result(k)->replace_with(values[k]);
    call->erase();
  }

  Kernel& kernel_;
  std::vector<State> states_;
};

}  // namespace

void inline_calls(Kernel& kernel) {
  Inliner inliner(kernel);
  if (kernel.body) inliner.run(kernel.body);
  for (Task& task : kernel.tasks) inliner.run(task.body);
  for (Function& f : kernel.callees)
    while (f.body->last) f.body->last->erase();
  kernel.callees.clear();
}

}  // namespace quern::ir
