#include "ir/passes/optimise/promote_slots.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "ir/passes/walks/reshape.h"

namespace quern::ir {

namespace {

using Slots = std::vector<uint32_t>;

class Promoter {
 public:
  Promoter(Kernel& kernel, bool across_parallels)
      : b_(kernel), arena_(*kernel.arena), across_parallels_(across_parallels) {}

  void run(Region* root) {
    if (!across_parallels_) find_parallels(root);
    measure(root, {1, 0});
    walk(root, [&](Inst* inst) {
      if (inst->is(Op::slot) && promotable(inst)) {
        numbers_[inst] = uint32_t(current_.size());
        current_.push_back(nullptr);
        types_.push_back(inst->elem);
      }
    });
    if (numbers_.empty()) return;
    walk(root, [&](Inst* inst) {
      if (inst->is(Op::put)) note_put(inst);
    });
    rename(root);
    for (auto& [slot, number] : numbers_) slot->erase();
  }

 private:
  /// Marks every instruction that contains a parallel loop.
  void find_parallels(Region* root) {
    walk(root, [&](Inst* inst) {
      if (!inst->is(Op::parallel)) return;
      for (Inst* at = inst; at && holds_parallel_.insert(at).second; at = at->parent->parent) {
      }
    });
  }

  /// Where a region stands: its depth, and that of the region in which the innermost construct
  /// around it stands that contains a parallel loop (0: none).
  struct Place {
    size_t depth, parallel;
  };

  void measure(Region* region, Place place) {
    places_[region] = place;
    for (Inst* inst : *region) {
      size_t parallel = holds_parallel_.contains(inst) ? place.depth : place.parallel;
      for (Region* r : inst->regions) measure(r, {place.depth + 1, parallel});
    }
  }

  bool promotable(Inst* slot) {
    if (slot->imm != 1) return false;
    size_t home = places_[slot->parent].depth;
    for (Use* use = slot->result()->uses; use; use = use->next) {
      Inst* user = use->user;
      if (user->is(Op::get)) continue;
      if (!user->is(Op::put) || places_[user->parent].parallel >= home) return false;
    }
    return true;
  }

  /// Tells every construct between a put and its slot that it changes the slot.
  void note_put(Inst* put) {
    auto found = numbers_.find(put->operand(0)->inst);
    if (found == numbers_.end()) return;
    Region* home = found->first->parent;
    for (Region* at = put->parent; at != home; at = at->parent->parent) {
      Slots& slots = changed_[at->parent];
      if (std::find(slots.rbegin(), slots.rend(), found->second) != slots.rend()) break;
      slots.push_back(found->second);
    }
  }

  std::vector<Value*> values(const Slots& slots) const {
    std::vector<Value*> out;
    for (uint32_t slot : slots) out.push_back(current_[slot]);
    return out;
  }
  void set(const Slots& slots, std::span<Value> from) {
    for (size_t k = 0; k < slots.size(); k++)
      current_[slots[k]] = &from[from.size() - slots.size() + k];
  }
  std::vector<Type> types(const Slots& slots) const {
    std::vector<Type> out;
    for (uint32_t slot : slots) out.push_back(types_[slot]);
    return out;
  }

  void rename(Region* region) {
    for (Inst* inst : *region) {
      if (!inst->regions.empty()) {
        structure(inst);
        continue;
      }
      if (!inst->is(Op::slot) && !inst->is(Op::get) && !inst->is(Op::put)) continue;
      auto found = numbers_.find(inst->is(Op::slot) ? inst : inst->operand(0)->inst);
      if (found == numbers_.end()) continue;
      Value*& value = current_[found->second];
      if (inst->is(Op::slot)) {
        value = b_.before(inst).at(inst->loc).constant(inst->elem, 0);
      } else if (inst->is(Op::put)) {
        value = inst->operand(1);
        inst->erase();
      } else {
        inst->result()->replace_with(value);
        inst->erase();
      }
    }
  }

  void structure(Inst* inst) {
    const Slots slots = std::move(changed_[inst]);
    const std::vector<Type> added = types(slots);
    if (inst->is(Op::if_)) {
      std::vector<Value*> before = values(slots);
      for (Region* r : inst->regions) {
        for (size_t k = 0; k < slots.size(); k++) current_[slots[k]] = before[k];
        rename(r);
        add_operands(b_, r->last, values(slots));
      }
      add_results(arena_, inst, added);
      set(slots, inst->results);
      return;
    }
    if (inst->is(Op::parallel)) {
      rename(inst->region(0));
      return;
    }
    add_operands(b_, inst, values(slots));
    for (Region* r : inst->regions) {
      add_args(arena_, r, added);
      set(slots, r->args);
      rename(r);
      add_operands(b_, r->last, values(slots));
    }
    add_results(arena_, inst, added);
    set(slots, inst->results);
  }

  Builder b_;
  Arena& arena_;
  const bool across_parallels_;
  std::unordered_set<Inst*> holds_parallel_;
  std::unordered_map<Region*, Place> places_;
  std::unordered_map<Inst*, uint32_t> numbers_;  ///< slots to promote
  std::unordered_map<Inst*, Slots> changed_;     ///< by each construct
  std::vector<Type> types_;
  std::vector<Value*> current_;
};

}  // namespace

void promote_slots(Kernel& kernel) {
  for (Region* root : roots(kernel)) Promoter(kernel, false).run(root);
}

void promote_slots_across_parallels(Kernel& kernel) {
  for (Region* root : roots(kernel)) Promoter(kernel, true).run(root);
}

}  // namespace quern::ir
