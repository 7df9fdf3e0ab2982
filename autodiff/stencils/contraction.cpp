#include "autodiff/stencils/contraction.h"

#include <algorithm>
#include <cstdlib>
#include <set>

#include "autodiff/stencils/stencil.h"
#include "ir/analysis/affine.h"
#include "ir/analysis/facts.h"
#include "ir/analysis/slice.h"

namespace quern::autodiff {

using namespace ir;

namespace {

constexpr size_t longest_code = 48;   ///< that is run once more for a summand
constexpr size_t shortest_code = 4;   ///< that is run once more, not to keep its value
constexpr size_t most_summands = 32;  ///< of one loop
constexpr size_t most_kept = 8;       ///< of an iteration, each in an array of all of them
constexpr int64_t most_stride = 2;    ///< from one iteration or round to the next
/// That move along an axis with the element: each element looks through all of them for its own,
/// however few iterations there are.
constexpr int64_t few_rounds = 16;

class Surveyor {
 public:
  Surveyor(const Kernel& kernel, const Inst* loop, bool everywhere)
      : kernel_(kernel),
        body_(loop->region(0)),
        everywhere_(everywhere),
        writes_primal_(writes_primal(kernel, body_)),
        invariant_(kernel, body_),
        indices_(indices_of(loop)),
        iteration_(slicer(values_of_indices())) {}

  std::vector<Contraction> run() {
    find_written_otherwise();
    survey(body_);
    return std::move(found_);
  }

 private:
  static std::vector<Index> indices_of(const Inst* loop) {
    std::vector<Index> all;
    for (const Value& index : loop->region(0)->args) all.push_back({&index, loop});
    return all;
  }
  static bool adds(const Inst* inst) {
    return inst->is(Op::atomic) && inst->atomic() == AtomicOp::add && !inst->used() &&
           is_float(inst->elem);
  }

  void find_written_otherwise() {
    walk(const_cast<Region*>(body_), [&](const Inst* inst) {
      if (accesses_element(inst->op) && !adds(inst)) otherwise_.insert(inst->binding());
    });
  }
  /// Does nobody else access the field's memory?
  bool is_alone(const Inst* atomic) const {
    const Binding& mine = kernel_.bindings[atomic->binding()];
    return std::ranges::none_of(otherwise_, [&](uint32_t other) {
      const Binding& b = kernel_.bindings[other];
      const bool apart = mine.alias_class && b.alias_class && mine.alias_class != b.alias_class;
      return b.companion == mine.companion && !apart;
    });
  }

  bool is_fixed(const Value* v) const {
    return !encloses(body_, v->inst ? v->inst->parent : v->region);
  }
  /// Is it the same in all iterations, and known outside of the loop? Reads in it may stand where
  /// something asks first whether there is anything to be read.
  bool is_shared(const Value* v) {
    if (is_fixed(v)) return true;
    const Slice slice = invariant_.of(v, longest_code);
    return slice && slice.is_pure();
  }

  // ---- where summands stand

  void survey(const Region* region) {
    for (Inst* inst : *region) {
      if (adds(inst) && kernel_.bindings[inst->binding()].is_derived()) survey_sum(inst);
      if (inst->is(Op::if_)) survey_branch(inst);
      if (inst->is(Op::loop)) survey_rounds(inst);
    }
  }
  void survey_branch(Inst* branch) {
    for (uint32_t side : {0u, 1u}) {
      conditions_.push_back({branch->operand(0), side == 1, branch->kind == sparing});
      survey(branch->region(side));
      conditions_.pop_back();
    }
  }
  void survey_rounds(const Inst* loop) {
    if (!is_shared(loop->operand(0)) || !is_shared(loop->operand(1)) ||
        !is_constant(loop->operand(2), 1))
      return;
    indices_.push_back({loop->region(0)->arg(0), loop});
    survey(loop->region(0));
    indices_.pop_back();
  }

  void survey_sum(Inst* atomic) {
    const bool in_rounds = indices_.size() > body_->args.size();
    if ((!in_rounds && !everywhere_) || !is_alone(atomic)) return;
    Contraction sums;
    Summand summand{atomic, conditions_, {}, {}, {}, {}};
    if (!find_own(summand, sums) || !are_sums(summand, sums) || !find_kept(summand)) return;
    std::set<const Value*> kept = kept_;
    kept.insert(summand.kept.begin(), summand.kept.end());
    if (kept.size() > most_kept) return;
    kept_ = std::move(kept);
    if (!summand.is_certain() || !is_at_own(summand)) sums.binding = atomic->binding();
    const auto known = std::ranges::find_if(found_, [&](const Contraction& c) {
      return c.own == sums.own && c.summed == sums.summed && c.binding == sums.binding &&
             (c.binding == no_binding || are_near(c, summand)) && c.summands.size() < most_summands;
    });
    Contraction& of = known != found_.end() ? *known : found_.emplace_back(std::move(sums));
    of.summands.push_back(std::move(summand));
  }

