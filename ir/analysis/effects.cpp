#include "ir/analysis/effects.h"

#include <algorithm>

namespace quern::ir {

namespace {

template <class T>
void insert(std::vector<T>& into, const T& what) {
  if (std::ranges::find(into, what) == into.end()) into.push_back(what);
}

/// The places that the row of its operation says.
void add_own(Places& to, const Inst* inst, const Kernel& kernel) {
  if (inst->is(Op::call)) to.anything = true;
  if (accesses_element(inst->op)) insert(to.bindings, inst->binding());
  if (accesses_memory(inst->op)) insert(to.classes, inst->imm);
  if (has(inst->op, flag::slots) && inst->operand_count() > 0 &&
      inst->operand(0)->type == Type::slot)
    insert(to.slots, static_cast<const Value*>(inst->operand(0)));
  if (has(inst->op, flag::host)) to.host = true;
  if (inst->is(Op::call_number)) to.random = true;
  if (inst->is(Op::reduce) && inst->operand(0)->type != Type::slot)  // of a task: in its cell
    insert(to.bindings, kernel.frame_binding());
}

}  // namespace

void Places::add(const Places& other) {
  for (uint32_t b : other.bindings) insert(bindings, b);
  for (uint64_t c : other.classes) insert(classes, c);
  for (const Value* s : other.slots) insert(slots, s);
  host = host || other.host;
  random = random || other.random;
  anything = anything || other.anything;
}

const Touched& Effects::of(const Inst* inst) {
  if (auto known = known_.find(inst); known != known_.end()) return known->second;
  Touched all;
  if (has(inst->op, flag::reads)) add_own(all.reads, inst, kernel_);
  if (has(inst->op, flag::writes)) add_own(all.writes, inst, kernel_);
  if (inst->is(Op::slot)) all.writes.slots.push_back(inst->result());  // zero each time
  for (const Region* r : inst->regions) {
    const Touched inside = of(r);
    all.reads.add(inside.reads);
    all.writes.add(inside.writes);
  }
  return known_.emplace(inst, std::move(all)).first->second;
}

Touched Effects::of(const Region* region) {
  Touched all;
  for (const Inst* inst = region->first; inst; inst = inst->next) {
    if (is_pure(inst->op)) continue;
    const Touched& one = of(inst);
    all.reads.add(one.reads);
    all.writes.add(one.writes);
  }
  auto is_inside = [&](const Value* slot) { return encloses(region, slot->inst->parent); };
  std::erase_if(all.reads.slots, is_inside);
  std::erase_if(all.writes.slots, is_inside);
  return all;
}

bool Effects::may_overlap(uint32_t binding, uint32_t other) const {
  if (binding == other) return true;
  const Binding &x = kernel_.bindings[binding], &y = kernel_.bindings[other];
  auto is_own = [](const Binding& b) {
    return b.kind == Binding::frame || b.kind == Binding::buffer;
  };
  if (is_own(x) || is_own(y)) return false;
  return !x.alias_class || !y.alias_class || x.alias_class == y.alias_class;
}

bool Effects::may_overlap(const Places& a, const Places& b) const {
  if (a.anything) return !b.empty();
  if (b.anything) return !a.empty();
  if ((a.host && b.host) || (a.random && b.random)) return true;
  for (uint32_t x : a.bindings)
    for (uint32_t y : b.bindings)
      if (may_overlap(x, y)) return true;
  for (uint64_t x : a.classes)
    for (uint64_t y : b.classes)
      if (x == 0 || y == 0 || x == y) return true;
  for (const Value* x : a.slots)
    if (std::ranges::find(b.slots, x) != b.slots.end()) return true;
  // Bindings become memory step by step: side by side they may be the same.
  return (!a.bindings.empty() && !b.classes.empty()) || (!a.classes.empty() && !b.bindings.empty());
}

bool Effects::may_conflict(const Touched& a, const Touched& b) const {
  return may_overlap(a.writes, b.writes) || may_overlap(a.writes, b.reads) ||
         may_overlap(a.reads, b.writes);
}

bool Effects::may_conflict(const Inst* a, const Inst* b) { return may_conflict(of(a), of(b)); }

bool Effects::may_change(const Inst* write, const Inst* access) {
  // Fields on one tree share what is active, and which are on one is not known yet.
  if (access->is(Op::is_active) || access->is(Op::empty_box) || access->is(Op::length) ||
      access->is(Op::append))
    return has(write->op, flag::writes);
  if (!accesses_element(write->op))
    return may_overlap(of(write).writes, of(access).reads) ||
           may_overlap(of(write).writes, of(access).writes);
  if (!has(write->op, flag::writes) || !may_overlap(write->binding(), access->binding()))
    return false;
  if (write->binding() != access->binding() || write->is(Op::append)) return true;
  const size_t rank = indices(write);
  if (kernel_.bindings[write->binding()].kind == Binding::frame && rank != indices(access))
    return true;  // an array of cells
  if (write->part != access->part)
    return kernel_.bindings[write->binding()].kind == Binding::frame && rank > 0;
  for (size_t k = 0; k < rank; k++) {
    const Value *x = write->operand(k), *y = access->operand(k);
    if (x->type == y->type && forms_.of(x).differs_from(forms_.of(y))) return false;
  }
  return true;
}

bool Effects::may_see(const Inst* reader, const Inst* write) {
  if (!has(reader->op, flag::reads)) return false;
  return accesses_element(reader->op) ? may_change(write, reader)
                                      : may_overlap(of(reader).reads, of(write).writes);
}

size_t Effects::indices(const Inst* access) {
  if (access->is(Op::store)) return access->operand_count() - 1;
  if (access->is(Op::atomic)) return access->operand_count() - operand_count(access->atomic());
  return access->operand_count();
}

bool Effects::same_element(const Inst* a, const Inst* b) {
  if (a->part != b->part || indices(a) != indices(b)) return false;
  for (size_t k = 0; k < indices(a); k++)
    if (a->operand(k) != b->operand(k)) return false;
  return true;
}

}  // namespace quern::ir
