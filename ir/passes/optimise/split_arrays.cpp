#include "ir/passes/optimise/split_arrays.h"

#include <optional>
#include <vector>

#include "quern/ir/builder.h"

namespace quern::ir {

namespace {

/// Of one array. In a loop that is gone through often an access of memory costs less.
constexpr uint64_t most_choices = 64;

/// The element that a get or a put names by a constant, or -1 where it computes it. None: it names
/// one that is not there, or is no such access.
std::optional<int64_t> element_of(const Inst* access, uint64_t elements) {
  if (!access->is(Op::get) && !access->is(Op::put)) return std::nullopt;
  if (access->operand_count() != (access->is(Op::get) ? 2u : 3u)) return std::nullopt;
  const Inst* index = access->operand(1)->inst;
  if (!index || !index->is(Op::constant)) return -1;
  const int64_t k = to_signed(index->imm, index->type());
  if (k < 0 || uint64_t(k) >= elements) return std::nullopt;
  return k;
}

/// Is there a loop around it, inside the region?
bool is_in_loop(const Inst* inst, const Region* region) {
  for (const Region* r = inst->parent; r != region; r = r->parent->parent)
    if (!r->parent->is(Op::if_)) return true;
  return false;
}

bool is_splittable(const Inst* slot, bool is_checked) {
  uint64_t choices = 0;
  for (const Use* use = slot->result()->uses; use; use = use->next) {
    const std::optional<int64_t> element = element_of(use->user, slot->imm);
    if (!element) return false;
    if (*element >= 0) continue;
    choices += slot->imm;
    if (is_checked || choices > most_choices || is_in_loop(use->user, slot->parent)) return false;
  }
  return slot->imm > 1;
}

class Splitter {
 public:
  Splitter(Builder& b, Inst* slot) : b_(b), slot_(slot), elements_(slot->imm, nullptr) {}

  void run() {
    while (const Use* use = slot_->result()->uses) {
      Inst* access = use->user;
      const int64_t named = *element_of(access, slot_->imm);
      b_.before(access).at(access->loc);
      if (access->is(Op::get))
        access->result()->replace_with(named < 0 ? chosen(access) : b_.get(element(named)));
      else if (named < 0)
        put_chosen(access);
      else
        b_.put(element(named), access->operand(2));
      access->erase();
    }
    slot_->erase();
  }

 private:
  Value* element(int64_t k) {
    Value*& made = elements_[size_t(k)];
    if (made) return made;
    Inst* point = b_.point();
    const Loc loc = b_.loc();
    made = b_.before(slot_).at(slot_->loc).slot(slot_->elem);
    b_.before(point).at(loc);
    return made;
  }

  /// Is element k the one that is computed?
  Value* is_at(const Inst* access, int64_t k) {
    Value* index = access->operand(1);
    Value* number = b_.integer(index->type, k);
    return b_.binary(Op::eq, index, number);
  }

  Value* chosen(const Inst* access) {
    Value* v = b_.get(element(0));
    for (int64_t k = 1; k < int64_t(slot_->imm); k++) {
      Value* is_it = is_at(access, k);
      v = b_.select(is_it, b_.get(element(k)), v);
    }
    return v;
  }

  void put_chosen(const Inst* access) {
    for (int64_t k = 0; k < int64_t(slot_->imm); k++) {
      Value* is_it = is_at(access, k);
      Value* old = b_.get(element(k));
      b_.put(element(k), b_.select(is_it, access->operand(2), old));
    }
  }

  Builder& b_;
  Inst* slot_;
  std::vector<Value*> elements_;  ///< slots, of those that are accessed
};

}  // namespace

void split_arrays(Kernel& kernel) {
  Builder b(kernel);
  std::vector<Inst*> slots;
  walk(kernel, [&](Inst* inst) {
    if (inst->is(Op::slot) && is_splittable(inst, kernel.modes.checked)) slots.push_back(inst);
  });
  for (Inst* slot : slots) Splitter(b, slot).run();
}

}  // namespace quern::ir
