#include "ir/passes/forward.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "ir/analysis/affine.h"
#include "ir/analysis/facts.h"

namespace quern::ir {

namespace {

/// The bindings a construct may write, or everything.
struct Writes {
  std::vector<uint32_t> bindings;
  bool everything = false;

  void add(uint32_t binding) {
    if (std::find(bindings.begin(), bindings.end(), binding) == bindings.end())
      bindings.push_back(binding);
  }
  void add(const Writes& other) {
    for (uint32_t b : other.bindings) add(b);
    everything = everything || other.everything;
  }
};

/// What one element holds, as long as nothing writes there.
struct Known {
  const Inst* access;  ///< names the location
  Value* value;
};

class Forwarder {
 public:
  explicit Forwarder(Kernel& kernel) : kernel_(kernel) {}

  void run(Region* root) {
    summarise(root);
    visit(root);
  }

 private:
  static constexpr size_t most_kept = 32;  ///< values per component

  // ---- what is written where

  Writes summarise(Region* region) {
    Writes all;
    for (Inst* inst : *region) {
      if (accesses_element(inst->op) && has(inst->op, flag::writes)) all.add(inst->binding());
      if (inst->is(Op::call)) all.everything = true;
      if (inst->regions.empty()) continue;
      Writes inside;
      for (Region* r : inst->regions) inside.add(summarise(r));
      all.add(inside);
      writes_[inst] = std::move(inside);
    }
    return all;
  }

  bool overlap(uint32_t a, uint32_t b) const {
    if (a == b) return true;
    const Binding &x = kernel_.bindings[a], &y = kernel_.bindings[b];
    if (x.kind == Binding::frame || y.kind == Binding::frame) return false;
    return !x.alias_class || !y.alias_class || x.alias_class == y.alias_class;
  }

  bool kept_as_is(const Inst* inst) const {
    const Binding& b = kernel_.bindings[inst->binding()];
    if (b.kind == Binding::frame) return true;
    const Storage& s = b.components[inst->component()];
    return s.value == s.storage || s.value == Type::b1;
  }

  // ---- what is known

  void forget(uint32_t binding) {
    for (auto& [part, values] : known_)
      if (overlap(part.binding, binding)) values.clear();
    for (auto& [part, stores] : pending_)
      if (overlap(part.binding, binding)) stores.clear();
  }
  void forget(const Writes& writes) {
    if (writes.everything) known_.clear();
    for (uint32_t b : writes.bindings) forget(b);
  }

  static bool same_index(const Inst* a, const Inst* b, size_t rank) {
    for (size_t k = 0; k < rank; k++)
      if (a->operand(k) != b->operand(k)) return false;
    return true;
  }

  /// Do the indices differ, whatever the values are?
  bool apart(const Inst* a, const Inst* b, size_t rank) {
    for (size_t k = 0; k < rank; k++) {
      const Value *x = a->operand(k), *y = b->operand(k);
      if (x->type == y->type && forms_.of(x).differs_from(forms_.of(y))) return true;
    }
    return false;
  }

  /// A write to one element: everything that may overlap it is no longer known.
  void written(const Inst* inst, size_t rank) {
    for (auto& [part, values] : known_) {
      if (part.binding != inst->binding()) {
        if (overlap(part.binding, inst->binding())) values.clear();
      } else if (part == inst->part) {
        std::erase_if(values, [&](const Known& k) { return !apart(k.access, inst, rank); });
      }
    }
  }

  void learn(const Inst* inst, Value* value) {
    if (!kept_as_is(inst)) return;
    auto& values = known_[inst->part];
    if (values.size() >= most_kept) values.erase(values.begin());
    values.push_back({inst, value});
  }

  // ---- stores that may turn out dead: in this region, not looked at since

  void looked_at(uint32_t binding) {
    for (auto& [part, stores] : pending_)
      if (overlap(part.binding, binding)) stores.clear();
  }

  void overwrite(Inst* store, size_t rank) {
    if (kernel_.modes.checked) return;  // the earlier store would have reported its own index
    auto& stores = pending_[store->part];
    for (Inst*& old : stores) {
      if (!same_index(old, store, rank)) continue;
      old->erase();
      old = store;
      return;
    }
    if (stores.size() < most_kept) stores.push_back(store);
  }

  // ---- the walk

  void visit(Region* region) {
    auto outer = std::move(pending_);
    pending_.clear();
    for (Inst* inst : *region) {
      if (accesses_element(inst->op))
        access(inst);
      else if (inst->is(Op::call))
        known_.clear(), pending_.clear();
      else if (!inst->regions.empty())
        structure(inst);
    }
    pending_ = std::move(outer);
  }

  void access(Inst* inst) {
    size_t rank = inst->operand_count();
    if (inst->is(Op::store)) rank -= 1;
    if (kernel_.bindings[inst->binding()].kind == Binding::frame && rank > 0) {
      // An array in the frame: the cell depends on the index, so nothing is known by component.
      if (inst->is(Op::store))
        forget(inst->binding());
      else
        looked_at(inst->binding());
      return;
    }
    if (inst->is(Op::store)) {
      written(inst, rank);
      overwrite(inst, rank);
      // In checked mode a store out of range stores nothing, and a load there gives 0.
      if (!kernel_.modes.checked || rank == 0) learn(inst, inst->operand(rank));
      return;
    }
    if (inst->is(Op::atomic)) {
      forget(inst->binding());
      return;
    }
    for (const Known& k : known_[inst->part]) {
      if (!same_index(k.access, inst, rank) || k.value->type != inst->type()) continue;
      inst->result()->replace_with(k.value);
      inst->erase();
      return;
    }
    looked_at(inst->binding());
    learn(inst, inst->result());
  }

  void structure(Inst* inst) {
    pending_.clear();
    const Writes& writes = writes_[inst];
    bool once = inst->is(Op::if_);
    if (!once) forget(writes);
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
    if (once) forget(writes);
  }

  Kernel& kernel_;
  std::unordered_map<const Inst*, Writes> writes_;
  AffineForms forms_;
  std::map<Part, std::vector<Known>> known_;
  std::map<Part, std::vector<Inst*>> pending_;
};

}  // namespace

void forward(Kernel& kernel) {
  for (Region* root : roots(kernel)) Forwarder(kernel).run(root);
}

}  // namespace quern::ir
