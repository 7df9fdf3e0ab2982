#include "autodiff/reverse/pull.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "autodiff/plans/wanted.h"
#include "autodiff/primal/combined.h"
#include "autodiff/reverse/declared.h"
#include "autodiff/reverse/free_sums.h"
#include "autodiff/rules/rules.h"
#include "quern/ir/builder.h"

namespace quern::autodiff {

using namespace ir;

namespace {

class Puller {
 public:
  Puller(const Primal& primal, Reverse& out)
      : primal_(primal.kernel),
        out_(out),
        kernel_(*out.kernel),
        b_(kernel_),
        active_(primal.active),
        slopes_(primal.slopes),
        logged_(primal.logged),
        plans_(primal.plans),
        trees_(primal.trees),
        further_(primal.further),
        number_(primal.number),
        declared_(declare(primal, out)),
        values_(primal_, logged_, plans_, b_, primal.sites, declared_.sites) {}

  void run() {
    kernel_.body = b_.make_region();
    b_.at_end(kernel_.body).at(kernel_.loc);
    const bool at_once = out_.yields_values && reduces_at_once();
    const bool has_any_part = has_part(primal_, active_);
    if (at_once) values_.leave_loops_out();
    values_.add_to(number_);
    values_.regroup(free_sums(primal_, out_.yields_values, number_));
    if (has_any_part || out_.yields_values) values_.record(primal_.body);
    for (uint32_t k : out_.scalars) scalar_[k] = b_.slot(type_of(k));
    prepare(primal_.body);
    uint32_t seed = declared_.first_seed;
    for (const Use& use : primal_.body->terminator()->operands)
      if (is_float(use.value->type)) {
        const uint32_t binding = seed++;
        if (active_(use.value))
          accumulate(use.value, b_.param(binding, derivative_type(use.value->type)));
      }
    if (has_any_part) back(primal_.body);
    values_.check_rows(kernel_);
    std::vector<Value*> results;
    if (out_.yields_values) {
      if (at_once) values_.finish(primal_.body);
      results = values_.operands_now(primal_.body->terminator());
      kernel_.results = primal_.results;
    }
    for (uint32_t k : out_.scalars) {
      results.push_back(b_.get(scalar_[k]));
      kernel_.results.push_back(type_of(k));
    }
    b_.yield(results);
  }

 private:
  /// May the loop that goes back compute what the primal's only loop reduces, as nobody wants that
  /// before?
  bool reduces_at_once() const {
    const Inst* loop = nullptr;
    for (const Inst* inst : *primal_.body) {
      if (inst->is(Op::parallel) && std::exchange(loop, inst)) return false;
      if (!inst->is(Op::parallel) && (!inst->regions.empty() || (loop && inst->is(Op::put))))
        return false;
    }
    const Wanted wanted(primal_, {primal_.body}, active_, slopes_, logged_,
                        [](const Inst*) { return false; });
    for (const Inst* inst : *primal_.body)
      if (inst->is(Op::get) && wanted(inst->result())) return false;
    return loop != nullptr;
  }

  Type type_of(uint32_t scalar) const {
    return derivative_type(primal_.bindings[scalar].components[0].type);
  }

  // ---- adjoints of values

  struct Adjoint {
    Value* slot = nullptr;
    const Region* home = nullptr;  ///< of the primal, where the value is
    bool of_kernel = false;        ///< made outside of parallel loops
    bool is_zero = true;           ///< nothing was added yet
    /// A branch directly at home in whose first region all of it comes from, if so: elsewhere it is
    /// zero.
    const Inst* only_in = nullptr;
  };

  /// Slots for what is active directly in the region.
  void prepare(const Region* region) {
    const auto add = [&](const Value* v, Type type, uint64_t count) {
      if (!active_(v)) return;
      adjoints_[v] = {b_.slot(derivative_type(type), count), region, !is_parallel_, true};
    };
    for (const Value& arg : region->args) add(&arg, arg.type, 1);
    for (const Inst* inst : *region)
      for (const Value& v : inst->results)
        inst->is(Op::slot) ? add(&v, inst->elem, inst->imm) : add(&v, v.type, 1);
  }

