#include "ir/passes/atomics/demote_atomics.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "ir/analysis/affine.h"
#include "ir/analysis/effects.h"
#include "ir/analysis/facts.h"
#include "ir/analysis/uniformity.h"
#include "ir/passes/atomics/atomic_rules.h"

namespace quern::ir {

namespace {

/// How one index of the iteration decides along an axis of an access.
struct Place {
  uint32_t axis = no_site;
  int64_t factor = 0;
  std::vector<Affine::Term> shared;
  int64_t constant = 0;

  /// Does another iteration's access never come to the same element?
  bool is_apart(const Place& other) const {
    if (axis != other.axis || factor != other.factor || shared != other.shared) return false;
    if (constant == other.constant) return true;
    const auto between = int64_t(uint64_t(constant) - uint64_t(other.constant));
    return factor != 1 && factor != -1 && between % factor != 0;
  }
  /// The index itself, or one beside it.
  bool is_plain() const { return factor == 1 && shared.empty(); }
  bool operator==(const Place&) const = default;
};
/// By index of the iteration.
using Pattern = std::vector<Place>;

class Demoter {
 public:
  Demoter(Kernel& kernel, Task& task)
      : kernel_(kernel), task_(task), b_(kernel), effects_(kernel), uniform_(kernel, task.body) {}

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
    std::vector<Pattern> patterns = {};  ///< different ones
    bool is_own = true;                  ///< no two iterations come to one element
  };

  void survey() {
    walk(task_.body, [&](Inst* inst) {
      calls_ |= effects_.of(inst).writes.anything;
      if (!accesses_element(inst->op) || !kernel_.bindings[inst->binding()].has_elements()) return;
      bindings_.insert(inst->binding());
      add(components_[inst->part], pattern(inst));
    });
  }

  static void add(Component& component, const std::optional<Pattern>& p) {
    if (!component.is_own) return;
    component.is_own = p && std::ranges::all_of(component.patterns, [&](const Pattern& known) {
                         return std::ranges::equal(known, *p, &Place::is_apart);
                       });
    std::vector<Pattern>& all = component.patterns;
    if (component.is_own && std::ranges::find(all, *p) == all.end()) all.push_back(*p);
    component.is_own = component.is_own && all.size() <= most_patterns;
  }

  std::optional<Pattern> pattern(const Inst* inst) {
    Pattern p(task_.body->args.size());
    uint32_t rank = kernel_.bindings[inst->binding()].rank;
    for (uint32_t axis = 0; axis < rank; axis++) {
      auto [index, place] = decided(inst->operand(axis), axis);
      if (!index) continue;
      Place& known = p[index->index];
      if (known.axis == no_site || (place.is_plain() && !known.is_plain()))
        known = std::move(place);
    }
    for (const Place& place : p)
      if (place.axis == no_site) return std::nullopt;
    return p;
  }

  /// Where one index of the iteration alone decides; null: it is not so.
  std::pair<const Value*, Place> decided(const Value* along, uint32_t axis) {
    const Affine& form = forms_.of(along);
    const Value* index = nullptr;
    Place place{axis, 0, {}, form.constant};
    for (const Affine::Term& term : form.terms) {
      if (term.symbol->region == task_.body) {
        if (std::exchange(index, term.symbol)) return {};
        place.factor = term.factor;
        if (bit_width(along->type) < 64 && std::abs(term.factor) >= most_factor) return {};
      } else if (uniform_(term.symbol)) {
        place.shared.push_back(term);
      } else {
        return {};
      }
    }
    return {index, std::move(place)};
  }

  bool own_location(const Inst* inst) const {
    const Binding& mine = kernel_.bindings[inst->binding()];
    if (calls_ || mine.alias_class == 0 || !components_.at(inst->part).is_own) return false;
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

  /// A stencil has fewer; with more the work would be quadratic.
  static constexpr size_t most_patterns = 64;
  /// Of 32-bit indices: iterations that meet as these wrap are 2^24 apart at least.
  static constexpr int64_t most_factor = 256;
  Kernel& kernel_;
  Task& task_;
  Builder b_;
  Effects effects_;
  Uniformity uniform_;
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
