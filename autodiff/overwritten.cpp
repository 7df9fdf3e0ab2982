#include "autodiff/overwritten.h"

#include <algorithm>
#include <vector>

#include "ir/analysis/effects.h"

namespace quern::autodiff {

using namespace ir;

namespace {

class Overwritten {
 public:
  Overwritten(const Kernel& kernel, uint32_t field)
      : kernel_(kernel),
        field_(field),
        filled_(kernel.bindings[field].components.size(), false),
        effects_(kernel) {}

  /// In program order.
  bool run() {
    for (const Inst* inst : *kernel_.body) {
      if (is_filled()) return true;
      if (fills(inst)) continue;
      bool reads = false;
      walk_all(inst, [&](const Inst* i) { reads = reads || may_read(i); });
      if (reads) return false;
    }
    return true;
  }

 private:
  template <class F>
  static void walk_all(const Inst* inst, F&& visit) {
    visit(inst);
    for (Region* r : inst->regions) walk(r, visit);
  }

  bool is_filled() const {
    return std::ranges::all_of(filled_, [](bool filled) { return filled; });
  }

  bool may_read(const Inst* inst) {
    return accesses_element(inst->op) && has(inst->op, flag::reads) && !inst->is(Op::store) &&
           effects_.may_overlap(inst->binding(), field_);
  }

  /// The only element, or by a loop over all of them that reads none.
  bool fills(const Inst* inst) {
    if (inst->is(Op::store) && inst->binding() == field_ && kernel_.bindings[field_].rank == 0) {
      filled_[inst->component()] = true;
      return true;
    }
    if (!inst->is(Op::parallel) || inst->options.over != field_) return false;
    bool reads = false;
    walk(inst->region(0), [&](const Inst* i) { reads = reads || may_read(i); });
    if (reads) return false;
    for (const Inst* i : *inst->region(0))
      if (i->is(Op::store) && i->binding() == field_ && is_own(i, inst->region(0)))
        filled_[i->component()] = true;
    return true;
  }

  static bool is_own(const Inst* store, const Region* iteration) {
    if (iteration->args.size() != Effects::indices(store)) return false;
    for (size_t k = 0; k < iteration->args.size(); k++)
      if (store->operand(k) != iteration->arg(k)) return false;
    return true;
  }

  const Kernel& kernel_;
  const uint32_t field_;
  std::vector<bool> filled_;  ///< by component
  Effects effects_;
};

}  // namespace

bool is_overwritten_first(const Kernel& kernel, uint32_t field) {
  return Overwritten(kernel, field).run();
}

}  // namespace quern::autodiff
