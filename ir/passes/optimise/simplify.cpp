#include "ir/passes/optimise/simplify.h"

#include <unordered_map>
#include <vector>

#include "ir/analysis/facts.h"
#include "ir/passes/optimise/algebra.h"
#include "ir/passes/optimise/dead_code.h"

namespace quern::ir {

namespace {

const Value* low(const Inst* inst) {
  const Value *a = inst->operand(0), *b = inst->operand(1);
  return a < b ? a : b;
}
bool commutes(const Inst* inst) {
  return has(inst->op, flag::commutes) && inst->operand_count() == 2;
}

/// The instructions that later ones may be equal to. They leave in the reverse of the order they came
/// in, so that a place that becomes free again was the end of every search it is on.
class Shared {
 public:
  Shared() : places_(256) {}

  /// The one equal to `inst`, else `inst`, which is among them from now on.
  Inst* find_or_add(Inst* inst) {
    if (taken_.size() * 2 >= places_.size()) grow();
    const size_t h = hash(inst);
    size_t at = h & (places_.size() - 1);
    for (; places_[at].inst; at = (at + 1) & (places_.size() - 1))
      if (places_[at].hash == h && equal(places_[at].inst, inst)) return places_[at].inst;
    places_[at] = {inst, h};
    taken_.push_back(at);
    return inst;
  }

  size_t size() const { return taken_.size(); }
  void shrink(size_t size) {
    for (; taken_.size() > size; taken_.pop_back()) places_[taken_.back()] = {};
  }

 private:
  struct Place {
    Inst* inst = nullptr;
    size_t hash = 0;
  };

  /// The kind bit that does not count: where the first of two equal instructions is run, that is as
  /// asked or unasked as it was.
  static uint8_t unasked_of(const Inst* inst) {
    return info(inst->op).kind == KindUse::arithmetic ? unasked : 0;
  }

  /// Equal keys: equal results. Sites and locations do not count: of two equal instructions that
  /// fail the first one has reported the error.
  static size_t hash(const Inst* inst) {
    size_t h = size_t(inst->op) * 31 + size_t(inst->type());
    auto mix = [&](uint64_t v) { h = (h ^ v) * 0x9e3779b97f4a7c15u + (h >> 29); };
    mix(inst->imm);
    mix(uint64_t(inst->binding()) << 32 | inst->component());
    mix(inst->kind & ~unasked_of(inst));
    if (commutes(inst)) {
      mix(uintptr_t(low(inst)));
      mix(uintptr_t(inst->operand(0)) ^ uintptr_t(inst->operand(1)));
    } else {
      for (const Use& use : inst->operands) mix(uintptr_t(use.value));
    }
    return h ^ h >> 32;
  }

  static bool equal(const Inst* a, const Inst* b) {
    if (a->op != b->op || a->imm != b->imm || a->part != b->part ||
        (a->kind ^ b->kind) & ~unasked_of(a) || a->type() != b->type() ||
        a->operand_count() != b->operand_count())
      return false;
    if (commutes(a) && a->operand(0) == b->operand(1) && a->operand(1) == b->operand(0))
      return true;
    for (size_t k = 0; k < a->operand_count(); k++)
      if (a->operand(k) != b->operand(k)) return false;
    return true;
  }

  void grow() {
    std::vector<Place> old(places_.size() * 2);
    old.swap(places_);
    for (size_t& at : taken_) {
      const Place place = old[at];
      at = place.hash & (places_.size() - 1);
      while (places_[at].inst) at = (at + 1) & (places_.size() - 1);
      places_[at] = place;
    }
  }

  std::vector<Place> places_;  ///< open addressing; a power of two
  std::vector<size_t> taken_;  ///< in the order they came in
};

class Simplifier {
 public:
  explicit Simplifier(Kernel& kernel) : kernel_(kernel), b_(kernel) {}

  bool run(const std::vector<Region*>& roots) {
    for (Region* root : roots) scope([&] { visit(root); });
    return changed_;
  }

 private:
  // ---- what is known here

  template <class F>
  void scope(F&& inside) {
    size_t shared = shared_.size(), known = known_log_.size();
    inside();
    shared_.shrink(shared);
    for (; known_log_.size() > known; known_log_.pop_back()) known_.erase(known_log_.back());
  }

  /// Inside the current scope `condition` is `value`.
  void assume(Value* condition, bool value) {
    if (!known_.try_emplace(condition, value).second) return;
    known_log_.push_back(condition);
    const Inst* inst = condition->inst;
    if (!inst) return;
    if (inst->is(Op::bit_not)) assume(inst->operand(0), !value);
    if (inst->is(value ? Op::bit_and : Op::bit_or))
      for (const Use& use : inst->operands) assume(use.value, value);
  }

  void use_known(Inst* inst) {
    if (known_.empty()) return;
    for (size_t k = 0; k < inst->operand_count(); k++) {
      Value* v = inst->operand(k);
      if (v->type != Type::b1) continue;
      auto found = known_.find(v);
      if (found == known_.end()) continue;
      inst->set_operand(k, b_.before(inst).at(inst->loc).boolean(found->second));
      changed_ = true;
    }
  }