  Value* adjoint_of(const Value* v) const { return adjoints_.at(v).slot; }

  void accumulate(const Value* v, Value* t) {
    Adjoint& to = adjoints_.at(v);
    const Inst* only_in = to.home == here_ ? only_in_ : branch_at(to.home);
    const bool is_first = std::exchange(to.is_zero, false);
    to.only_in = is_first || to.only_in == only_in ? only_in : nullptr;
    const bool once = is_once(to.home);
    add_to(to.slot, t, to.of_kernel, is_first && once, !once);
  }

  /// Is what one goes back through run once at most in a run of that region?
  bool is_once(const Region* home) const {
    const Region* r = here_;
    while (r && r != home) r = r->parent && r->parent->is(Op::if_) ? r->parent->parent : nullptr;
    return r != nullptr;
  }

  /// The branch directly in that region in whose first region one is.
  const Inst* branch_at(const Region* home) const {
    if (!is_once(home)) return nullptr;
    const Region* r = here_;
    while (r->parent->parent != home) r = r->parent->parent;
    return r == r->parent->region(0) ? r->parent : nullptr;
  }

  /// Has the value an adjoint that is not zero for certain, behind all that uses it?
  bool has_adjoint(const Value* v) const { return active_(v) && !adjoints_.at(v).is_zero; }

  /// The same where the value varies.
  void give(const Value* v, Value* t) {
    if (t && active_(v)) accumulate(v, t);
  }
  /// The adjoint that it has by now; null: it does not vary.
  Value* known(const Value* v) { return active_(v) ? b_.get(adjoint_of(v)) : nullptr; }

  /// What the rounds of a loop add has no order where derivatives need not have the same bits.
  void add_to(Value* slot, Value* t, bool of_kernel, bool is_zero, bool in_rounds = false) {
    if (of_kernel && is_parallel_) {
      Inst* made = b_.make(Op::reduce, {}, {slot, t});
      made->elem = t->type;
      made->kind = uint8_t(AtomicOp::add);
      return;
    }
    Value* sum = is_zero ? t : b_.add(b_.get(slot), t);
    if (in_rounds) sum->inst->kind |= reassociate;
    b_.put(slot, sum);
  }

  // ---- going back

  void back(const Region* region) {
    const Region* around = std::exchange(here_, region);
    const Inst* inst = region->last;
    while (inst) {
      const Inst* branch = in_loop(region) ? branch_of(inst) : nullptr;
      if (branch && adds_to_elements(branch)) {
        inst = back_where(branch, inst);
        continue;
      }
      only_in_ = branch_of(inst);
      if (!has(inst->op, flag::ends)) back(inst);
      only_in_ = nullptr;
      inst = inst->prev;
    }
    here_ = around;
  }

  static bool in_loop(const Region* region) {
    return region->parent && (region->parent->is(Op::loop) || region->parent->is(Op::while_));
  }

  static bool is_plain(const Inst* inst) {
    return inst->is(Op::load) || (inst->results.size() == 1 && inst->regions.empty() &&
                                  info(inst->op).rule != OperandRule::special);
  }

  /// Does going back through it do nothing?
  bool is_passed_over(const Inst* inst) const {
    return is_plain(inst) && !has_adjoint(inst->result());
  }

  /// The branch where alone going back through it does something, if that is so.
  const Inst* branch_of(const Inst* inst) const {
    if (!is_plain(inst) || !has_adjoint(inst->result())) return nullptr;
    return adjoints_.at(inst->result()).only_in;
  }

  /// Are there elements, read before the branch, that going back adds to?
  bool adds_to_elements(const Inst* branch) const {
    for (const Inst* inst = branch->prev; inst; inst = inst->prev)
      if (inst->is(Op::load) && active_(inst->result())) return true;
    return false;
  }

  /// Goes back from `inst` on as long as that adds nothing where the branch was not taken: a pair too
  /// far apart to meet adds to no element. Comes back with what is left.
  const Inst* back_where(const Inst* branch, const Inst* inst) {
    const Region* region = here_;
    only_where(values_.now(branch->operand(0)), [&] {
      here_ = region;
      only_in_ = branch;
      for (; inst && (is_passed_over(inst) || branch_of(inst) == branch); inst = inst->prev)
        back(inst);
      only_in_ = nullptr;
    });
    return inst;
  }

