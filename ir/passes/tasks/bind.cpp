#include "ir/passes/tasks/bind.h"

#include <utility>

#include "quern/ir/builder.h"

namespace quern::ir {

namespace {

/// The first index is 0; what is added to it is the sum.
void replace_by_zero(Kernel& kernel, Inst* first) {
  for (Use* use = first->result()->uses; use;) {
    Inst* user = use->user;
    use = use->next;
    if (!user->is(Op::add)) continue;
    Value* other = user->operand(user->operand(0) == first->result() ? 1 : 0);
    if (other == first->result()) continue;
    user->result()->replace_with(other);
    user->erase();
  }
  if (first->used())
    first->result()->replace_with(Builder(kernel).before(first).integer(first->type(), 0));
  first->erase();
}

/// The bounds of a task that walks a field: its indices lie in a box, whatever the layout.
void make_domain(Kernel& kernel, Task& task) {
  const uint32_t field = std::exchange(task.options.over, no_binding);
  Builder b(kernel);
  task.domain = b.make_region();
  b.at_end(task.domain).at(task.loc);
  std::vector<Value*> bounds;
  for (const Value& index : task.body->args) {
    Value* first = b.first(field, index.index, index.type);
    bounds.push_back(first);
    bounds.push_back(b.add(first, b.extent(field, index.index, index.type)));
  }
  b.yield(bounds);
}

/// All elements of a field that is on no tree are active.
void answer_activity(Kernel& kernel) {
  walk(kernel, [&](Inst* inst) {
    const bool asks = inst->is(Op::is_active), ends = inst->is(Op::deactivate);
    if (!asks && !ends && !inst->is(Op::activate)) return;
    const Binding& binding = kernel.bindings[inst->binding()];
    if (binding.layout.is_sparse()) return;
    if (ends)
      throw Error(inst->loc,
                  "an element of " + binding.name +
                      " is deactivated, and the field is on no tree: all of its elements "
                      "are active");
    if (asks) inst->result()->replace_with(Builder(kernel).before(inst).boolean(true));
    inst->erase();
  });
}

void tell_first_index(Site& site) {
  if (site.values.size() != 3) return;  // told already
  site.text += ", the first index {}";
  site.values.push_back(Type::i64);
}

}  // namespace

Premises premises_of(const Signature& signature) {
  Premises out{signature.modes, {}};
  for (const Signature::Field& field : signature.fields)
    out.alias_classes.push_back(field.alias_class);
  return out;
}

void assume(Kernel& kernel, const Premises& premises) {
  kernel.modes = premises.modes;
  for (size_t k = 0; k < kernel.bindings.size(); k++) {
    Binding& b = kernel.bindings[k];
    if (b.kind != Binding::field) continue;
    if (k >= premises.alias_classes.size())
      throw InternalError("the signature of kernel '" + kernel.name + "' lacks a binding");
    b.alias_class = premises.alias_classes[k] + 1;
  }
}

void bind(Kernel& kernel, const Signature& signature) {
  assume(kernel, premises_of(signature));
  for (size_t k = 0; k < kernel.bindings.size(); k++) {
    Binding& b = kernel.bindings[k];
    if (b.kind != Binding::field) continue;
    const Signature::Field& field = signature.fields[k];
    b.contiguous = field.contiguous;
    b.zero_based = field.zero_based;
    b.layout = field.layout;
    b.alignment = field.alignment;
    b.encodings = field.encodings;
    b.tree = field.tree;
  }
  const auto is_sparse = [&](uint32_t binding) {
    return kernel.bindings[binding].layout.is_sparse();
  };
  for (Task& task : kernel.tasks)
    if (task.options.over != no_binding && !is_sparse(task.options.over)) make_domain(kernel, task);
  answer_activity(kernel);
  std::vector<Inst*> firsts;
  walk(kernel, [&](Inst* inst) {
    if (inst->is(Op::first) && kernel.bindings[inst->binding()].zero_based) firsts.push_back(inst);
    if (accesses_element(inst->op) && inst->site != no_site &&
        !kernel.bindings[inst->binding()].zero_based)
      tell_first_index(kernel.sites[inst->site]);
  });
  for (Inst* first : firsts) replace_by_zero(kernel, first);
}

}  // namespace quern::ir
