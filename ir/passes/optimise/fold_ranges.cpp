#include "ir/passes/optimise/fold_ranges.h"

#include <unordered_map>
#include <vector>

#include "ir/analysis/ranges.h"
#include "quern/ir/builder.h"

namespace quern::ir {

namespace {

constexpr size_t most_questions = 1000;  ///< of a root
constexpr int deepest = 16;              ///< operations from a value back to an index

class Folder {
 public:
  Folder(Kernel& kernel, Region* root, bool knows_trees)
      : b_(kernel), root_(root), ranges_(root, knows_trees ? &kernel : nullptr) {}

  void run() {
    walk(root_, [&](Inst* inst) { ask(inst); });
    for (const auto& [inst, operand] : chosen_)
      inst->result()->replace_with(inst->operand(operand));
    for (const auto& [inst, holds] : answered_) {
      b_.before(inst).at(inst->loc);
      inst->result()->replace_with(b_.boolean(holds));
    }
  }

 private:
  void ask(Inst* inst) {
    const bool is_extremum = inst->is(Op::min) || inst->is(Op::max);
    const bool is_order = inst->is(Op::lt) || inst->is(Op::le) || inst->is(Op::gt) ||
                          inst->is(Op::ge) || inst->is(Op::eq) || inst->is(Op::ne);
    if (!is_extremum && !is_order) return;
    const Value *a = inst->operand(0), *b = inst->operand(1);
    if (!is_int(a->type) || questions_ == most_questions) return;
    if (!is_of_index(a, 0) && !is_of_index(b, 0)) return;
    questions_++;
    const Region* region = inst->parent;
    const auto difference = sum(ranges_.exact(a), ranges_.exact(b), -1);
    if (!difference) return;
    // Is a - b, or b - a, at least that much?
    const auto exceeds = [&](int64_t factor, int64_t by) {
      const auto form = sum(Affine{{}, -by}, *difference, factor);
      return form && ranges_.not_negative(*form, region);
    };
    const auto is_above = [&](int64_t by) { return exceeds(1, by); };
    const auto is_below = [&](int64_t by) { return exceeds(-1, by); };
    const auto answer = [&](bool holds, bool fails) {
      if (holds || fails) answered_.push_back({inst, holds});
    };
    switch (inst->op) {
      case Op::min:
      case Op::max:
        if (is_below(0))
          chosen_.push_back({inst, inst->is(Op::min) ? 0u : 1u});
        else if (is_above(0))
          chosen_.push_back({inst, inst->is(Op::min) ? 1u : 0u});
        return;
      case Op::lt: return answer(is_below(1), is_above(0));
      case Op::le: return answer(is_below(0), is_above(1));
      case Op::gt: return answer(is_above(1), is_below(0));
      case Op::ge: return answer(is_above(0), is_below(1));
      default: break;
    }
    const bool above = is_above(0), below = is_below(0);
    const bool are_equal = above && below,
               differ = (above && is_above(1)) || (below && is_below(1));
    inst->is(Op::eq) ? answer(are_equal, differ) : answer(differ, are_equal);
  }

  /// Does a loop's index go into it? Looked through are operations of which much is known: sums,
  /// products, remainders, bounds and choices.
  bool is_of_index(const Value* v, int depth) {
    if (bounds_of(v)) return true;
    if (!v->inst || depth == deepest || !is_int(v->type)) return false;
    const auto found = of_index_.find(v);
    if (found != of_index_.end()) return found->second;
    bool any = false;
    switch (v->inst->op) {
      case Op::add:
      case Op::sub:
      case Op::mul:
      case Op::min:
      case Op::max:
      case Op::rem:
      case Op::convert:
      case Op::select:
        for (const Use& use : v->inst->operands) any |= is_of_index(use.value, depth + 1);
        break;
      default: break;
    }
    return of_index_[v] = any;
  }

  Builder b_;
  Region* const root_;
  Ranges ranges_;
  size_t questions_ = 0;
  std::unordered_map<const Value*, bool> of_index_;
  std::vector<std::pair<Inst*, size_t>> chosen_;  ///< and which operand it is
  std::vector<std::pair<Inst*, bool>> answered_;
};

}  // namespace

void fold_ranges(Kernel& kernel, bool knows_trees) {
  for (Region* root : roots(kernel)) Folder(kernel, root, knows_trees).run();
}

}  // namespace quern::ir
