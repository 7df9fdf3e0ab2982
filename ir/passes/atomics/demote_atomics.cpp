#include "ir/passes/atomics/demote_atomics.h"

#include <map>
#include <optional>
#include <set>

#include "ir/analysis/affine.h"
#include "ir/analysis/effects.h"
#include "ir/analysis/facts.h"
#include "ir/passes/atomics/atomic_rules.h"

namespace quern::ir {

namespace {

/// Where each index of the iteration stands in an access: axis and constant added to it.
using Pattern = std::vector<std::pair<uint32_t, int64_t>>;

class Demoter {
 public:
  Demoter(Kernel& kernel, Task& task)
      : kernel_(kernel), task_(task), b_(kernel), effects_(kernel) {}

  void run() {
    std::vector<Inst*> atomics;
    walk(task_.body, [&](Inst* inst) {
      if (inst->is(Op::atomic)) atomics.push_back(inst);
    });
    if (atomics.empty()) return;
    if (task_.kind == Task::range) survey();
    for (Inst* inst : atomics)
      if (task_.kind == Task::serial || own_location(inst)) demote(inst);
  }

 private:
  struct Component {
    Pattern pattern;
    bool alike = true;  ///< every access has the pattern
  };

  void survey() {
    walk(task_.body, [&](Inst* inst) {
      calls_ |= effects_.of(inst).writes.anything;
      if (!accesses_element(inst->op) || kernel_.bindings[inst->binding()].kind != Binding::field)
        return;
      std::optional<Pattern> p = pattern(inst);
      auto [at, is_new] = components_.try_emplace(inst->part);
      if (is_new && p) at->second.pattern = *p;
      if (!p || *p != at->second.pattern) at->second.alike = false;
      bindings_.insert(inst->binding());
    });
  }

  std::optional<Pattern> pattern(const Inst* inst) {
    Pattern p(task_.body->args.size(), {no_site, 0});
    uint32_t rank = kernel_.bindings[inst->binding()].rank;
    for (uint32_t axis = 0; axis < rank; axis++) {
      const Affine& form = forms_.of(inst->operand(axis));
      const Value* v = form.base();
      if (v && v->region == task_.body && p[v->index].first == no_site)
        p[v->index] = {axis, form.constant};
    }
    for (const auto& [axis, constant] : p)
      if (axis == no_site) return std::nullopt;
    return p;
  }

  bool own_location(const Inst* inst) const {
    const Binding& mine = kernel_.bindings[inst->binding()];
    if (calls_ || mine.alias_class == 0 || !components_.at(inst->part).alike) return false;
    for (uint32_t other : bindings_)
      if (other != inst->binding() && effects_.may_overlap(other, inst->binding())) return false;
    return true;
  }

  void demote(Inst* inst) {
    uint32_t rank = kernel_.bindings[inst->binding()].rank;
    std::vector<Value*> index, values;
    for (uint32_t k = 0; k < inst->operand_count(); k++)
      (k < rank ? index : values).push_back(inst->operand(k));
    b_.before(inst).at(inst->loc);
    Value* old = b_.load(inst->binding(), inst->component(), inst->elem, index);
    old->inst->site = inst->site;
    if (inst->atomic() != AtomicOp::load) {
      Value* v = updated(b_, inst->atomic(), old, values);
      b_.store(inst->binding(), inst->component(), index, v)->site = inst->site;
    }
    inst->result()->replace_with(old);
    inst->erase();
  }

  Kernel& kernel_;
  Task& task_;
  Builder b_;
  Effects effects_;
  bool calls_ = false;
  AffineForms forms_;
  std::map<Part, Component> components_;
  std::set<uint32_t> bindings_;
};

}  // namespace

void demote_atomics(Kernel& kernel) {
  for (Task& task : kernel.tasks) Demoter(kernel, task).run();
}

}  // namespace quern::ir
