#include "autodiff/primal/iterations.h"

#include <algorithm>
#include <cstdlib>
#include <set>

namespace quern::autodiff {

using namespace ir;

namespace {

constexpr int deepest = 64;               ///< operations looked back
constexpr int64_t furthest = 1ll << 40;   ///< iterations that are looked at, one from the other
constexpr int64_t furthest_in_a_sum = 2;  ///< the same along an axis that shares an index
constexpr size_t most_in_sums = 3;        ///< axes that do

int64_t difference(int64_t a, int64_t b) { return int64_t(uint64_t(a) - uint64_t(b)); }

}  // namespace

int64_t Sum::change(const Step& step) const {
  uint64_t sum = 0;
  for (size_t k = 0; k < step.size(); k++) sum += uint64_t(factors[k]) * uint64_t(step[k]);
  return int64_t(sum);
}

// ---- numbers

Iterations::Iterations(const Kernel& kernel, const Region* region)
    : body(region), uniform_(kernel, region), forms_(AffineForms::through_conversions) {}

bool Iterations::is_inside(const Value* v) const {
  return encloses(body, v->inst ? v->inst->parent : v->region);
}

std::optional<Sum> Iterations::sum(const Value* v) {
  Sum out{std::vector<int64_t>(body->args.size(), 0), {}};
  const Affine& form = forms_.of(v);
  out.shared.constant = form.constant;
  for (const Affine::Term& term : form.terms) {
    if (term.symbol->region == body)
      out.factors[term.symbol->index] = term.factor;
    else if (is_shared(term.symbol))
      out.shared.terms.push_back(term);
    else
      return std::nullopt;
  }
  return out;
}

bool Iterations::is_shared(const Value* v) {
  if (!v->region || !is_inside(v)) return uniform_(v);
  const Inst* loop = v->region->parent;
  return v->index == 0 && loop && loop->is(Op::loop) && has_shared_rounds(loop);
}

bool Iterations::has_shared_rounds(const Inst* loop) {
  return is_shared(loop->operand(0)) && is_shared(loop->operand(1)) && is_shared(loop->operand(2));
}

// ---- meetings

namespace {

class Meetings {
 public:
  Meetings(const std::vector<Sum>& a, const std::vector<Sum>& b, size_t axes)
      : a_(a), b_(b), axes_(axes) {}

  std::vector<Meeting> run() {
    for (size_t d = 0; d < a_.size(); d++) {
      if (a_[d].shared.terms != b_[d].shared.terms) return {};
      if (terms(a_[d]) + terms(b_[d]) == 0 && apart(d) != 0) return {};
    }
    meeting_ = {Step(axes_, 0), std::vector<std::optional<int64_t>>(axes_)};
    is_known_.assign(axes_, false);
    is_in_sum_.assign(axes_, false);
    for (size_t d = 0; d < a_.size(); d++)
      if (!(a_[d].factors == b_[d].factors ? follow(d) : fix(d))) return {};
    for (size_t k = 0; k < axes_; k++) {
      if (meeting_.at[k] && (is_known_[k] || is_in_sum_[k])) return {};
      if (meeting_.at[k]) meeting_.step[k] = 1;
      if (!is_known_[k] && !meeting_.at[k]) (is_in_sum_[k] ? open_ : free_).push_back(k);
    }
    if (open_.size() <= most_in_sums) try_all(0);
    return std::move(found_);
  }

 private:
  size_t terms(const Sum& sum) const { return axes_ - size_t(std::ranges::count(sum.factors, 0)); }
  int64_t apart(size_t d) const { return difference(a_[d].shared.constant, b_[d].shared.constant); }

  /// apart / factor, if that is a whole number of reasonable size.
  static std::optional<int64_t> quotient(int64_t apart, int64_t factor) {
    if (std::abs(apart / 2) >= furthest || apart % factor != 0) return std::nullopt;
    return apart / factor;
  }

  /// Where both are the same sum but for its constant, these say how far the iterations are apart.
  bool follow(size_t d) {
    for (size_t k = 0; k < axes_; k++) {
      const int64_t factor = a_[d].factors[k];
      if (factor == 0) continue;
      if (terms(a_[d]) > 1) {
        is_in_sum_[k] = true;
        continue;
      }
      const std::optional<int64_t> step = quotient(apart(d), factor);
      if (!step) return false;
      meeting_.step[k] = *step;
      is_known_[k] = true;
    }
    return true;
  }

  /// Where one is a multiple of an index, and the other the same in all iterations.
  bool fix(size_t d) {
    if (terms(a_[d]) + terms(b_[d]) != 1) return false;
    const bool is_first = terms(a_[d]) == 1;
    const std::vector<int64_t>& factors = (is_first ? a_ : b_)[d].factors;
    const auto k =
        size_t(std::ranges::find_if(factors, [](int64_t f) { return f != 0; }) - factors.begin());
    const auto at = quotient(is_first ? difference(0, apart(d)) : apart(d), factors[k]);
    if (!at || (meeting_.at[k] && meeting_.at[k] != at)) return false;
    meeting_.at[k] = at;
    return true;
  }