  void back(const Inst* inst) {
    b_.at(inst->loc);
    switch (inst->op) {
      case Op::parallel:
        is_parallel_ = true;
        values_.parallel(inst, [&] {
          values_.log(inst->region(0));
          values_.record(inst->region(0));
          prepare(inst->region(0));
          back(inst->region(0));
        });
        is_parallel_ = false;
        return;
      case Op::if_: return back_branch(inst);
      case Op::loop:
      case Op::while_: return back_loop(inst);
      case Op::load: return back_load(inst);
      case Op::store: return back_store(inst);
      case Op::atomic: return back_atomic(inst);
      case Op::slot: return;
      case Op::get: return back_get(inst);
      case Op::put: return back_put(inst);
      case Op::reduce: return back_reduce(inst);
      case Op::param:
        if (active_(inst->result())) add_to(scalar_[inst->binding()], taken(inst), true, false);
        return;
      case Op::apply: return back_applied(inst);
      case Op::bitcast:
        if (active_(inst->operand(0)))
          refuse(inst, "the bits of a float that varies", "it is nowhere smooth");
        return;
      default: return back_operation(inst);
    }
  }

  Value* taken(const Inst* inst) { return b_.get(adjoint_of(inst->result())); }

  void back_operation(const Inst* inst) {
    if (inst->results.empty() || !has_adjoint(inst->result())) return;
    Value* adjoint = taken(inst);
    const Type type = derivative_type(inst->type());
    if (inst->is(Op::convert)) {
      const Value* from = inst->operand(0);
      return accumulate(from, b_.convert(adjoint, derivative_type(from->type)));
    }
    const auto term_of = [&](Value* built) {
      if (!built || built == adjoint || !(inst->kind & unasked)) return built;
      if (built->inst->is(Op::mul)) built->inst->kind |= unasked;  // for who goes forward from here
      return zero_with(b_, adjoint, built, further_);
    };
    if (const auto slope = slopes_.find(inst); slope != slopes_.end())
      return accumulate(inst->operand(0), term_of(b_.mul(adjoint, values_.now(slope->second))));
    const auto widened = [&](const Value* v) {
      return is_float(v->type) ? b_.convert(values_.now(v), type) : values_.now(v);
    };
    std::vector<Value*> operands;
    for (const Use& use : inst->operands) operands.push_back(widened(use.value));
    Value* result = widened(inst->result());
    // Terms of the same value are added first: those of x / x cancel, whatever they are added to.
    std::vector<std::pair<const Value*, Value*>> terms;
    for (size_t k = 0; k < operands.size(); k++) {
      if (!active_(inst->operand(k))) continue;
      Value* term = term_of(chain(b_, inst->op, operands, result, k, adjoint, further_));
      if (!term) continue;
      const auto known =
          std::ranges::find(terms, inst->operand(k), [](auto& t) { return t.first; });
      if (known == terms.end())
        terms.emplace_back(inst->operand(k), term);
      else
        known->second = b_.add(known->second, term);
    }
    for (const auto& [to, term] : terms) accumulate(to, term);
  }

  /// By the function's pullback.
  void back_applied(const Inst* inst) {
    bool varies = false;
    for (const Value& v : inst->results) varies |= has_adjoint(&v);
    if (!varies) return;
    const Function* rule = rule_of(kernel_, inst, Direction::back);
    if (!rule) refuse(inst, "a function without a pullback", "give it one with its pushforward");
    std::vector<Value*> values = values_.operands_now(inst);
    for (const Value& v : inst->results) values.push_back(values_.now(&v));
    for (const Value& v : inst->results)
      if (is_float(v.type)) values.push_back(known(&v));
    const std::vector<Value*> given = build_rule(b_, *rule, values);
    size_t n = 0;
    for (const Use& use : inst->operands)
      if (is_float(use.value->type) && n < given.size()) give(use.value, given[n++]);
  }

