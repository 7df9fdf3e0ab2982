#include "ir/passes/trees/list_access.h"

#include "ir/analysis/effects.h"
#include "ir/passes/trees/accesses.h"

namespace quern::ir {

void ListAccess::begin_task() {
  appended_by_.clear();
  numbers_.clear();
}

const Inst* ListAccess::appended(const Inst* inst, bool checked) const {
  if (!inst->is(Op::load) && !claims(kernel_, inst)) return nullptr;
  if (inst->is(Op::append)) return nullptr;
  const size_t last = Effects::indices(inst) - 1;
  const Inst* from = inst->operand(last)->inst;
  while (from && !from->is(Op::append)) {
    const Value* before = nullptr;
    if (from->is(Op::convert)) before = from->operand(0);
    if (checked && from->is(Op::if_) && from->results.size() == 1)
      before = from->region(0)->last->operand(0);
    from = before ? before->inst : nullptr;
  }
  if (!from) return nullptr;
  const Binding &mine = kernel_.bindings[inst->binding()],
                &other = kernel_.bindings[from->binding()];
  if (!other.layout.is_sparse() || other.tree != mine.tree) return nullptr;
  for (size_t k = 0; k < last; k++)
    if (from->operand(k) != inst->operand(k)) return nullptr;
  return from;
}

void ListAccess::note(const Inst* inst) {
  const Inst* from = appended(inst, false);
  if (from && from->site == no_site && names_alike(kernel_, inst, from->binding()))
    appended_by_[inst] = from;
}

Value* ListAccess::number(const Inst* inst) const {
  const auto from = appended_by_.find(inst);
  return from == appended_by_.end() ? nullptr : numbers_.at(from->second);
}

Value* ListAccess::answer(const Inst* inst, Descent& descent, const Descent::Path& path,
                          bool racing) {
  const uint32_t field = inst->binding(), axis = kernel_.bindings[field].rank - 1u;
  const auto integer = [&](int64_t v) { return b_.integer(Type::i64, v); };
  Value* first = b_.first(field, axis, Type::i64);
  Value* position = first;
  if (kernel_.bindings[field].layout.shifted)
    position = b_.add(first, b_.origin(field, axis, Type::i64));
  Value* extent = b_.extent(field, axis, Type::i64);
  if (inst->is(Op::length)) {
    Value* length = b_.convert(descent.length(path, racing), Type::i64);
    Value* visible = b_.binary(Op::max, b_.sub(length, position), integer(0));
    return b_.binary(Op::min, visible, extent);
  }
  Value* end = b_.convert(b_.add(position, extent), Type::u32);
  const auto [place, number] = descent.append(path, end);
  numbers_[inst] = number;
  Value* full = b_.binary(Op::eq, place, b_.integer(Type::u32, tree::no_place));
  Value* index = b_.add(b_.sub(b_.convert(place, Type::i64), position), first);
  return b_.select(full, b_.sub(first, integer(1)), index);
}

}  // namespace quern::ir
