#include "autodiff/stencil.h"

#include <algorithm>
#include <array>
#include <set>

#include "ir/analysis/affine.h"

namespace quern::autodiff {

using namespace ir;

bool Term::is_exact() const { return std::ranges::find(exact, false) == exact.end(); }

namespace {

constexpr size_t longest_code = 48;  ///< that is run once more for a term

bool is_zero(const Value* v) {
  return v->inst && v->inst->is(Op::constant) && real_of(v->inst->imm, v->type) == 0;
}

class Surveyor {
 public:
  Surveyor(const Kernel& kernel, const Inst* loop)
      : kernel_(kernel), body_(loop->region(0)), slicer_(kernel, body_, indices()) {}

  std::vector<Stencil> run() {
    for (const Value* index : indices())
      if (!is_signed(index->type)) return {};
    survey(body_, true, false);
    std::erase_if(stencils_, [&](const Stencil& s) { return !is_alone(s) || !is_one(s); });
    return std::move(stencils_);
  }

 private:
  std::vector<const Value*> indices() const {
    std::vector<const Value*> all;
    for (const Value& index : body_->args) all.push_back(&index);
    return all;
  }
  bool is_fixed(const Value* v) const {
    return !encloses(body_, v->inst ? v->inst->parent : v->region);
  }
  /// Can another iteration compute it, cheaply?
  bool is_known(const Value* v) {
    if (is_fixed(v)) return true;
    const Slice slice = slicer_.of(v);
    return slice && slice.code.size() <= longest_code;
  }

  /// `straight`: an iteration comes there once at most.
  void survey(const Region* region, bool straight, bool in_branch) {
    for (Inst* inst : *region) {
      if (accesses_element(inst->op) && kernel_.bindings[inst->binding()].is_derived())
        survey(inst, straight, in_branch);
      for (const Region* r : inst->regions) survey(r, straight && inst->is(Op::if_), true);
    }
  }
  void survey(Inst* inst, bool straight, bool in_branch) {
    accessed_.insert(inst->binding());
    if (!inst->is(Op::atomic) || inst->atomic() != AtomicOp::add || inst->used()) {
      otherwise_.insert(inst->binding());
      return;
    }
    if (!straight || !is_float(inst->elem)) return;
    Term term;
    term.atomic = inst;
    term.in_branch = in_branch;
    Mapping mapping;
    if (!follow(term, mapping) || !find_kept(term)) return;
    auto known = std::ranges::find(stencils_, inst->binding(), &Stencil::binding);
    if (known == stencils_.end()) known = stencils_.insert(known, {inst->binding(), mapping, {}});
    if (known->mapping == mapping) known->terms.push_back(std::move(term));
  }

  bool follow(Term& term, Mapping& mapping) {
    const uint32_t rank = kernel_.bindings[term.atomic->binding()].rank;
    const size_t indices = body_->args.size();
    mapping.axes.assign(indices, no_binding);
    mapping.fixed.assign(rank, nullptr);
    term.offsets.assign(indices, 0);
    term.exact.assign(indices, true);
    for (uint32_t axis = 0; axis < rank; axis++) {
      Value* v = term.atomic->operand(axis);
      if (is_fixed(v)) {
        mapping.fixed[axis] = v;
        continue;
      }
      int64_t offset = 0;
      bool exact = true;
      const Value* index = followed(v, offset, exact);
      if (!index || mapping.axes[index->index] != no_binding) return false;
      mapping.axes[index->index] = axis;
      term.offsets[index->index] = offset;
      term.exact[index->index] = exact;
    }
    return std::ranges::find(mapping.axes, no_binding) == mapping.axes.end();
  }

  /// The index of the loop that the value is, plus an offset: in all iterations, or in those that a
  /// border does not change. The latter is a guess, as the code that is made asks where it is wrong.
  const Value* followed(const Value* v, int64_t& offset, bool& exact) {
    for (int depth = 0; depth < 16; depth++) {
      const Affine& form = forms_.of(v);
      const Value* base = form.base();
      if (!base || is_fixed(base)) return nullptr;
      offset += form.constant;
      if (!base->inst) return base->region == body_ ? base : nullptr;
      exact = false;
      const Inst* inst = base->inst;
      switch (inst->op) {
        case Op::convert:
        case Op::rem:
        case Op::bit_and: v = inst->operand(0); break;
        case Op::select: v = inst->operand(2); break;
        case Op::min:
        case Op::max: v = inst->operand(is_fixed(inst->operand(0)) ? 1 : 0); break;
        default: return nullptr;
      }
      if (!is_signed(v->type)) return nullptr;
    }
    return nullptr;
  }

  /// False where another iteration cannot compute what it has to.
  bool find_kept(Term& term) {
    std::vector<const Value*> computed, given = indices();
    if (term.in_branch) {
      term.kept = term.value();
    } else {
      peel(term);
      computed.push_back(term.value());
      for (size_t axis = 0; axis + 1 < term.atomic->operand_count(); axis++)
        computed.push_back(term.atomic->operand(axis));
    }
    if (term.kept) given.push_back(term.kept);
    term.code = Slicer(kernel_, body_, given).of(computed);
    return term.code && term.code.code.size() <= 2 * longest_code;
  }

  /// Terms that are multiples or choices of the same value need it alone.
  void peel(Term& term) {
    Value* v = term.value();
    if (v->inst && v->inst->is(Op::select) && is_zero(v->inst->operand(2)) &&
        is_known(v->inst->operand(0)))
      term.condition = v->inst->operand(0);
    while (!is_known(v)) {
      term.kept = v;
      const Inst* inst = v->inst;
      if (!inst || inst->parent != body_ ||
          !(inst->is(Op::neg) || inst->is(Op::mul) || inst->is(Op::select)))
        return;
      std::set<Value*> unknown;
      for (const Use& use : inst->operands)
        if (!is_known(use.value)) unknown.insert(use.value);
      if (unknown.size() != 1 || (*unknown.begin())->type != v->type) return;
      v = *unknown.begin();
    }
    term.kept = nullptr;
  }

  /// Does nobody else access the field's memory?
  bool is_alone(const Stencil& stencil) const {
    if (otherwise_.contains(stencil.binding)) return false;
    const Binding& mine = kernel_.bindings[stencil.binding];
    return std::ranges::none_of(accessed_, [&](uint32_t other) {
      const Binding& b = kernel_.bindings[other];
      const bool apart = mine.alias_class && b.alias_class && mine.alias_class != b.alias_class;
      return other != stencil.binding && b.companion == mine.companion && !apart;
    });
  }
  static bool is_one(const Stencil& s) {
    return std::ranges::any_of(
        s.terms, [&](const Term& t) { return t.offsets != s.terms[0].offsets || !t.is_exact(); });
  }

  const Kernel& kernel_;
  const Region* const body_;
  Slicer slicer_;
  AffineForms forms_;
  std::vector<Stencil> stencils_;
  std::set<uint32_t> accessed_, otherwise_;
};

}  // namespace

std::vector<Stencil> stencils_of(const Kernel& kernel, const Inst* loop) {
  return Surveyor(kernel, loop).run();
}

}  // namespace quern::autodiff
