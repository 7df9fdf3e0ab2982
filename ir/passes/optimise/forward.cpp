#include "ir/passes/optimise/forward.h"

#include <algorithm>
#include <map>

#include "ir/analysis/dataflow.h"
#include "ir/analysis/effects.h"

namespace quern::ir {

namespace {

/// What one element holds, as long as nothing writes there.
struct Known {
  const Inst* access;  ///< names the location
  Value* value;
};

class Forwarder {
 public:
  explicit Forwarder(Kernel& kernel) : kernel_(kernel), effects_(kernel) {}

  void run(Region* root) { visit(root); }

 private:
  static constexpr size_t most_kept = 32;  ///< values per component

  bool kept_as_is(const Inst* inst) const {
    const Binding& b = kernel_.bindings[inst->binding()];
    return b.kind == Binding::frame || b.components[inst->component()].exact;
  }

  // ---- what is known

  /// Everything that the instruction may change is no longer known.
  void changed_by(const Inst* inst) {
    for (auto& [part, values] : known_)
      std::erase_if(values, [&](const Known& k) { return effects_.may_change(inst, k.access); });
  }

  void learn(const Inst* inst, Value* value) {
    if (!kept_as_is(inst)) return;
    auto& values = known_[inst->part];
    if (values.size() >= most_kept) values.erase(values.begin());
    values.push_back({inst, value});
  }

  // ---- the walk

  void visit(Region* region) {
    for (Inst* inst : *region) {
      if (accesses_element(inst->op)) {
        access(inst);
      } else if (!inst->regions.empty()) {
        structure(inst);
      } else if (!is_pure(inst->op)) {
        changed_by(inst);
      }
    }
  }

  void access(Inst* inst) {
    const size_t rank = Effects::indices(inst);
    if (has(inst->op, flag::writes)) changed_by(inst);
    if (kernel_.bindings[inst->binding()].kind == Binding::frame && rank > 0) {
      // An array in the frame: the cell depends on the index, so nothing is known by component.
      return;
    }
    if (inst->is(Op::store)) {
      // In checked mode a store out of range stores nothing, and a load there gives 0.
      if (!kernel_.modes.checked || rank == 0) learn(inst, inst->operand(rank));
      return;
    }
    if (!inst->is(Op::load)) return;
    for (const Known& k : known_[inst->part]) {
      if (!Effects::same_element(k.access, inst) || k.value->type != inst->type()) continue;
      inst->result()->replace_with(k.value);
      inst->erase();
      return;
    }
    learn(inst, inst->result());
  }

  void structure(Inst* inst) {
    bool once = inst->is(Op::if_);
    if (!once) changed_by(inst);
    auto before = known_;
    for (Region* r : inst->regions) {
      // What is learnt inside is made inside and ends there.
      if (inst->is(Op::parallel))
        known_.clear();
      else
        known_ = before;
      visit(r);
    }
    known_ = std::move(before);
    if (once) changed_by(inst);
  }

  Kernel& kernel_;
  Effects effects_;
  std::map<Part, std::vector<Known>> known_;
};

/// Backwards: the stores that will have happened, on every way, before anybody looks at their
/// elements. Another store to one of them is dead.
class DeadStores {
 public:
  using State = std::vector<const Inst*>;

  explicit DeadStores(Kernel& kernel) : kernel_(kernel), effects_(kernel) {}

  void run(Region* root) {
    State none;
    Dataflow<DeadStores, false>(*this).run(root, none);
  }

  void meet(State& into, const State& from) const {
    std::erase_if(into, [&](const Inst* store) { return !find(from, store); });
  }

  void enter(const Region* region, State& state) const {
    if (may_be_seen_between(region->parent)) state.clear();
  }
  /// What a region calls an element by, nobody knows before it.
  void leave(const Region* region, State& state) const {
    std::erase_if(state, [&](const Inst* store) {
      return std::ranges::any_of(store->operands.first(Effects::indices(store)),
                                 [&](const Use& use) {
                                   const Value* v = use.value;
                                   return encloses(region, v->inst ? v->inst->parent : v->region);
                                 });
    });
  }
  void around(const Inst* inst, State& state) const {
    if (may_be_seen_between(inst)) state.clear();
  }

  void step(Inst* inst, State& state, bool last) {
    if (inst->is(Op::store)) return overwrite(inst, state, last);
    if (!has(inst->op, flag::reads)) return;
    std::erase_if(state, [&](const Inst* store) { return effects_.may_see(inst, store); });
  }

 private:
  static constexpr size_t most_kept = 64;

  /// Other iterations may be at work meanwhile: those of a parallel loop, or those for which a loop
  /// without a count may wait.
  static bool may_be_seen_between(const Inst* inst) {
    return inst && (inst->is(Op::parallel) || inst->is(Op::while_));
  }

  static bool find(const State& state, const Inst* store) {
    return std::ranges::any_of(state, [&](const Inst* other) {
      return other == store || Effects::same_element(other, store);
    });
  }

  void overwrite(Inst* store, State& state, bool last) {
    const size_t rank = Effects::indices(store);
    // An array in the frame: the cell depends on the index.
    if (kernel_.bindings[store->binding()].kind == Binding::frame && rank > 0) return;
    if (!find(state, store)) {
      if (state.size() == most_kept) state.erase(state.begin());
      state.push_back(store);
    } else if (last) {
      store->erase();
    }
  }

  Kernel& kernel_;
  Effects effects_;
};

}  // namespace

void forward_root(Kernel& kernel, Region* root) {
  Forwarder(kernel).run(root);
  if (kernel.modes.checked) return;  // the earlier store would have reported its own index
  DeadStores(kernel).run(root);
}

void forward(Kernel& kernel) {
  for (Region* root : roots(kernel)) forward_root(kernel, root);
}

}  // namespace quern::ir
