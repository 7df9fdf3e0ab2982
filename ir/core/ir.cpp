#include "quern/ir/ir.h"

namespace quern::ir {

namespace {
void detach(Use* use) {
  if (use->prev)
    use->prev->next = use->next;
  else
    use->value->uses = use->next;
  if (use->next) use->next->prev = use->prev;
}

void erase_all(Region* region) {
  if (!region) return;
  while (region->last) region->last->erase();
}
}  // namespace

void Use::set(Value* v) {
  if (value) detach(this);
  value = v;
  prev = nullptr;
  next = v ? v->uses : nullptr;
  if (next) next->prev = this;
  if (v) v->uses = this;
}

void Value::replace_with(Value* other) {
  while (uses) uses->set(other);
}

void Inst::set_operand(size_t k, Value* v) {
  operands[k].user = this;
  operands[k].set(v);
}

bool Inst::used() const {
  for (const Value& v : results)
    if (v.used()) return true;
  return false;
}

void Inst::unlink() {
  if (!parent) return;
  if (prev)
    prev->next = next;
  else
    parent->first = next;
  if (next)
    next->prev = prev;
  else
    parent->last = prev;
  prev = next = nullptr;
  parent = nullptr;
}

void Inst::erase() {
  for (Region* r : regions) erase_all(r);
  if (used()) throw InternalError("an instruction that is still used was erased");
  for (Use& use : operands) use.set(nullptr);
  unlink();
}

void Region::insert(Inst* inst, Inst* before) {
  inst->parent = this;
  inst->next = before;
  inst->prev = before ? before->prev : last;
  (inst->prev ? inst->prev->next : first) = inst;
  (before ? before->prev : last) = inst;
}

bool encloses(const Region* outer, const Region* inner) {
  while (inner) {
    if (inner == outer) return true;
    inner = inner->parent ? inner->parent->parent : nullptr;
  }
  return false;
}

std::vector<Part> narrow_axes(const Inst* inst) {
  if (inst->is(Op::extent) && bit_width(inst->type()) < 64) return {inst->part};
  std::vector<Part> all;
  if (inst->is(Op::parallel) && inst->options.over != no_binding)
    for (const Value& index : inst->region(0)->args)
      if (bit_width(index.type) < 64) all.push_back({inst->options.over, index.index});
  return all;
}

uint32_t Kernel::frame_binding() const {
  for (size_t k = 0; k < bindings.size(); k++)
    if (bindings[k].kind == Binding::frame) return uint32_t(k);
  throw InternalError("kernel '" + name + "' has no frame binding");
}

std::vector<Region*> roots(const Kernel& kernel) {
  std::vector<Region*> all;
  if (kernel.body) all.push_back(kernel.body);
  for (const Function& f : kernel.callees)
    if (f.body) all.push_back(f.body);
  for (const Task& t : kernel.tasks) {
    if (t.domain) all.push_back(t.domain);
    if (t.bound) all.push_back(t.bound);
    if (t.body) all.push_back(t.body);
  }
  return all;
}

namespace {
void add_derivatives(std::vector<Type>& to, std::span<const Type> of) {
  for (Type t : of)
    if (is_float(t)) to.push_back(derivative_type(t));
}
std::vector<Type> argument_types(const Function& f) {
  std::vector<Type> types;
  for (const Value& v : f.body->args) types.push_back(v.type);
  return types;
}
/// Of a rule that takes derivatives of `from` and gives those of `to`.
RuleTypes rule_types(const Function& f, std::span<const Type> from, std::span<const Type> to) {
  RuleTypes rule{argument_types(f), {}};
  rule.arguments.insert(rule.arguments.end(), f.results.begin(), f.results.end());
  add_derivatives(rule.arguments, from);
  add_derivatives(rule.results, to);
  return rule;
}
}  // namespace

RuleTypes pushforward_types(const Function& f) {
  return rule_types(f, argument_types(f), f.results);
}
RuleTypes pullback_types(const Function& f) { return rule_types(f, f.results, argument_types(f)); }

}  // namespace quern::ir