  void try_all(size_t n) {
    Step& step = meeting_.step;
    if (n < open_.size()) {
      for (int64_t s = -furthest_in_a_sum; s <= furthest_in_a_sum; s++) {
        step[open_[n]] = s;
        try_all(n + 1);
      }
      return;
    }
    for (size_t d = 0; d < a_.size(); d++)
      if (a_[d].factors == b_[d].factors && a_[d].change(step) != apart(d)) return;
    if (std::ranges::any_of(step, [](int64_t s) { return s != 0; }))
      return found_.push_back(meeting_);
    for (size_t k : free_) {
      found_.push_back(meeting_);
      found_.back().step[k] = 1;
    }
  }

  const std::vector<Sum>&a_, &b_;
  const size_t axes_;
  Meeting meeting_;
  std::vector<bool> is_known_, is_in_sum_;
  std::vector<size_t> open_, free_;
  std::vector<Meeting> found_;
};

}  // namespace

std::vector<Meeting> meetings(const std::vector<Sum>& a, const std::vector<Sum>& b, size_t axes) {
  return Meetings(a, b, axes).run();
}

// ---- values

bool Comparison::differ(const Value* a, const Value* b, int depth) {
  if (a == b) return varies(a);
  if (depth > deepest) return false;
  if (const auto known = known_.find({a, b}); known != known_.end()) return known->second;
  const bool found = are_other(a, b, depth);
  known_[{a, b}] = found;
  return found;
}

bool Comparison::are_other(const Value* a, const Value* b, int depth) {
  const Inst *x = a->inst, *y = b->inst;
  const bool are_loads = x && y && x->is(Op::load) && y->is(Op::load);
  if (!is_float(a->type) && !are_loads) {
    const std::optional<Sum> from = iterations_.sum(a), to = iterations_.sum(b);
    if (!from || !to) return false;
    if (from->factors != to->factors || from->shared.terms != to->shared.terms) return true;
    return to->change(step_) != difference(from->shared.constant, to->shared.constant);
  }
  const auto is_comparable = [](const Inst* inst) {
    return inst && inst->regions.empty() && !has(inst->op, flag::slots);
  };
  if (!is_comparable(x) || !is_comparable(y)) return false;
  if (x->op != y->op || a->type != b->type || x->imm != y->imm || a->index != b->index ||
      x->operand_count() != y->operand_count())
    return true;
  const bool are_elements = accesses_element(x->op);
  if (are_elements ? places_.first(x->part) != places_.first(y->part) : x->part != y->part)
    return !are_elements || !places_.may_overlap(x->part, y->part);
  const auto differ_at = [&](size_t k, size_t n) {
    return differ(x->operand(k), y->operand(n), depth + 1);
  };
  if (has(x->op, flag::commutes) && !differ_at(0, 1) && !differ_at(1, 0)) return false;
  for (size_t k = 0; k < x->operand_count(); k++)
    if (differ_at(k, k)) return true;
  return false;
}

namespace {
constexpr int deepest_bits = 8;  ///< operations on random bits

bool is_drawn(const Inst* inst, int depth = 0) {
  if (!inst || !is_pure(inst->op) || depth > deepest_bits) return false;
  return inst->is(Op::random) || std::ranges::any_of(inst->operands, [&](const Use& use) {
           return is_drawn(use.value->inst, depth + 1);
         });
}

/// May it be the same of different operands, as i / 4 is? Random numbers hardly are.
bool is_many_to_one(const Inst* inst) {
  return !inst->operands.empty() && is_pure(inst->op) && !is_float(inst->type()) && !is_drawn(inst);
}
}  // namespace

/// Does it depend on something that differs?
bool Comparison::varies(const Value* v) {
  std::vector<const Value*> open = {v};
  std::set<const Value*> seen;
  std::set<const Inst*> entered;
  const auto push_operands = [&](const Inst* inst) {
    for (const Use& use : inst->operands) open.push_back(use.value);
  };
  while (!open.empty()) {
    const Value* at = open.back();
    open.pop_back();
    if (!iterations_.is_inside(at) || !seen.insert(at).second) continue;
    const Inst* inst = at->inst ? at->inst : at->region->parent;
    if (is_int(at->type))
      if (const std::optional<Sum> sum = iterations_.sum(at)) {
        if (sum->change(step_) != 0) return true;
        continue;
      }
    if (!entered.insert(inst).second || is_many_to_one(inst)) continue;
    const bool is_old_value = inst->is(Op::atomic) && inst->atomic() != AtomicOp::load;
    if (inst->is(Op::iteration) || inst->is(Op::call_number) || is_old_value) return true;
    push_operands(inst);
    for (Region* r : inst->regions)
      walk(r, [&](const Inst* inner) {
        if (!inner->results.empty() || has(inner->op, flag::ends)) push_operands(inner);
      });
    if (inst->is(Op::slot))  // what is put there, wherever that is
      for (const Use* use = at->uses; use; use = use->next)
        if (use->user->is(Op::put)) push_operands(use->user);
  }
  return false;
}

}  // namespace quern::autodiff
