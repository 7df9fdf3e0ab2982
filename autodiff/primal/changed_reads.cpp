#include "autodiff/primal/changed_reads.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "autodiff/primal/iterations.h"
#include "ir/analysis/effects.h"
#include "ir/analysis/facts.h"

namespace quern::autodiff {

using namespace ir;

namespace {

std::string place(Loc loc) { return std::string(loc.file) + ":" + std::to_string(loc.line); }

/// What asks which elements of a tree are active reads none of them: about that tree_rules.h decides.
bool reads_element(const Inst* inst) {
  const bool asks = inst->is(Op::is_active) || inst->is(Op::empty_box) || inst->is(Op::length);
  return accesses_element(inst->op) && !asks && !is_write(inst) && !inst->results.empty();
}

class Finder {
 public:
  explicit Finder(const Kernel& kernel)
      : reads(), written(kernel.bindings.size(), false), kernel_(kernel), effects_(kernel) {
    walk(kernel.body, [&](Inst* inst) {
      const size_t number = order_.size();
      order_[inst] = number;
      if (inst->is(Op::put) || inst->is(Op::reduce)) puts_.push_back(inst);
      if (is_write(inst)) writes_.push_back(inst);
    });
    walk(kernel.body, [&](Inst* inst) {
      const bool is_read =
          inst->is(Op::get) ? changes(inst) : reads_element(inst) && is_behind(inst);
      if (is_read) reads.push_back(inst);
    });
  }

  std::vector<Inst*> reads;   ///< in program order
  std::vector<bool> written;  ///< of each binding: may what is written change what is read?

 private:
  /// An element of an array, unless all that is put there is put before anything is read, or a
  /// variable of an outer region that may have changed when the region is gone back through.
  bool changes(const Inst* get) const {
    const Value* slot = get->operand(0);
    if (slot->inst->imm > 1) return !is_filled_first(slot);
    if (slot->inst->parent == get->parent) return false;
    return std::ranges::any_of(
        puts_, [&](const Inst* put) { return put->operand(0) == slot && may_precede(get, put); });
  }

  /// Do all writes to an array stand before all reads, where it is made? It has what they have put
  /// from there on.
  static bool is_filled_first(const Value* slot) {
    const Region* home = slot->inst->parent;
    std::unordered_set<const Inst*> reads;
    for (const Use* use = slot->uses; use; use = use->next)
      if (!use->user->is(Op::put)) reads.insert(directly_in(home, use->user));
    bool is_read = false, is_filled = true;
    std::unordered_set<const Inst*> writes;
    for (const Use* use = slot->uses; use; use = use->next)
      if (use->user->is(Op::put)) writes.insert(directly_in(home, use->user));
    for (const Inst* inst : *home) {
      is_read |= reads.contains(inst);
      is_filled &= !is_read || !writes.contains(inst);
    }
    return is_filled;
  }
  static const Inst* directly_in(const Region* home, const Inst* inst) {
    while (inst->parent != home) inst = inst->parent->parent;
    return inst;
  }

  bool is_behind(const Inst* read) {
    bool behind = false;
    for (const Inst* write : writes_) {
      if (!may_reach(write, read)) continue;
      expect_ordered(write, read);
      behind = true;
      written[read->binding()] = written[write->binding()] = true;
    }
    return behind;
  }

  /// Between rounds and iterations indices vary: there those that differ by a constant may name the
  /// same element, which may_change does not know.
  bool may_reach(const Inst* write, const Inst* read) {
    if (!may_be_of_another_round(write, read))
      return order_.at(write) < order_.at(read) && effects_.may_change(write, read);
    const bool same_field = write->binding() == read->binding();
    return same_field ? write->component() == read->component() && !are_apart(write, read)
                      : effects_.may_overlap(write->binding(), read->binding());
  }

  bool may_precede(const Inst* first, const Inst* second) const {
    return order_.at(first) < order_.at(second) || may_be_of_another_round(first, second);
  }

