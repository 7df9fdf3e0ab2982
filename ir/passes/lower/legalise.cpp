#include "ir/passes/lower/legalise.h"

#include <algorithm>
#include <unordered_map>

#include "ir/passes/atomics/legalise_atomics.h"
#include "quern/ir/builder.h"
#include "quern/ir/math.h"

namespace quern::ir {

namespace {

class Legaliser {
 public:
  Legaliser(Kernel& kernel, const TargetTraits& target) : kernel_(kernel), target_(target) {}

  void run(Task& task) {
    std::vector<Inst*> lacking;
    size_t operations = 0;
    walk(task.body, [&](Inst* inst) {
      const Function* f = replacement(inst);
      if (!f) return;
      lacking.push_back(inst);
      operations += size(*f);
    });
    const bool calls = target_.calls && operations > target_.most_copied;
    for (Inst* inst : lacking) {
      if (calls)
        call(inst);
      else
        copy(inst);
    }
  }

 private:
  /// The function that replaces an instruction, or null.
  const Function* replacement(const Inst* inst) const {
    const bool strict = kernel_.modes.strict;
    if (info(inst->op).library) {
      const bool native =
          std::ranges::count(target_.native_math, std::pair(inst->op, inst->type()));
      return native && !strict ? nullptr : &math_function(inst->op, inst->type());
    }
    if (inst->is(Op::fma))
      return target_.fma_exact[inst->type() == Type::f64] ? nullptr : &fma_function(inst->type());
    if (inst->results.empty() || inst->type() != Type::f32) return nullptr;
    if (inst->is(Op::div) && !target_.div_exact) return &div_function(Type::f32);
    if (inst->is(Op::sqrt) && !target_.sqrt_exact) return &sqrt_function(Type::f32);
    return nullptr;
  }

  /// Operations of a copy.
  size_t size(const Function& f) {
    auto known = sizes_.find(&f);
    if (known != sizes_.end()) return known->second;
    size_t all = 0;
    walk(f.body, [&](const Inst* inst) {
      const Function* inner = replacement(inst);
      all += inner ? size(*inner) : 1;
    });
    return sizes_[&f] = all;
  }

  void copy(Inst* inst) {
    const Function* f = replacement(inst);
    Builder b(kernel_);
    b.before(inst).at(inst->loc);
    ValueMap map;
    for (size_t k = 0; k < inst->operand_count(); k++) map[f->body->arg(k)] = inst->operand(k);
    Inst* before = inst->prev;
    Region* region = inst->parent;
    inst->result()->replace_with(inline_region(b, f->body, map)[0]);
    copy_inner(before ? before->next : region->first, inst);
    inst->erase();
  }

  /// What came in between may itself be made of functions that the target lacks.
  void copy_inner(Inst* first, Inst* behind) {
    std::vector<Inst*> lacking;
    auto look = [&](Inst* inst) {
      if (replacement(inst)) lacking.push_back(inst);
    };
    for (Inst* at = first; at != behind; at = at->next) {
      look(at);
      for (Region* r : at->regions) walk(r, look);
    }
    for (Inst* inst : lacking) copy(inst);
  }

  void call(Inst* inst) {
    Builder b(kernel_);
    b.before(inst).at(inst->loc);
    std::vector<Value*> arguments;
    for (const Use& use : inst->operands) arguments.push_back(use.value);
    const Type type = inst->type();
    Inst* call = b.make(Op::call, {&type, 1}, arguments, callee(*replacement(inst)));
    inst->result()->replace_with(call->result());
    inst->erase();
  }

  uint32_t callee(const Function& f) {
    auto [found, is_new] = callees_.try_emplace(&f, uint32_t(kernel_.callees.size()));
    if (!is_new) return found->second;
    Function own = f;
    Builder b(kernel_);
    std::vector<Type> types;
    for (const Value& v : f.body->args) types.push_back(v.type);
    own.body = b.make_region(std::span<const Type>(types));
    b.at_end(own.body);
    ValueMap map;
    for (size_t k = 0; k < types.size(); k++) map[f.body->arg(k)] = own.body->arg(k);
    b.yield(inline_region(b, f.body, map));
    copy_inner(own.body->first, own.body->last);
    kernel_.callees.push_back(std::move(own));
    return found->second;
  }

  Kernel& kernel_;
  const TargetTraits& target_;
  std::unordered_map<const Function*, size_t> sizes_;
  std::unordered_map<const Function*, uint32_t> callees_;
};

}  // namespace

void legalise(Kernel& kernel, const TargetTraits& target) {
  Legaliser legaliser(kernel, target);
  for (Task& task : kernel.tasks) legaliser.run(task);
  legalise_atomics(kernel, target);
}

}  // namespace quern::ir