  void back_branch(const Inst* inst) {
    Value* condition = values_.now(inst->operand(0));
    Region* regions[2];
    const Region* around = std::exchange(here_, nullptr);
    for (size_t n = 0; n < 2; n++) {
      const Region* r = inst->region(n);
      regions[n] = values_.inside(r, [&] {
        if (!plans_.kept_in(r).empty()) values_.restore(r);
        values_.region(r, Replay::recording);
        here_ = r;
        prepare(r);
        for (size_t k = 0; k < inst->results.size(); k++)
          if (has_adjoint(inst->result(k)))
            give(r->terminator()->operand(k), known(inst->result(k)));
        back(r);
        b_.yield();
      });
    }
    here_ = around;
    Inst* made = b_.at(inst->loc).make(Op::if_, {}, {condition});
    b_.set_regions(made, {regions[0], regions[1]});
  }

  /// What `make` makes happens where the condition holds.
  template <class F>
  Inst* only_where(Value* condition, F&& make) {
    const Loc loc = b_.loc();
    const Region* around = std::exchange(here_, nullptr);
    Region* there = b_.make_region();
    Region* elsewhere = b_.make_region();
    values_.fill(there, [&] {
      make();
      b_.yield();
    });
    values_.fill(elsewhere, [&] { b_.yield(); });
    here_ = around;
    Inst* made = b_.at(loc).make(Op::if_, {}, {condition});
    b_.set_regions(made, {there, elsewhere});
    return made;
  }

  // ---- loops

  void back_loop(const Inst* inst) {
    switch (plans_.of(inst).way) {
      case LoopPlan::computed: return;
      case LoopPlan::in_order: return where_it_has_adjoints(inst, [&] { back_in_order(inst); });
      case LoopPlan::last_replacing: return back_last_replacing(inst);
      case LoopPlan::backwards:
        return where_it_has_adjoints(
            inst, [&] { inst->is(Op::loop) ? back_rounds(inst) : back_tested_rounds(inst); });
    }
  }

  /// A loop whose results go only to where one of several values is chosen often has no adjoints.
  /// Null: it is not worth asking.
  Value* has_adjoints(const Inst* inst) {
    if (!plans_.is_choice(inst)) return nullptr;
    Value* any = nullptr;
    for (const Value& v : inst->results) {
      Value* t = known(&v);
      if (!t) continue;
      Value* own = b_.binary(Op::ne, t, b_.real(t->type, 0));
      any = any ? b_.binary(Op::bit_or, any, own) : own;
    }
    return any;
  }
  template <class F>
  void where_it_has_adjoints(const Inst* inst, F&& make) {
    Value* any = has_adjoints(inst);
    any ? void(only_where(any, make)->kind = sparing) : make();
  }

  /// Which of the values that a loop carries vary, and the arguments that its regions have of them.
  static const Value* carried(const Inst* loop, size_t region, size_t k) {
    const Region* r = loop->region(region);
    return r->arg(r->args.size() - loop->results.size() + k);
  }
  bool varies(const Inst* loop, size_t k) const {
    if (active_(loop->result(k))) return true;
    for (size_t r = 0; r < loop->regions.size(); r++)
      if (active_(carried(loop, r, k))) return true;
    return false;
  }

  /// Of sums: what varies has one adjoint in all rounds, and the rest is carried on.
  void back_in_order(const Inst* inst) {
    const size_t first = inst->operand_count() - inst->results.size();
    std::vector<Value*> adjoints(inst->results.size());
    std::vector<Value*> operands = values_.operands_now(inst);
    std::vector<size_t> others;
    std::vector<Type> types;
    for (size_t k = 0; k < adjoints.size(); k++) {
      adjoints[k] = known(inst->result(k));
      if (varies(inst, k)) continue;
      others.push_back(k);
      types.push_back(inst->result(k)->type);
      operands[first + types.size() - 1] = operands[first + k];
    }
    operands.resize(first + types.size());
    const Region* around = std::exchange(here_, nullptr);
    std::vector<Region*> made;
    for (size_t n = 0; n < inst->regions.size(); n++)
      made.push_back(round_in_order(inst, n, others, types, adjoints));
    here_ = around;
    Inst* loop = b_.at(inst->loc).make(inst->op, std::span<const Type>(types), operands);
    inst->is(Op::loop) ? b_.set_regions(loop, {made[0]}) : b_.set_regions(loop, {made[0], made[1]});
    for (size_t k = 0; k < adjoints.size(); k++)
      if (adjoints[k]) give(inst->operand(first + k), adjoints[k]);
  }

