#include "autodiff/stencils/stencil.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "ir/analysis/affine.h"
#include "ir/analysis/facts.h"

namespace quern::autodiff {

using namespace ir;

namespace {

constexpr size_t longest_code = 48;  ///< that is run once more for a term
constexpr int deepest_border = 6;    ///< operations between an index and that of the loop
constexpr size_t least_saved = 2;    ///< values that need not be kept, to compute terms anew

bool is_zero(const Value* v) {
  return v->inst && v->inst->is(Op::constant) && real_of(v->inst->imm, v->type) == 0;
}

class Surveyor {
 public:
  Surveyor(const Kernel& kernel, const Inst* loop)
      : kernel_(kernel),
        body_(loop->region(0)),
        writes_primal_(writes_primal(kernel, body_)),
        slicer_(slicer(indices())),
        invariant_(kernel, body_) {}

  std::vector<Stencil> run() {
    for (const Value* index : indices())
      if (!is_signed(index->type)) return {};
    survey(body_, true, false);
    for (Stencil& s : stencils_) keep_less(s);
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
    const Slice slice = slicer_.of(v, longest_code);
    return slice && slice.is_pure();
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
    if (term.in_branch) {
      term.kept = term.value();
      return true;
    }
    peel(term);
    term.code = code_from(term, term.kept, 2 * longest_code);
    return term.code && term.code.is_pure();
  }

  /// What computes the term from `kept`, with so many operations at most.
  Slice code_from(const Term& term, const Value* kept, size_t most) const {
    std::vector<const Value*> computed = {term.value()}, given = indices();
    for (const Question& q : term.questions)
      for (const Value* v : {q.a, q.b})
        if (v) computed.push_back(v);
    if (!term.is_exact())
      for (size_t k = 0; k + 1 < term.atomic->operand_count(); k++)
        computed.push_back(term.atomic->operand(k));
    if (kept) given.push_back(kept);
    return slicer(given).of(computed, most);
  }

  /// One that takes fields of the primal to be as they were, where the loop writes derived ones alone: these
  /// are other memory.
  Slicer slicer(std::span<const Value* const> given) const {
    return {kernel_, body_, given, [this](const Inst* read) {
              return read->is(Op::load) && !writes_primal_ &&
                     !kernel_.bindings[read->binding()].is_derived();
            }};
  }

  /// Where the terms of several values follow cheaply from fewer, and from what the loop reads and nobody
  /// writes, these are kept: what takes long, as the quotient by the length of a gradient.
  void keep_less(Stencil& stencil) {
    std::set<const Value*> kept, bases;
    std::vector<Value*> base(stencil.terms.size(), nullptr);
    for (size_t n = 0; n < stencil.terms.size(); n++) {
      const Term& t = stencil.terms[n];
      if (t.in_branch) return;
      if (t.kept) kept.insert(t.kept);
      std::set<Value*> leaves;
      if (!find_leaves(t.value(), leaves) || leaves.size() > 1) return;
      if (leaves.empty()) continue;
      base[n] = *leaves.begin();
      if (!is_float(base[n]->type) || !base[n]->inst || base[n]->inst->parent != body_) return;
      bases.insert(base[n]);
    }
    if (bases.size() + least_saved > kept.size()) return;
    std::vector<Slice> code;
    for (size_t n = 0; n < stencil.terms.size(); n++) {
      code.push_back(code_from(stencil.terms[n], base[n], longest_code));
      if (!code.back()) return;
    }
    for (size_t n = 0; n < stencil.terms.size(); n++) {
      stencil.terms[n].kept = base[n];
      stencil.terms[n].code = std::move(code[n]);
    }
  }

  /// How another iteration comes to a value: it is the same there; it reads or computes it once more,
  /// cheaply; it has to be kept; some of what it is made of has to be.
  enum class Way { same, again, kept, parts };

  Way way_of(const Value* v) const {
    const auto known = ways_.find(v);
    return is_fixed(v) ? Way::same : known == ways_.end() ? Way::kept : known->second;
  }

  void find_way(const Value* v) {
    const Inst* inst = v->inst;
    Way way = Way::kept;
    if (!inst) {
      way = v->region == body_ ? Way::again : Way::kept;
    } else if (inst->is(Op::load)) {
      way = slicer_.repeatable(v) ? Way::again : Way::kept;
    } else if (is_pure(inst->op) && inst->regions.empty() && !can_fail(kernel_, inst)) {
      const auto any = [&](Way one) {
        return std::ranges::any_of(inst->operands,
                                   [&](const Use& u) { return way_of(u.value) == one; });
      };
      if (!any(Way::again) && !any(Way::kept) && !any(Way::parts))
        way = Way::same;
      else if (!costly(inst))
        way = any(Way::parts) || (any(Way::again) && any(Way::kept)) ? Way::parts
              : any(Way::kept)                                       ? Way::kept
                                                                     : Way::again;
    }
    ways_[v] = way;
  }

  /// What has to be kept for the value. False: to make the value of it takes long.
  bool find_leaves(Value* v, std::set<Value*>& leaves) {
    std::vector<std::pair<Value*, bool>> open = {{v, false}};  // with operands done
    while (!open.empty()) {
      const auto [at, done] = open.back();
      open.pop_back();
      if (is_fixed(at) || ways_.contains(at)) continue;
      if (done || !at->inst) {
        find_way(at);
        continue;
      }
      open.push_back({at, true});
      if (is_pure(at->inst->op))
        for (const Use& use : at->inst->operands) open.push_back({use.value, false});
    }
    std::vector<Value*> made = {v};
    std::set<const Value*> seen;
    size_t operations = 0;
    while (!made.empty() && operations <= longest_code) {
      Value* at = made.back();
      made.pop_back();
      if (!seen.insert(at).second) continue;
      if (way_of(at) == Way::kept) leaves.insert(at);
      if (way_of(at) != Way::parts) continue;
      operations++;
      for (const Use& use : at->inst->operands) made.push_back(use.value);
    }
    return operations <= longest_code;
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
  const bool writes_primal_;
  std::unordered_map<const Value*, Way> ways_;
  Slicer slicer_;
  Slicer invariant_;  ///< of what is the same in all iterations
  AffineForms forms_;
  std::vector<Stencil> stencils_;
  std::set<uint32_t> accessed_, otherwise_;
};

}  // namespace

bool writes_primal(const Kernel& kernel, const Region* region) {
  bool writes = false;
  walk(const_cast<Region*>(region), [&](const Inst* inst) {
    if (!has(inst->op, flag::writes)) return;
    writes |= inst->is(Op::call) ||
              (accesses_element(inst->op) && !kernel.bindings[inst->binding()].is_derived());
  });
  return writes;
}

std::vector<Stencil> stencils_of(const Kernel& kernel, const Inst* loop) {
  return Surveyor(kernel, loop).run();
}

}  // namespace quern::autodiff