  // ---- the walk

  void visit(Region* region) {
    Inst* at = region->first;
    while (at) {
      Inst* before = at->prev;
      if (visit(at)) {
        // Whatever now stands here is looked at again; every rule makes less of what there was.
        changed_ = true;
        at = before ? before->next : region->first;
      } else {
        at = at->next;
      }
    }
  }

  /// True if the instruction is gone or has others in its place.
  bool visit(Inst* inst) {
    use_known(inst);
    if (inst->is(Op::if_)) return branch(inst);
    if (inst->is(Op::loop)) return loop(inst);
    if (inst->is(Op::while_)) return while_loop(inst);
    if (inst->is(Op::parallel)) return parallel(inst);
    if (inst->is(Op::check) && is_constant(inst->operand(0), 1)) {
      inst->erase();
      return true;
    }
    if (!is_pure(inst->op)) return false;
    Inst* before = inst->prev;
    b_.before(inst).at(inst->loc);
    if (Value* v = simpler(b_, kernel_, inst)) {
      for (Inst* made = before ? before->next : inst->parent->first; made != inst;
           made = made->next)
        inherit(made, inst);
      inst->result()->replace_with(v);
      inst->erase();
      return true;
    }
    Inst* first = shared_.find_or_add(inst);
    if (first == inst) return false;
    for (size_t k = 0; k < inst->results.size(); k++)
      inst->result(k)->replace_with(first->result(k));
    inst->erase();
    return true;
  }

  /// What takes the place of `inst` fails at its site and is contracted or not as it was.
  static void inherit(Inst* made, const Inst* inst) {
    if (has(made->op, flag::may_fail)) made->site = inst->site;
    if (is_flagged(made) && is_flagged(inst)) made->kind |= inst->kind;
  }
  static bool is_flagged(const Inst* inst) {
    return info(inst->op).rule == OperandRule::same && is_float(inst->type());
  }

  /// Replaces `inst` by the content of `region`, and its results by what the region yields from
  /// operand `first` on.
  void replace_by(Inst* inst, Region* region, size_t first) {
    for (size_t k = 0; k < inst->results.size(); k++)
      inst->result(k)->replace_with(region->last->operand(first + k));
    b_.before(inst);
    splice(b_, region);
    inst->erase();
  }

  bool branch(Inst* inst) {
    if (const Inst* c = constant_of(inst->operand(0))) {
      replace_by(inst, inst->region(c->imm ? 0 : 1), 0);
      return true;
    }
    Value* condition = inst->operand(0);
    if (inst->kind != rarely && condition->inst && condition->inst->is(Op::bit_not)) {
      inst->set_operand(0, condition->inst->operand(0));
      std::swap(inst->regions[0], inst->regions[1]);
      changed_ = true;
      condition = inst->operand(0);
    }
    for (bool value : {true, false}) {
      scope([&] {
        assume(condition, value);
        visit(inst->region(value ? 0 : 1));
      });
    }
    for (size_t k = 0; k < inst->results.size(); k++) {
      Value *yes = inst->region(0)->last->operand(k), *no = inst->region(1)->last->operand(k);
      if (!inst->result(k)->used()) continue;
      Value* same = yes == no ? yes : nullptr;
      if (is_truth(yes, 1) && is_truth(no, 0)) same = condition;
      if (is_truth(yes, 0) && is_truth(no, 1))
        same = b_.before(inst).at(inst->loc).unary(Op::bit_not, condition);
      if (!same) continue;
      inst->result(k)->replace_with(same);
      changed_ = true;
    }
    if (cheap(inst->region(0)) && cheap(inst->region(1))) {
      become_selects(inst);
      return true;
    }
    return false;
  }

  static bool is_truth(const Value* v, int64_t n) {
    return v->type == Type::b1 && is_constant(v, n);
  }

  /// May the region's content run unasked: nothing that can fail and next to no work?
  bool cheap(const Region* region) const {
    int work = 0;
    for (Inst* inst = region->first; inst != region->last; inst = inst->next) {
      if (!is_pure(inst->op) || costly(inst) || can_fail(kernel_, inst)) return false;
      if (!inst->is(Op::constant) && ++work > 3) return false;
    }
    return true;
  }

  void become_selects(Inst* inst) {
    std::vector<Value*> yes, no;
    for (const Use& use : inst->region(0)->last->operands) yes.push_back(use.value);
    for (const Use& use : inst->region(1)->last->operands) no.push_back(use.value);
    for (Region* r : inst->regions)  // cheap: there is nothing that may not be run so
      for (Inst* inside : *r)
        if (inside != r->last) run_unasked(kernel_, inside);
    b_.before(inst).at(inst->loc);
    splice(b_, inst->region(0));
    splice(b_, inst->region(1));
    for (size_t k = 0; k < yes.size(); k++)
      if (inst->result(k)->used())
        inst->result(k)->replace_with(b_.select(inst->operand(0), yes[k], no[k]));
    inst->erase();
  }

  // ---- loops