  /// A region of the loop, computed again; the last one is gone back through.
  Region* round_in_order(const Inst* inst, size_t number, const std::vector<size_t>& others,
                         const std::vector<Type>& types, const std::vector<Value*>& adjoints) {
    const Region* region = inst->region(number);
    const bool is_body = number + 1 == inst->regions.size();
    std::vector<Type> args;
    if (inst->is(Op::loop)) args.push_back(region->arg(0)->type);
    const size_t first = args.size();
    args.insert(args.end(), types.begin(), types.end());
    Region* made = b_.make_region(std::span<const Type>(args));
    return values_.fill(made, [&] {
      if (first > 0) values_.set(region->arg(0), made->arg(0));
      for (size_t k = 0; k < adjoints.size(); k++)  // nobody wants what is a sum
        values_.set(carried(inst, number, k), b_.constant(carried(inst, number, k)->type, 0));
      for (size_t n = 0; n < others.size(); n++)
        values_.set(carried(inst, number, others[n]), made->arg(first + n));
      if (!plans_.of(inst).values.empty()) values_.restore_values(inst);
      values_.region(region, Replay::recording);
      const Inst* end = region->terminator();
      const size_t tested = is_body ? 0 : 1;
      std::vector<Value*> yielded;
      if (tested > 0) yielded.push_back(values_.now(end->operand(0)));
      for (size_t k : others) yielded.push_back(values_.now(end->operand(tested + k)));
      if (is_body) {
        here_ = region;
        prepare(region);
        for (size_t k = 0; k < adjoints.size(); k++)
          if (adjoints[k]) give(end->operand(k), adjoints[k]);
        back(region);
      }
      b_.yield(yielded);
    });
  }

  /// Slots of the adjoints of what a loop carries, from round to round; null: it does not vary.
  std::vector<Value*> carried_slots(std::span<const Value> carried) {
    std::vector<Value*> slots;
    for (const Value& v : carried)
      slots.push_back(active_(&v) ? b_.slot(derivative_type(v.type)) : nullptr);
    return slots;
  }
  void put_all(std::span<Value* const> slots, const Region* region, size_t first) {
    for (size_t k = 0; k < slots.size(); k++)
      if (slots[k]) {
        Value* t = b_.get(adjoint_of(region->arg(first + k)));
        b_.put(slots[k], t);
      }
  }

  /// `body(round)` for the rounds of a recorded loop, the last one first.
  template <class F>
  void backwards(const Inst* inst, F&& body) {
    Value* rounds = values_.rounds(inst);
    Value* zero = b_.integer(Type::i64, 0);
    Value* one = b_.integer(Type::i64, 1);
    Value* last = b_.sub(rounds, one);
    Region* made = b_.make_region({Type::i64});
    const Region* around = std::exchange(here_, nullptr);
    values_.fill(made, [&] {
      body(b_.sub(last, made->arg(0)));
      b_.yield();
    });
    here_ = around;
    Inst* loop = b_.at(inst->loc).loop(zero, rounds, one);
    b_.set_regions(loop, {made});
  }

  void back_rounds(const Inst* inst) {
    const std::vector<Value*> bounds = values_.operands_now(inst);
    const Region* body = inst->region(0);
    const std::vector<Value*> carried = carried_slots(body->args.subspan(1));
    for (size_t k = 0; k < carried.size(); k++)
      if (carried[k]) b_.put(carried[k], known(inst->result(k)));
    backwards(inst, [&](Value* round) {
      const Type type = bounds[0]->type;
      Value* ahead = b_.mul(b_.convert(round, type), bounds[2]);
      values_.set(body->arg(0), b_.add(bounds[0], ahead));
      values_.restore(inst, round);
      values_.region(body, Replay::recording);
      here_ = body;
      prepare(body);
      for (size_t k = 0; k < carried.size(); k++)
        if (carried[k]) give(body->terminator()->operand(k), b_.get(carried[k]));
      back(body);
      put_all(carried, body, 1);
    });
    for (size_t k = 0; k < carried.size(); k++)
      if (carried[k]) give(inst->operand(3 + k), b_.get(carried[k]));
  }

