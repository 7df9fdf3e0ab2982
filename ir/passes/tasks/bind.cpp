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

/// All elements of a field that is on no tree are active: what is asked of them is known, and what
/// cannot be done to them, nor to a field without lists, is refused.
void answer_activity(Kernel& kernel) {
  walk(kernel, [&](Inst* inst) {
    const bool is_of_list = inst->is(Op::length) || inst->is(Op::append);
    if (!is_of_list && !inst->is(Op::is_active) && !inst->is(Op::empty_box) &&
        !inst->is(Op::activate) && !inst->is(Op::deactivate))
      return;
    const Binding& binding = kernel.bindings[inst->binding()];
    const bool is_sparse = binding.layout.is_sparse();
    if (binding.layout.is_of_cells() && !inst->is(Op::is_active))
      throw Error(inst->loc, "the elements of " + binding.name +
                                 " are cells of a level of its tree: which there are, the tree's "
                                 "own elements say; activate or deactivate those");
    if (is_of_list && is_sparse && !binding.layout.pools.back().has_lists())
      throw Error(inst->loc,
                  "the elements of " + binding.name +
                      " are in no lists: the innermost level of its tree is not dynamic");
    if (is_sparse) return;
    Builder b(kernel);
    b.before(inst).at(inst->loc);
    if (inst->is(Op::deactivate))
      throw Error(inst->loc,
                  "an element of " + binding.name +
                      " is deactivated, and the field is on no tree: all of its elements "
                      "are active");
    if (inst->is(Op::append))
      throw Error(inst->loc, "an element is appended to " + binding.name +
                                 ", and the field is on no tree with a dynamic level");
    if (inst->is(Op::is_active)) inst->result()->replace_with(b.boolean(true));
    if (inst->is(Op::empty_box))
      for (Value& result : inst->results)
        result.replace_with(result.type == Type::b1 ? b.boolean(true) : b.integer(result.type, 0));
    if (inst->is(Op::length))
      inst->result()->replace_with(b.extent(inst->binding(), binding.rank - 1u, Type::i64));
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