  /// A carried value that comes back as it went in is the value it started with.
  void resolve_invariant(Inst* inst) {
    bool counted = inst->is(Op::loop);
    size_t fixed = counted ? 3 : 0, first = counted ? 1 : 0;
    for (size_t k = 0; k < inst->results.size(); k++) {
      bool same = true;
      for (Region* r : inst->regions) {
        size_t skip = !counted && r == inst->region(0) ? 1 : 0;
        same = same && (r->last->operand(skip + k) == r->arg(first + k) ||
                        r->last->operand(skip + k) == inst->operand(fixed + k));
      }
      if (!same) continue;
      Value* start = inst->operand(fixed + k);
      for (Region* r : inst->regions) changed_ = replace(r->arg(first + k), start) || changed_;
      changed_ = replace(inst->result(k), start) || changed_;
    }
  }

  static bool replace(Value* old, Value* by) {
    if (!old->used()) return false;
    old->replace_with(by);
    return true;
  }

  bool less(Value* a, Value* b, bool& known) const {
    if (a == b) return known = true, false;
    const Inst *ca = constant_of(a), *cb = constant_of(b);
    known = ca && cb;
    return known && below(a->type, ca->imm, cb->imm);
  }
  static bool below(Type t, Bits a, Bits b) {
    return is_signed(t) ? to_signed(a, t) < to_signed(b, t) : a < b;
  }

  bool loop(Inst* inst) {
    bool known = false;
    bool enters = less(inst->operand(0), inst->operand(1), known);
    if (known && !enters) {
      for (size_t k = 0; k < inst->results.size(); k++)
        inst->result(k)->replace_with(inst->operand(3 + k));
      inst->erase();
      return true;
    }
    if (known && runs_once(inst)) {
      Region* body = inst->region(0);
      body->arg(0)->replace_with(inst->operand(0));
      for (size_t k = 0; k < inst->results.size(); k++)
        body->arg(1 + k)->replace_with(inst->operand(3 + k));
      replace_by(inst, body, 0);
      return true;
    }
    resolve_invariant(inst);
    scope([&] { visit(inst->region(0)); });
    resolve_invariant(inst);
    return false;
  }

  /// Bounds are constants and the loop is entered: does it end after one round?
  bool runs_once(Inst* inst) const {
    const Inst *lo = constant_of(inst->operand(0)), *hi = constant_of(inst->operand(1)),
               *step = constant_of(inst->operand(2));
    if (!step) return false;
    Type t = inst->operand(0)->type;
    Bits next = truncate(lo->imm + step->imm, t);
    return !below(t, lo->imm, next) || !below(t, next, hi->imm);
  }

  bool while_loop(Inst* inst) {
    resolve_invariant(inst);
    Region *condition = inst->region(0), *body = inst->region(1);
    scope([&] { visit(condition); });
    if (is_constant(condition->last->operand(0), 0)) {
      for (size_t k = 0; k < inst->results.size(); k++)
        condition->arg(k)->replace_with(inst->operand(k));
      replace_by(inst, condition, 1);
      return true;
    }
    pass_outer_values(inst);
    scope([&] {
      // The body runs where the condition held, and so does what follows from it.
      assume(condition->last->operand(0), true);
      for (size_t k = 0; k < inst->results.size(); k++) {
        auto found = known_.find(condition->last->operand(1 + k));
        if (found != known_.end()) assume(body->arg(k), found->second);
      }
      visit(body);
    });
    resolve_invariant(inst);
    return false;
  }

  /// What the condition yields from outside the loop the body and the code after it may use
  /// directly.
  void pass_outer_values(Inst* inst) {
    Region *condition = inst->region(0), *body = inst->region(1);
    for (size_t k = 0; k < inst->results.size(); k++) {
      Value* v = condition->last->operand(1 + k);
      Region* home = v->inst ? v->inst->parent : v->region;
      if (home == condition || !encloses(home, inst->parent)) continue;
      changed_ = replace(body->arg(k), v) || changed_;
      changed_ = replace(inst->result(k), v) || changed_;
    }
  }

  bool parallel(Inst* inst) {
    for (size_t k = 0; k + 1 < inst->operand_count(); k += 2) {
      bool known = false;
      bool enters = less(inst->operand(k), inst->operand(k + 1), known);
      if (known && !enters) {
        inst->erase();
        return true;
      }
    }
    scope([&] { visit(inst->region(0)); });
    return false;
  }

  Kernel& kernel_;
  Builder b_;
  Shared shared_;
  std::unordered_map<Value*, bool> known_;
  std::vector<Value*> known_log_;
  bool changed_ = false;
};

void simplify(Kernel& kernel, const std::vector<Region*>& roots) {
  for (int round = 0; round < 3; round++) {
    bool changed = Simplifier(kernel).run(roots);
    for (Region* root : roots) changed = dead_code(kernel, root) || changed;
    if (!changed) return;
  }
}

}  // namespace

void simplify(Kernel& kernel) { simplify(kernel, roots(kernel)); }
void simplify_root(Kernel& kernel, Region* root) { simplify(kernel, std::vector{root}); }

}  // namespace quern::ir