  /// Where none replaced it, what the loop began with has the adjoint.
  void back_last_replacing(const Inst* inst) {
    const Region* body = inst->region(0);
    Value* round = values_.last_replacing(inst);
    Value* any = b_.binary(Op::le, b_.integer(round->type, 0), round);
    std::vector<Value*> adjoints;
    for (const Replacement& r : plans_.of(inst).replacements) {
      adjoints.push_back(known(inst->result(r.carried)));
      if (Value* t = adjoints.back())
        give(inst->operand(3 + r.carried), b_.select(any, b_.real(t->type, 0), t));
    }
    if (Value* asked = has_adjoints(inst)) any = b_.binary(Op::bit_and, any, asked);
    only_where(any, [&] {
      const std::vector<Value*> bounds = values_.operands_now(inst);
      Value* ahead = b_.mul(b_.convert(round, bounds[0]->type), bounds[2]);
      values_.set(body->arg(0), b_.add(bounds[0], ahead));
      values_.restore(inst, b_.convert(round, Type::i64));
      const Replacement& any_of_them = plans_.of(inst).replacements[0];
      const Value* condition = condition_of(any_of_them);
      // One from outside of the loop is as it was, and used there.
      if (condition && (condition->inst ? condition->inst->parent : condition->region) == body)
        values_.know(condition, b_.boolean(!any_of_them.is_second));
      values_.region(body, Replay::recording);
      values_.know(nullptr, nullptr);
      here_ = body;
      prepare(body);
      size_t k = 0;
      for (const Replacement& r : plans_.of(inst).replacements) {
        const Value* made = r.is_chosen() ? r.by : body->terminator()->operand(r.carried);
        give(made, adjoints[k++]);
      }
      back(body);
    });
  }

  /// The condition is tested once more than the body runs: it is gone back through first, and
  /// before each round.
  void back_tested_rounds(const Inst* inst) {
    const Region *condition = inst->region(0), *body = inst->region(1);
    const std::vector<Value*> carried = carried_slots(condition->args);
    values_.restore_last_test(inst);
    values_.region(condition, Replay::recording);
    prepare(condition);
    for (size_t k = 0; k < carried.size(); k++)
      give(condition->terminator()->operand(1 + k), known(inst->result(k)));
    back(condition);
    put_all(carried, condition, 0);
    backwards(inst, [&](Value* round) {
      values_.restore(inst, round);
      values_.region(condition, Replay::recording);
      for (size_t k = 0; k < carried.size(); k++)
        values_.set(body->arg(k), values_.now(condition->terminator()->operand(1 + k)));
      values_.region(body, Replay::recording);
      prepare(condition);
      prepare(body);
      for (size_t k = 0; k < carried.size(); k++)
        if (carried[k]) give(body->terminator()->operand(k), b_.get(carried[k]));
      back(body);
      for (size_t k = 0; k < carried.size(); k++)
        give(condition->terminator()->operand(1 + k), known(body->arg(k)));
      back(condition);
      put_all(carried, condition, 0);
    });
    for (size_t k = 0; k < carried.size(); k++)
      if (carried[k]) give(inst->operand(k), b_.get(carried[k]));
  }

  // ---- fields and variables

  void back_load(const Inst* inst) {
    if (!has_adjoint(inst->result())) return;
    Value* t = taken(inst);
    change(inst, [&] {
      b_.atomic(AtomicOp::add, declared_.companions[inst->binding()], inst->component(), t->type,
                values_.indices_now(inst), {&t, 1});
    });
  }

