#include "ir/passes/optimise/carry_elements.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "ir/analysis/effects.h"
#include "ir/analysis/facts.h"
#include "quern/ir/builder.h"

namespace quern::ir {

namespace {

bool is_inside(const Region* region, const Value* v) {
  return encloses(region, v->inst ? v->inst->parent : v->region);
}

bool is_plain(const Inst* inst) { return inst->is(Op::load) || inst->is(Op::store); }

using Conditions = std::vector<Value*>;

/// An element of a field and how a loop comes to it.
struct Element {
  Inst* store;                    ///< one that names it
  Conditions conditions;          ///< on which each round stores to it
  std::vector<Inst*> accesses{};  ///< in the loop, in order
};

class Carrier {
 public:
  explicit Carrier(Kernel& kernel) : kernel_(kernel), b_(kernel) { effects_.emplace(kernel); }

  void run(Region* region) {
    for (Inst* inst : *region) {
      for (Region* inner : inst->regions) run(inner);
      if (inst->is(Op::loop)) carry(inst);
    }
  }

 private:
  void carry(Inst* loop) {
    std::vector<Inst*> touching;
    std::vector<Element> elements;
    most_ = worth_carrying(loop);
    walk(loop->region(0), [&](Inst* inst) {
      if (is_pure(inst->op) || !inst->regions.empty() || inst->is(Op::yield)) return;
      touching.push_back(inst);
      if (inst->is(Op::store)) consider(loop, inst, elements);
    });
    std::erase_if(elements, [&](Element& e) { return !is_alone(loop, e, touching); });
    if (elements.empty()) return;
    for (std::span<Element> open = elements; !open.empty();) {
      const Conditions same = open.front().conditions;
      const auto others = std::stable_partition(
          open.begin(), open.end(), [&](const Element& e) { return e.conditions == same; });
      const size_t count = size_t(others - open.begin());
      replace(loop, open.first(count));
      open = open.subspan(count);
    }
    effects_.emplace(kernel_);
  }

  void consider(const Inst* loop, Inst* store, std::vector<Element>& elements) const {
    const Binding& to = kernel_.bindings[store->binding()];
    if (to.kind != Binding::field || !to.components[store->component()].exact) return;
    for (size_t k = 0; k < Effects::indices(store); k++)
      if (is_inside(loop->region(0), store->operand(k))) return;
    std::optional<Conditions> conditions = conditions_of(loop, store);
    if (!conditions) return;
    const auto known = std::ranges::find_if(
        elements, [&](const Element& e) { return Effects::same_element(e.store, store); });
    if (known == elements.end() && elements.size() < most_)
      elements.push_back({store, std::move(*conditions)});
    else if (known != elements.end() && conditions->size() < known->conditions.size())
      *known = {store, std::move(*conditions)};
  }

  /// Those in the loop that decide whether a round comes to the instruction; none where other things
  /// do, too.
  static std::optional<Conditions> conditions_of(const Inst* loop, const Inst* inst) {
    Conditions all;
    for (const Region* r = inst->parent; r != loop->region(0); r = r->parent->parent) {
      const Inst* control = r->parent;
      if (!control->is(Op::if_) || r != control->region(0)) return std::nullopt;
      if (is_inside(loop->region(0), control->operand(0))) return std::nullopt;
      all.push_back(control->operand(0));
    }
    return all;
  }

  /// Does nothing else come to the element, and what does under its conditions at least?
  bool is_alone(const Inst* loop, Element& e, const std::vector<Inst*>& touching) {
    const Type type = type_of(e);
    for (Inst* inst : touching) {
      if (is_plain(inst) && Effects::same_element(inst, e.store)) {
        const Type other =
            inst->is(Op::load) ? inst->type() : inst->operand(Effects::indices(inst))->type;
        if (other != type || !is_under(loop, inst, e.conditions)) return false;
        e.accesses.push_back(inst);
      } else if ((has(inst->op, flag::writes) && effects_->may_change(inst, e.store)) ||
                 effects_->may_see(inst, e.store)) {
        return false;
      }
    }
    return true;
  }

