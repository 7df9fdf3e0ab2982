#include "ir/passes/bind.h"

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

void tell_first_index(Site& site) {
  if (site.values.size() != 3) return;  // told already
  site.text += ", the first index {}";
  site.values.push_back(Type::i64);
}

}  // namespace

void bind(Kernel& kernel, const Signature& signature) {
  kernel.modes = signature.modes;
  for (size_t k = 0; k < kernel.bindings.size(); k++) {
    Binding& b = kernel.bindings[k];
    if (b.kind != Binding::field) continue;
    if (k >= signature.fields.size())
      throw InternalError("the signature of kernel '" + kernel.name + "' lacks a binding");
    const Signature::Field& field = signature.fields[k];
    b.contiguous = field.contiguous;
    b.alias_class = field.alias_class + 1;
    b.zero_based = field.zero_based;
    b.layout = field.layout;
    b.alignment = field.alignment;
  }
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