  /// Going back makes no element active: what is not has no adjoint.
  template <class F>
  void change(const Inst* inst, F&& make) {
    if (!trees_.is_on_tree(inst->binding())) return make();
    const Type b1 = Type::b1;
    Inst* asked = b_.make(Op::is_active, {&b1, 1}, values_.indices_now(inst));
    asked->part.binding = declared_.companions[inst->binding()];
    only_where(asked->result(), make);
  }

  Value* adjoint_element(const Inst* inst) {
    return b_.load(declared_.companions[inst->binding()], inst->component(),
                   derivative_type(inst->elem), values_.indices_now(inst));
  }

  void back_store(const Inst* inst) {
    if (declared_.companions[inst->binding()] == no_binding || !is_float(inst->elem)) return;
    const Value* v = inst->operands.back().value;
    if (active_(v)) accumulate(v, adjoint_element(inst));
    Value* zero = b_.real(derivative_type(inst->elem), 0);
    change(inst, [&] {
      b_.store(declared_.companions[inst->binding()], inst->component(), values_.indices_now(inst),
               zero);
    });
  }

  void back_atomic(const Inst* inst) {
    if (!is_float(inst->elem)) return;
    if (inst->atomic() == AtomicOp::load) return back_load(inst);
    if (is_combined(inst)) return;  // one goes back through its copies
    if (inst->atomic() != AtomicOp::add)
      refuse(inst, "an atomic " + std::string(name(inst->atomic())) + " of floats",
             instead_of(inst->atomic()));
    const Value* v = inst->operands.back().value;
    if (!active_(v) || declared_.companions[inst->binding()] == no_binding) return;
    const bool is_number = inst->binding() == number_;
    accumulate(v, is_number ? b_.real(derivative_type(inst->elem), 1) : adjoint_element(inst));
  }

  /// Of an array; null for a variable.
  Value* element_now(const Inst* inst, size_t operands_of_variable) const {
    return inst->operand_count() > operands_of_variable ? values_.now(inst->operand(1)) : nullptr;
  }

  void back_get(const Inst* inst) {
    if (!has_adjoint(inst->result())) return;
    const Value* slot = inst->operand(0);
    Value* t = taken(inst);
    Value* at = element_now(inst, 1);
    if (!at) return accumulate(slot, t);
    if (adjoints_.at(slot).of_kernel && is_parallel_)
      refuse(inst, "an array of the kernel that a parallel loop reads", "use a field");
    Value* sum = b_.add(b_.get(adjoint_of(slot), at), t);
    b_.put(adjoint_of(slot), at, sum);
  }

  void back_put(const Inst* inst) {
    const Value* slot = inst->operand(0);
    if (!active_(slot)) return;
    const Value* v = inst->operands.back().value;
    Value* at = element_now(inst, 2);
    Value* old = b_.get(adjoint_of(slot), at);
    Value* zero = b_.real(old->type, 0);
    at ? b_.put(adjoint_of(slot), at, zero) : b_.put(adjoint_of(slot), zero);
    if (active_(v)) accumulate(v, old);
  }

  void back_reduce(const Inst* inst) {
    const Value *slot = inst->operand(0), *v = inst->operand(1);
    if (!active_(slot) || !active_(v) || is_combined(inst)) return;
    accumulate(v, b_.get(adjoint_of(slot)));
  }

  const Kernel& primal_;
  Reverse& out_;
  Kernel& kernel_;
  Builder b_;
  const Activity& active_;
  const Slopes& slopes_;
  const LoggedReads& logged_;
  const LoopPlans& plans_;
  const TreeRules& trees_;
  const Further further_;
  const uint32_t number_;
  const Declared declared_;
  Replay values_;
  std::unordered_map<uint32_t, Value*> scalar_;  ///< slots of adjoints, by binding
  std::unordered_map<const Value*, Adjoint> adjoints_;
  const Region* here_ = nullptr;  ///< of the primal, that is gone back through in a straight line
  /// Of what is gone back through there: a branch where alone its adjoint is not zero.
  const Inst* only_in_ = nullptr;
  bool is_parallel_ = false;
};

}  // namespace

void pull(const Primal& primal, Reverse& out) { Puller(primal, out).run(); }

}  // namespace quern::autodiff
