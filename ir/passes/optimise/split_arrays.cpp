#include "ir/passes/optimise/split_arrays.h"

#include <optional>
#include <vector>

#include "quern/ir/builder.h"

namespace quern::ir {

namespace {

/// The element that a get or a put names by a constant in range.
std::optional<size_t> constant_element(const Inst* access, uint64_t elements) {
  if (!access->is(Op::get) && !access->is(Op::put)) return std::nullopt;
  if (access->operand_count() != (access->is(Op::get) ? 2u : 3u)) return std::nullopt;
  const Inst* index = access->operand(1)->inst;
  if (!index || !index->is(Op::constant)) return std::nullopt;
  const int64_t k = to_signed(index->imm, index->type());
  if (k < 0 || uint64_t(k) >= elements) return std::nullopt;
  return size_t(k);
}

bool is_splittable(const Inst* slot) {
  for (const Use* use = slot->result()->uses; use; use = use->next)
    if (!constant_element(use->user, slot->imm)) return false;
  return slot->imm > 1;
}

void split(Builder& b, Inst* slot) {
  std::vector<Value*> elements(slot->imm, nullptr);
  while (const Use* use = slot->result()->uses) {
    Inst* access = use->user;
    Value*& element = elements[*constant_element(access, slot->imm)];
    if (!element) element = b.before(slot).at(slot->loc).slot(slot->elem);
    b.before(access).at(access->loc);
    if (access->is(Op::get))
      access->result()->replace_with(b.get(element));
    else
      b.put(element, access->operand(2));
    access->erase();
  }
  slot->erase();
}

}  // namespace

void split_arrays(Kernel& kernel) {
  Builder b(kernel);
  std::vector<Inst*> slots;
  walk(kernel, [&](Inst* inst) {
    if (inst->is(Op::slot) && is_splittable(inst)) slots.push_back(inst);
  });
  for (Inst* slot : slots) split(b, slot);
}

}  // namespace quern::ir