  /// Do its elements lie around those of the first summand? One loop runs over all of them.
  static bool are_near(const Contraction& c, const Summand& summand) {
    const Summand& first = c.summands[0];
    if (first.axes != summand.axes) return false;
    const auto shared = [&](Affine offset) {
      std::erase_if(offset.terms, [&](const Affine::Term& t) {
        return std::ranges::find(c.summed, t.symbol, &Index::value) != c.summed.end();
      });
      return offset;
    };
    for (size_t k = 0; k < first.offsets.size(); k++) {
      const Affine a = shared(first.offsets[k]), b = shared(summand.offsets[k]);
      if (a.terms != b.terms || std::abs(a.constant - b.constant) > few_rounds) return false;
    }
    return true;
  }

  /// Which index decides on each axis of the element: the first one there, times a stride, plus an
  /// offset. False: none does, or one does on two.
  bool find_own(Summand& summand, Contraction& sums) {
    for (uint32_t axis = 0; axis < kernel_.bindings[summand.atomic->binding()].rank; axis++) {
      const Value* v = summand.atomic->operand(axis);
      if (is_shared(v)) continue;
      Affine form = forms_.of(v);
      std::vector<Index> found;
      for (const Index& index : indices_)
        if (form.factor_of(index.value) != 0) found.push_back(index);
      if (found.empty()) return false;
      if (is_row_major(form)) {
        if (!find_several(v, found, summand, sums)) return false;
        continue;
      }
      const Value* own = found[0].value;
      const int64_t stride = form.factor_of(own);
      if (stride < 1 || stride > most_stride || has_own(sums, found[0])) return false;
      std::erase_if(form.terms, [&](const Affine::Term& t) { return t.symbol == own; });
      sums.own.push_back(found[0]);
      summand.axes.push_back(axis);
      summand.offsets.push_back(std::move(form));
      summand.strides.push_back(stride);
    }
    for (const Index& index : indices_)
      if (std::ranges::find(sums.own, index) == sums.own.end()) sums.summed.push_back(index);
    return !sums.own.empty() && sums.own.size() < Placement::max_axes;
  }

  static bool is_at_own(const Summand& summand) {
    for (size_t k = 0; k < summand.offsets.size(); k++)
      if (!summand.is_at(k)) return false;
    return true;
  }
  static bool has_own(const Contraction& sums, const Index& index) {
    return std::ranges::find(sums.own, index) != sums.own.end();
  }
  /// Is an index there times what others hardly reach, as in i · n + j?
  bool is_row_major(const Affine& form) const {
    return std::ranges::any_of(form.terms, [&](const Affine::Term& t) {
      const Index* index = index_of(t.symbol);
      return index && std::abs(t.factor) > most_stride;
    });
  }
  /// All of them are own then, and decide together.
  bool find_several(const Value* v, std::span<const Index> found, Summand& summand,
                    Contraction& sums) {
    std::vector<const Value*> given;
    for (const Index& index : found) {
      if (has_own(sums, index)) return false;
      given.push_back(index.value);
      sums.own.push_back(index);
      summand.axes.push_back(no_binding);
      summand.offsets.emplace_back();
      summand.strides.push_back(1);
    }
    const Slice slice = slicer(given).of(v, longest_code);
    return summand.is_certain() && slice && slice.is_pure();
  }

  /// Do several iterations, but not all, come to an element? Offsets are known then to who knows
  /// the summed indices.
  bool are_sums(const Summand& summand, const Contraction& sums) {
    bool moves = false;  // from round to round
    const auto is_usable = [&](const Affine::Term& t) {
      const auto index = std::ranges::find(sums.summed, t.symbol, &Index::value);
      if (index == sums.summed.end()) return is_shared(t.symbol);
      moves = true;
      return has_few_rounds(*index);
    };
    for (const Affine& offset : summand.offsets)
      if (!std::ranges::all_of(offset.terms, is_usable)) return false;
    const bool are_several = std::ranges::find(summand.axes, no_binding) != summand.axes.end();
    if (are_several && !is_at_own(summand)) return false;
    const bool is_partly_own = std::ranges::any_of(sums.own, &Index::is_parallel);
    return is_partly_own && !sums.summed.empty() && (moves || sums.summed[0].is_parallel());
  }
  static bool has_few_rounds(const Index& index) {
    const std::optional<int64_t> rounds = index.constant_rounds();
    return rounds && *rounds <= few_rounds;
  }

  const Index* index_of(const Value* v) const {
    const auto found = std::ranges::find(indices_, v, &Index::value);
    return found == indices_.end() ? nullptr : &*found;
  }

