#include "autodiff/reverse/assigned.h"

#include <algorithm>
#include <map>

#include "quern/ir/builder.h"

namespace quern::autodiff {

using namespace ir;

namespace {

/// The accesses of a component of a field.
using Accesses = std::map<uint32_t, std::vector<Inst*>>;

bool is_own_addition(const Inst* inst) {
  if (!inst->is(Op::atomic) || inst->atomic() != AtomicOp::add || inst->used()) return false;
  const Region* iteration = inst->parent;
  const Inst* loop = iteration->parent;
  if (!loop || !loop->is(Op::parallel) || loop->operand_count() > 0) return false;
  if (iteration->args.size() + 1 != inst->operand_count()) return false;
  for (uint32_t k = 0; k < iteration->args.size(); k++)
    if (inst->operand(k) != iteration->arg(k)) return false;
  return true;
}

}  // namespace

std::vector<bool> assign_adjoints(Kernel& kernel, std::span<const uint32_t> companions,
                                  std::span<const uint32_t> shapes) {
  std::map<uint32_t, Accesses> accesses;  // by binding
  walk(kernel.body, [&](Inst* inst) {
    if (accesses_element(inst->op)) accesses[inst->binding()][inst->component()].push_back(inst);
  });
  const auto may_overlap = [&](uint32_t a, uint32_t b) {
    const Binding &x = kernel.bindings[a], &y = kernel.bindings[b];
    return a != b && x.companion == y.companion &&
           (!x.alias_class || !y.alias_class || x.alias_class == y.alias_class);
  };
  const auto is_assigned = [&](uint32_t binding) {
    const Accesses& of = accesses[binding];
    if (of.size() != kernel.bindings[binding].components.size()) return false;
    for (const auto& [other, any] : accesses)
      if (may_overlap(binding, other)) return false;
    return std::ranges::all_of(of, [&](const auto& component) {
      const std::vector<Inst*>& all = component.second;
      if (all.size() != 1 || !is_own_addition(all[0])) return false;
      const Inst* loop = all[0]->parent->parent;
      const uint32_t over = loop->options.over;
      return loop->parent == kernel.body && over != no_binding && shapes[over] == shapes[binding];
    });
  };
  Builder b(kernel);
  std::vector<bool> assigned(companions.size(), false);
  for (size_t k = 0; k < companions.size(); k++) {
    const uint32_t binding = companions[k];
    if (binding == no_binding || !is_assigned(binding)) continue;
    assigned[k] = true;
    for (const auto& [component, all] : accesses[binding]) {
      Inst* atomic = all[0];
      std::vector<Value*> index;
      for (Value& v : atomic->parent->args) index.push_back(&v);
      b.before(atomic).at(atomic->loc);
      Value* term = atomic->operands.back().value;
      Value* sum = b.add(b.real(term->type, 0), term);  // of -0 it is 0
      b.store(binding, component, index, sum)->site = atomic->site;
      atomic->erase();
    }
  }
  return assigned;
}

}  // namespace quern::autodiff