  /// Are both in a loop in which one's rounds come before others of the other's?
  static bool may_be_of_another_round(const Inst* first, const Inst* second) {
    for (const Region* r = second->parent; r->parent; r = r->parent->parent) {
      const Inst* around = r->parent;
      const auto holds = [&](const Region* part) { return encloses(part, first->parent); };
      if (std::ranges::none_of(around->regions, holds)) continue;  // a While has two
      // What another iteration adds may come first; what it stores would be a race.
      if (around->is(Op::parallel) && first->is(Op::atomic)) return true;
      if (around->is(Op::loop) || around->is(Op::while_)) return true;
    }
    return false;
  }

  /// What other iterations of the same loop add depends on who is first, unless each has elements
  /// of its own.
  void expect_ordered(const Inst* write, const Inst* read) {
    const Inst* loop = parallel_around(read->parent);
    if (!write->is(Op::atomic) || !loop || loop != parallel_around(write->parent)) return;
    if (runs_once(loop) || are_own(write, read, loop)) return;
    throw Error(read->loc, kernel_.bindings[read->binding()].name +
                               " is read here while other iterations may add to it (at " +
                               place(write->loc) +
                               "), so what is read has no derivative: read it in another loop, or "
                               "where no other iteration adds to it write `x[i] = x[i] + v`");
  }

  static bool runs_once(const Inst* loop) {
    bool once = loop->options.over == no_binding;
    for (size_t k = 0; once && k < loop->region(0)->args.size(); k++) {
      const Inst *from = constant_of(loop->operand(2 * k)),
                 *to = constant_of(loop->operand(2 * k + 1));
      once = from && to && to_signed(to->imm, to->type()) - to_signed(from->imm, from->type()) <= 1;
    }
    return once;
  }

  /// Does no iteration come with one to an element that another comes to with the other?
  bool are_own(const Inst* write, const Inst* read, const Inst* loop) {
    if (write->binding() != read->binding()) return is_own(write, loop) && is_own(read, loop);
    auto& of = iterations_[loop];
    if (!of) of.emplace(kernel_, loop->region(0));
    // Along one axis each of the loop's indices alone decides, alike for both.
    const size_t count = loop->region(0)->args.size();
    for (size_t index = 0; index < count; index++) {
      const auto decides = [&](size_t axis) {
        const auto a = of->sum(write->operand(axis)), b = of->sum(read->operand(axis));
        if (!a || !b || *a != *b) return false;
        // What a round of a loop within has, another iteration may have in another round.
        for (const Affine::Term& term : a->shared.terms)
          if (of->is_inside(term.symbol)) return false;
        for (size_t k = 0; k < count; k++)
          if ((a->factors[k] != 0) != (k == index)) return false;
        return true;
      };
      bool is_decided = false;
      for (size_t axis = 0; axis < Effects::indices(read); axis++)
        is_decided = is_decided || decides(axis);
      if (!is_decided) return false;
    }
    return true;
  }

  /// Do the indices have each of the loop's, at its axis?
  static bool is_own(const Inst* access, const Inst* loop) {
    const Region* body = loop->region(0);
    if (body->args.size() > Effects::indices(access)) return false;
    for (size_t k = 0; k < body->args.size(); k++)
      if (access->operand(k) != body->arg(k)) return false;
    return true;
  }

  const Kernel& kernel_;
  Effects effects_;
  std::vector<const Inst*> writes_, puts_;
  std::unordered_map<const Inst*, std::optional<Iterations>> iterations_;  ///< by parallel loop
  std::unordered_map<const Inst*, size_t> order_;
};

}  // namespace

bool is_write(const Inst* inst) {
  return inst->is(Op::store) || (inst->is(Op::atomic) && inst->atomic() != AtomicOp::load);
}

const Inst* parallel_around(const Region* r) {
  for (; r->parent; r = r->parent->parent)
    if (r->parent->is(Op::parallel)) return r->parent;
  return nullptr;
}

bool are_apart(const Inst* a, const Inst* b) {
  for (size_t k = 0; k < std::min(Effects::indices(a), Effects::indices(b)); k++) {
    const Inst *x = a->operand(k)->inst, *y = b->operand(k)->inst;
    if (x && y && x->is(Op::constant) && y->is(Op::constant) && x->imm != y->imm) return true;
  }
  return false;
}

ChangedReads changed_reads(const Kernel& kernel) {
  Finder found(kernel);
  return {std::move(found.reads), std::move(found.written)};
}

}  // namespace quern::autodiff