  // ---- how they are computed anew

  /// False: it cannot be computed anew.
  bool find_kept(Summand& summand) {
    std::vector<const Value*> computed;
    for (const Use& use : summand.atomic->operands) computed.push_back(use.value);
    for (const auto& condition : summand.conditions) computed.push_back(condition.value);
    std::set<const Value*> seen;
    std::vector<const Value*> open = computed;
    while (!open.empty()) {
      const Value* at = open.back();
      open.pop_back();
      if (!seen.insert(at).second) continue;
      if (seen.size() > 2 * longest_code) return false;
      switch (way_of(at)) {
        case Way::known: break;
        case Way::again:
          for (const Use& use : at->inst->operands) open.push_back(use.value);
          break;
        case Way::kept: summand.kept.push_back(const_cast<Value*>(at)); break;
        case Way::none: return false;
      }
    }
    std::vector<const Value*> given = values_of_indices();
    given.insert(given.end(), summand.kept.begin(), summand.kept.end());
    // What is kept in a branch that spares work is there only where that is taken.
    const auto is_always_kept = [&](const Value* v) { return v->inst->parent == body_; };
    if (!std::ranges::all_of(summand.kept, is_always_kept))
      for (Summand::Condition& condition : summand.conditions) condition.is_sparing = false;
    return bool(slicer(given).of(computed, longest_code));
  }

  /// How another place comes to a value: it is there, it is computed once more, the iteration keeps
  /// it; not at all.
  enum class Way { known, again, kept, none };

  Way way_of(const Value* v) {
    if (is_fixed(v)) return Way::known;
    if (!v->inst) return index_of(v) ? Way::known : Way::none;
    if (is_in_rounds(v->inst)) return can_repeat(v->inst) ? Way::again : Way::none;
    const Slice slice = iteration_.of(v, longest_code);
    const bool is_cheap =
        slice && slice.code.size() <= shortest_code && std::ranges::none_of(slice.code, costly);
    if (is_cheap || compares_with_constant(v->inst)) return Way::again;
    const bool can_be_kept = is_float(v->type) || v->type == Type::b1;
    return can_be_kept ? Way::kept : slice ? Way::again : Way::none;
  }
  /// Of a value that is often kept anyway: whether an adjoint is 0.
  static bool compares_with_constant(const Inst* inst) {
    return inst->type() == Type::b1 && inst->operand_count() == 2 && is_pure(inst->op) &&
           is_float(inst->operand(0)->type) && constant_of(inst->operand(1));
  }
  bool is_in_rounds(const Inst* inst) const {
    for (const Region* at = inst->parent; at != body_; at = at->parent->parent)
      if (!at->parent->is(Op::if_)) return true;
    return false;
  }
  /// Whatever its operands are.
  bool can_repeat(const Inst* inst) const {
    if (is_pure(inst->op)) return inst->regions.empty() && !can_fail(kernel_, inst);
    std::vector<const Value*> given;
    for (const Use& use : inst->operands) given.push_back(use.value);
    return slicer(given).repeatable(&inst->results[0]);
  }

  std::vector<const Value*> values_of_indices() const {
    std::vector<const Value*> all;
    for (const Index& index : indices_) all.push_back(index.value);
    return all;
  }
  /// One that takes fields of the primal to be as they were, where the loop writes derived ones
  /// alone: these are other memory.
  Slicer slicer(std::span<const Value* const> given) const {
    return {kernel_, body_, given, [this](const Inst* read) {
              return read->is(Op::load) && !writes_primal_ &&
                     !kernel_.bindings[read->binding()].is_derived();
            }};
  }

  const Kernel& kernel_;
  const Region* const body_;
  const bool everywhere_;
  const bool writes_primal_;
  Slicer invariant_;  ///< of what is the same in all iterations
  AffineForms forms_{AffineForms::through_conversions};
  std::set<uint32_t> otherwise_;
  std::vector<Index> indices_;  ///< of the loops around
  Slicer iteration_;            ///< of what is made once at most in an iteration
  std::vector<Summand::Condition> conditions_;
  std::vector<Contraction> found_;
  std::set<const Value*> kept_;  ///< for their summands
};

}  // namespace

std::optional<int64_t> Index::constant_rounds() const {
  if (is_parallel()) return std::nullopt;
  const Inst *lo = constant_of(loop->operand(0)), *hi = constant_of(loop->operand(1));
  if (!lo || !hi) return std::nullopt;
  return std::max<int64_t>(to_signed(hi->imm, hi->type()) - to_signed(lo->imm, lo->type()), 0);
}

std::vector<Contraction> contractions_of(const Kernel& kernel, const Inst* loop, bool everywhere) {
  return Surveyor(kernel, loop, everywhere).run();
}

}  // namespace quern::autodiff
