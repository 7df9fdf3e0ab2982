#include "autodiff/stencil.h"

#include <algorithm>
#include <set>

#include "ir/analysis/affine.h"

namespace quern::autodiff {

using namespace ir;

namespace {

constexpr size_t longest_code = 48;  ///< that is run once more for a term
constexpr int deepest_border = 6;    ///< operations between an index and that of the loop

bool is_zero(const Value* v) {
  return v->inst && v->inst->is(Op::constant) && real_of(v->inst->imm, v->type) == 0;
}

class Surveyor {
 public:
  Surveyor(const Kernel& kernel, const Inst* loop)
      : kernel_(kernel),
        body_(loop->region(0)),
        slicer_(kernel, body_, indices()),
        invariant_(kernel, body_) {}

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
  /// Can it be computed cheaply for another element, which need not be an iteration?
  bool is_known(const Value* v) {
    if (is_fixed(v)) return true;
    const Slice slice = slicer_.of(v);
    return slice && slice.is_pure() && slice.code.size() <= longest_code;
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
    term.wrappings.assign(indices, {});
    bool goes_around = true;
    for (uint32_t axis = 0; axis < rank; axis++) {
      Value* v = term.atomic->operand(axis);
      if (is_fixed(v)) {
        mapping.fixed[axis] = v;
        continue;
      }
      Followed found = followed(v);
      const Value* index = found.index;
      if (!index || mapping.axes[index->index] != no_binding) return false;
      mapping.axes[index->index] = axis;
      term.offsets[index->index] = found.offset;
      if (found.questions.empty()) continue;
      for (Question& q : found.questions) term.questions.push_back(q);
      auto wrapping = wrapping_of(v, index, found.offset, forms_, [&](const Value* fixed) {
        return is_fixed(fixed) || invariant_.repeatable(fixed);
      });
      if (wrapping)
        term.wrappings[index->index] = std::move(*wrapping);
      else
        goes_around = false;
    }
    if (!goes_around || term.is_exact()) term.wrappings.clear();
    return std::ranges::find(mapping.axes, no_binding) == mapping.axes.end();
  }

  struct Followed {
    const Value* index = nullptr;  ///< of the loop, or null
    int64_t offset = 0;
    std::vector<Question> questions = {};
  };

  /// The index of the loop that the value is, plus an offset, where questions hold.
  Followed followed(const Value* v) {
    IndexSum sum;
    sum.add(forms_.of(v));
    return followed(sum, 0);
  }
  Followed followed(const IndexSum& sum, int depth) {
    const Value* varying = nullptr;
    for (const auto& [symbol, factor] : sum.terms) {
      if (is_fixed(symbol) || invariant_.repeatable(symbol)) continue;
      if (varying || factor != 1) return {};
      varying = symbol;
    }
    if (!varying) return {};
    if (!varying->inst) {
      const bool is_index = varying->region == body_ && sum.terms.size() == 1;
      return is_index ? Followed{varying, sum.constant} : Followed{};
    }
    if (depth > deepest_border) return {};
    for (const auto& [operand, questions] : without_border(varying->inst)) {
      IndexSum next = sum;
      next.terms.erase(varying);
      next.add(forms_.of(operand));
      Followed found = followed(next, depth + 1);
      if (!found.index) continue;
      found.questions.insert(found.questions.end(), questions.begin(), questions.end());
      return found;
    }
    return {};
  }
  /// Operands that the result is, and when.
  using Choices = std::vector<std::pair<const Value*, std::vector<Question>>>;
  Choices without_border(const Inst* inst) const {
    if (!is_signed(inst->type())) return {};
    const auto operand = [&](size_t k) { return inst->operand(k); };
    switch (inst->op) {
      case Op::select:
        return {{operand(1), {{Op::eq, operand(0), nullptr, false}}},
                {operand(2), {{Op::eq, operand(0), nullptr, true}}}};
      case Op::min:
        return {{operand(0), {{Op::le, operand(0), operand(1)}}},
                {operand(1), {{Op::ge, operand(0), operand(1)}}}};
      case Op::max:
        return {{operand(0), {{Op::ge, operand(0), operand(1)}}},
                {operand(1), {{Op::le, operand(0), operand(1)}}}};
      case Op::rem:
        return {{operand(0), {{Op::ge, operand(0), nullptr}, {Op::lt, operand(0), operand(1)}}}};
      default: return {};
    }
  }

  /// False where another iteration cannot compute what it has to.
  bool find_kept(Term& term) {
    std::vector<const Value*> fixed;
    for (const Wrapping& w : term.wrappings) {
      if (w.modulus) fixed.push_back(w.modulus);
      fixed.insert(fixed.end(), w.symbols.begin(), w.symbols.end());
    }
    term.around = invariant_.of(fixed);
    if (!term.around || !term.around.is_pure()) {
      term.wrappings.clear();
      term.around = {};
    }
    std::vector<const Value*> computed, given = indices();
    if (term.in_branch) {
      term.kept = term.value();
    } else {
      peel(term);
      computed.push_back(term.value());
      for (const Question& q : term.questions)
        for (const Value* v : {q.a, q.b})
          if (v) computed.push_back(v);
    }
    if (term.kept) given.push_back(term.kept);
    term.code = Slicer(kernel_, body_, given).of(computed);
    return term.code && term.code.is_pure() && term.code.code.size() <= 2 * longest_code;
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
  Slicer invariant_;  ///< of what is the same in all iterations
  AffineForms forms_;
  std::vector<Stencil> stencils_;
  std::set<uint32_t> accessed_, otherwise_;
};

}  // namespace

std::vector<Stencil> stencils_of(const Kernel& kernel, const Inst* loop) {
  return Surveyor(kernel, loop).run();
}

}  // namespace quern::autodiff