  static bool is_under(const Inst* loop, const Inst* inst, const Conditions& conditions) {
    Conditions open = conditions;
    for (const Region* r = inst->parent; r != loop->region(0); r = r->parent->parent)
      if (r->parent->is(Op::if_) && r == r->parent->region(0))
        std::erase(open, r->parent->operand(0));
    return open.empty();
  }

  /// Those with the same conditions are read and written together.
  void replace(Inst* loop, std::span<const Element> all) {
    Value* taken = asked(loop, all[0].conditions);
    std::vector<Value*> slots;
    b_.before(loop);
    for (const Element& e : all) slots.push_back(b_.at(e.store->loc).slot(type_of(e)));
    Inst* behind = loop->next;
    where(taken, loop, [&] {
      for (size_t k = 0; k < all.size(); k++)
        if (reads_first(loop, all[k])) read(all[k], slots[k]);
    });
    where(taken, behind, [&] {
      for (size_t k = 0; k < all.size(); k++) write(all[k], slots[k]);
    });
    for (size_t k = 0; k < all.size(); k++) turn(all[k], slots[k]);
  }

  void read(const Element& e, Value* slot) {
    const Inst* like = e.store;
    b_.at(like->loc);
    Value* old = b_.load(like->binding(), like->component(), type_of(e), index_of(like));
    old->inst->site = like->site;
    b_.put(slot, old);
  }

  void write(const Element& e, Value* slot) {
    const Inst* like = e.store;
    b_.at(like->loc);
    Value* last = b_.get(slot);
    b_.store(like->binding(), like->component(), index_of(like), last)->site = like->site;
  }

  /// Its accesses into those of the slot.
  void turn(const Element& e, Value* slot) {
    for (Inst* access : e.accesses) {
      b_.before(access).at(access->loc);
      if (access->is(Op::load))
        access->result()->replace_with(b_.get(slot));
      else
        b_.put(slot, access->operand(Effects::indices(access)));
      access->erase();
    }
  }

  static std::vector<Value*> index_of(const Inst* access) {
    const auto operands = access->operands.first(Effects::indices(access));
    std::vector<Value*> index;
    for (const Use& use : operands) index.push_back(use.value);
    return index;
  }

  static Type type_of(const Element& e) {
    return e.store->operand(Effects::indices(e.store))->type;
  }

  /// May a round want what the element held before the loop? Not where each stores to it first.
  static bool reads_first(const Inst* loop, const Element& e) {
    const Inst* first = e.accesses.front();
    return !first->is(Op::store) || first->parent != loop->region(0);
  }

  /// Whether the loop has a round and the conditions hold; null: it has, and there are none.
  Value* asked(Inst* loop, const Conditions& conditions) {
    Value* all = nullptr;
    if (!has_rounds(loop)) all = has_any(loop);
    b_.before(loop).at(loop->loc);
    for (Value* c : conditions) all = all ? b_.binary(Op::bit_and, all, c) : c;
    return all;
  }

  /// Made where its bounds are, so that loops outside know that it stays.
  Value* has_any(Inst* loop) {
    Inst* point = loop;
    for (Region* r = loop->parent; r->parent; r = r->parent->parent) {
      if (is_inside(r, loop->operand(0)) || is_inside(r, loop->operand(1))) break;
      point = r->parent;
    }
    for (Inst* inst = point->prev; inst && inst->is(Op::lt); inst = inst->prev)
      if (inst->operand(0) == loop->operand(0) && inst->operand(1) == loop->operand(1))
        return inst->result();
    return b_.before(point).at(loop->loc).lt(loop->operand(0), loop->operand(1));
  }

  template <class F>
  void where(Value* taken, Inst* point, const F& emit) {
    b_.before(point);
    if (!taken) return emit();
    Inst* branch = b_.if_(taken);
    for (Region* r : branch->regions) {
      b_.at_end(r);
      if (r == branch->region(0)) emit();
      b_.yield();
    }
  }

  Kernel& kernel_;
  Builder b_;
  std::optional<Effects> effects_;
  size_t most_ = 0;  ///< elements that a loop may carry
};

}  // namespace

void carry_elements(Kernel& kernel) {
  if (kernel.modes.checked) return;
  for (Task& task : kernel.tasks) Carrier(kernel).run(task.body);
}

}  // namespace quern::ir
