#include "autodiff/forward/forward.h"

#include <algorithm>
#include <unordered_map>

#include "autodiff/primal/activity.h"
#include "autodiff/primal/combined.h"
#include "autodiff/rules/rules.h"
#include "ir/passes/trees/accesses.h"
#include "quern/ir/builder.h"
#include "quern/ir/lower.h"
#include "quern/ir/partials.h"

namespace quern::autodiff {

using namespace ir;

namespace {

[[noreturn]] void refuse(const Inst* inst, const std::string& what, const std::string& advice) {
  throw Error(inst->loc, what + " has no tangent: " + advice);
}

class Pusher {
 public:
  Pusher(Forward& out, std::span<const uint32_t> tangents_by)
      : out_(out),
        kernel_(*out.kernel),
        b_(kernel_),
        of_(tangents_by.begin(), tangents_by.end()),
        active_(kernel_, has_tangents()) {}

  void run() {
    declare();
    region(kernel_.body);
    return_tangents();
  }

 private:
  // ---- where tangents come from and go to

  std::vector<bool> has_tangents() const {
    std::vector<bool> has;
    for (uint32_t of : of_) has.push_back(of != no_binding);
    return has;
  }

  void declare() {
    std::vector<Binding> derived;
    while (!kernel_.bindings.empty() && kernel_.bindings.back().is_derived()) {
      derived.insert(derived.begin(), std::move(kernel_.bindings.back()));
      kernel_.bindings.pop_back();
    }
    const size_t passed = kernel_.bindings.size();
    out_.tangent_of.assign(of_.size(), no_binding);
    for (size_t k = 0; k < passed; k++) {
      const Binding of = kernel_.bindings[k];
      if (of.kind == Binding::scalar && of_[k] != no_binding)
        out_.tangent_of[k] = add("the tangent of " + of.name, of);
    }
    make_room(passed, uint32_t(kernel_.bindings.size() - passed), derived);
    companions_.assign(of_.size(), no_binding);
    for (size_t k = 0; k < of_.size(); k++) {
      const Binding of = kernel_.bindings[k];
      if (of.kind != Binding::field || of_[k] == no_binding) continue;
      companions_[k] = add("the tangents of " + of.name, of);
      kernel_.bindings.back().of = of_[k];
      kernel_.bindings.back().companion = tangents;
    }
  }

  /// The derived bindings, from number `from` on, stand `count` further back.
  void make_room(size_t from, uint32_t count, std::vector<Binding>& derived) {
    const auto move = [&](uint32_t& binding) {
      if (binding >= from && binding < no_binding) binding += count;
    };
    for (Binding& b : derived) {
      move(b.of);
      kernel_.bindings.push_back(std::move(b));
    }
    for (uint32_t& of : of_) move(of);
    of_.insert(of_.begin() + std::ptrdiff_t(from), count, no_binding);
    out_.tangent_of.insert(out_.tangent_of.begin() + std::ptrdiff_t(from), count, no_binding);
    walk(kernel_.body, [&](Inst* inst) {
      move(inst->part.binding);
      move(inst->options.over);
    });
  }

  uint32_t add(std::string name, const Binding& of) {
    Binding binding;
    binding.kind = of.kind;
    binding.rank = of.rank;
    binding.name = std::move(name);
    binding.loc = of.loc;
    for (Component c : of.components) {
      c.type = derivative_type(c.type);
      binding.components.push_back(c);
    }
    kernel_.bindings.push_back(std::move(binding));
    return uint32_t(kernel_.bindings.size() - 1);
  }

  void return_tangents() {
    out_.results = kernel_.results.size();
    Inst* yield = kernel_.body->terminator();
    for (size_t k = 0; k < out_.results; k++) {
      const Type type = kernel_.results[k];
      if (!is_float(type)) continue;
      b_.before(yield).at(yield->loc);
      b_.add_operand(yield, known_or_zero(yield->operand(k)));
      kernel_.results.push_back(derivative_type(type));
    }
  }

  // ---- tangents of values

  /// Null: it is 0.
  Value* known(const Value* v) const {
    const auto at = tangents_.find(v);
    return at == tangents_.end() ? nullptr : at->second;
  }
  Value* known_or_zero(const Value* v) {
    Value* t = known(v);
    return t ? t : b_.real(derivative_type(v->type), 0);
  }

  void region(Region* r) {
    for (Inst* inst : *r) visit(inst);
  }

  void visit(Inst* inst) {
    b_.after(inst).at(inst->loc);
    switch (inst->op) {
      case Op::parallel: return region(inst->region(0));
      case Op::if_: return branch(inst);
      case Op::loop: return loop(inst);
      case Op::while_: return while_loop(inst);
      case Op::load: return load(inst);
      case Op::store: return store(inst);
      case Op::atomic: return atomic(inst);
      case Op::slot:
        if (active_(inst->result()))
          tangents_[inst->result()] = b_.slot(derivative_type(inst->elem), inst->imm);
        return;
      case Op::get: return get(inst);
      case Op::put: return put(inst);
      case Op::reduce: return reduce(inst);
      case Op::apply: return applied(inst);
      case Op::bitcast:
        if (known(inst->operand(0)))
          refuse(inst, "the bits of a float that varies", "it is nowhere smooth");
        return;
      case Op::param:
        if (active_(inst->result()))
          tangents_[inst->result()] =
              b_.param(out_.tangent_of[inst->binding()], derivative_type(inst->type()));
        return;
      default: return operation(inst);
    }
  }

  /// Σ ∂result/∂operand · tangent of the operand. An f16 has that of the same operation in f32.
  void operation(Inst* inst) {
    if (inst->results.empty() || !active_(inst->result())) return;
    if (inst->is(Op::select)) {
      Value* first = known_or_zero(inst->operand(1));
      Value* second = known_or_zero(inst->operand(2));
      tangents_[inst->result()] = b_.select(inst->operand(0), first, second);
      return;
    }
    const Type type = derivative_type(inst->type());
    if (inst->is(Op::convert)) {
      tangents_[inst->result()] = b_.convert(known_or_zero(inst->operand(0)), type);
      return;
    }
    std::vector<Value*> operands;
    for (const Use& use : inst->operands)
      operands.push_back(is_float(use.value->type) ? b_.convert(use.value, type) : use.value);
    Value* result = b_.convert(inst->result(), type);
    Value* sum = nullptr;
    for (size_t k = 0; k < operands.size(); k++) {
      Value* t = known(inst->operand(k));
      if (!t) continue;
      Value* term = chain(b_, inst->op, operands, result, k, t);
      // As it was built going back: where it was not to run, one factor is 0, whatever the other is.
      if (inst->is(Op::mul) && inst->kind & unasked)
        term = zero_with(b_, operands[1 - k], zero_with(b_, t, term, Further::yes), Further::yes);
      if (term) sum = sum ? b_.add(sum, term) : term;
    }
    if (sum) tangents_[inst->result()] = sum;
  }

  /// By the function's pushforward.
  void applied(Inst* inst) {
    bool varies = false;
    for (const Use& use : inst->operands) varies |= known(use.value) != nullptr;
    if (!varies) return;
    const Function* rule = rule_of(kernel_, inst, Direction::forward);
    if (!rule) refuse(inst, "a function without a pushforward", "give it one with its pullback");
    std::vector<Value*> values;
    for (const Use& use : inst->operands) values.push_back(use.value);
    for (Value& v : inst->results) values.push_back(&v);
    for (const Use& use : inst->operands)
      if (is_float(use.value->type)) values.push_back(known_or_zero(use.value));
    const std::vector<Value*> given = build_rule(b_, *rule, values);
    size_t n = 0;
    for (const Value& v : inst->results)
      if (is_float(v.type) && n < given.size()) tangents_[&v] = given[n++];
  }

  // ---- fields

  std::vector<Value*> indices(const Inst* inst) const {
    std::vector<Value*> all;
    for (uint32_t k = 0; k < kernel_.bindings[inst->binding()].rank; k++)
      all.push_back(inst->operand(k));
    return all;
  }
  /// An access at the place of another fails with that.
  void placed(Inst* made, const Inst* like) { made->site = like->site; }

  void load(Inst* inst) {
    if (!active_(inst->result())) return;
    Value* t = b_.load(companions_[inst->binding()], inst->component(), derivative_type(inst->elem),
                       indices(inst));
    placed(t->inst, inst);
    tangents_[inst->result()] = t;
  }

  void store(Inst* inst) {
    if (!is_float(inst->elem) || companions_[inst->binding()] == no_binding) return;
    Value* t = known_or_zero(inst->operands.back().value);
    placed(b_.store(companions_[inst->binding()], inst->component(), indices(inst), t), inst);
  }

  void atomic(Inst* inst) {
    if (!is_float(inst->elem)) return;
    if (inst->atomic() == AtomicOp::load) return load(inst);
    const std::string what = "an atomic " + std::string(name(inst->atomic())) + " of floats";
    if (inst->used())
      refuse(inst, "the old value of " + what, "it depends on the order of iterations");
    if (is_combined(inst)) return;  // its copies have them
    if (inst->atomic() != AtomicOp::add) refuse(inst, what, instead_of(inst->atomic()));
    Value* t = known(inst->operands.back().value);
    if (!t || companions_[inst->binding()] == no_binding) return;
    placed(b_.atomic(AtomicOp::add, companions_[inst->binding()], inst->component(), t->type,
                     indices(inst), {&t, 1}),
           inst);
  }

  // ---- variables

  void get(Inst* inst) {
    Value* slot = known(inst->operand(0));
    if (!slot) return;
    Value* t = b_.get(slot, inst->operand_count() > 1 ? inst->operand(1) : nullptr);
    placed(t->inst, inst);
    tangents_[inst->result()] = t;
  }

  void put(Inst* inst) {
    Value* slot = known(inst->operand(0));
    if (!slot) return;
    Value* t = known_or_zero(inst->operands.back().value);
    placed(inst->operand_count() > 2 ? b_.put(slot, inst->operand(1), t) : b_.put(slot, t), inst);
  }

  void reduce(Inst* inst) {
    Value* slot = known(inst->operand(0));
    Value* t = known(inst->operand(1));
    if (!slot || !t || is_combined(inst)) return;
    Inst* made = b_.make(Op::reduce, {}, {slot, t});
    made->elem = t->type;
    made->kind = inst->kind;
  }

  // ---- structure: tangents of what is yielded and carried come behind the values

  std::vector<size_t> active_results(const Inst* inst) const {
    std::vector<size_t> all;
    for (size_t k = 0; k < inst->results.size(); k++)
      if (active_(inst->result(k))) all.push_back(k);
    return all;
  }

  /// The region, with tangents yielded of these values, that stand behind `skipped` others.
  void body(Region* r, std::span<const size_t> yielded, size_t skipped) {
    region(r);
    Inst* yield = r->terminator();
    for (size_t k : yielded) {
      b_.before(yield).at(yield->loc);
      Value* t = known_or_zero(yield->operand(skipped + k));
      b_.add_operand(yield, t);
    }
  }

  void add_results(Inst* inst, std::span<const size_t> which) {
    for (size_t k : which) b_.add_result(inst, derivative_type(inst->result(k)->type));
    const size_t count = inst->results.size() - which.size();
    for (size_t n = 0; n < which.size(); n++)
      tangents_[inst->result(which[n])] = inst->result(count + n);
  }

  /// `first`: the number of the argument that is the first carried value.
  void add_arguments(Region* r, std::span<const size_t> which, size_t first) {
    for (size_t k : which) b_.add_arg(r, derivative_type(r->arg(first + k)->type));
    const size_t count = r->args.size() - which.size();
    for (size_t n = 0; n < which.size(); n++)
      tangents_[r->arg(first + which[n])] = r->arg(count + n);
  }

  void add_initial(Inst* inst, std::span<const size_t> which, size_t first) {
    for (size_t k : which) {
      b_.before(inst).at(inst->loc);
      Value* t = known_or_zero(inst->operand(first + k));
      b_.add_operand(inst, t);
    }
  }

  void branch(Inst* inst) {
    const std::vector<size_t> which = active_results(inst);
    for (Region* r : inst->regions) body(r, which, 0);
    add_results(inst, which);
  }

  void loop(Inst* inst) {
    const std::vector<size_t> which = active_results(inst);
    add_initial(inst, which, 3);
    add_arguments(inst->region(0), which, 1);
    body(inst->region(0), which, 0);
    add_results(inst, which);
  }

  void while_loop(Inst* inst) {
    std::vector<size_t> which;  // the condition may pass on other values than it was given
    for (size_t k = 0; k < inst->results.size(); k++)
      if (active_(inst->result(k)) || active_(inst->region(0)->arg(k))) which.push_back(k);
    add_initial(inst, which, 0);
    add_arguments(inst->region(0), which, 0);
    body(inst->region(0), which, 1);
    add_arguments(inst->region(1), which, 0);
    body(inst->region(1), which, 0);
    add_results(inst, which);
  }

  Forward& out_;
  Kernel& kernel_;
  Builder b_;
  std::vector<uint32_t> of_;  ///< Directions::of
  const Activity active_;
  std::vector<uint32_t> companions_;                   ///< of each binding of the primal
  std::unordered_map<const Value*, Value*> tangents_;  ///< of values, and slots of slots
};

}  // namespace

Directions all_directions(const Kernel& kernel) {
  Directions all;
  for (uint32_t k = 0; k < kernel.bindings.size(); k++)
    all.of.push_back(has_floats(kernel.bindings[k]) ? k : no_binding);
  return all;
}

namespace {
/// The fields whose elements the kernel writes, makes active or ends.
std::vector<uint32_t> changed(const Kernel& kernel) {
  std::vector<uint32_t> all;
  walk(kernel.body, [&](const Inst* inst) {
    const bool changes = may_claim(inst) || inst->is(Op::deactivate);
    if (changes && std::ranges::find(all, inst->binding()) == all.end())
      all.push_back(inst->binding());
  });
  return all;
}

/// A launch looks it up, by a name of its own: what goes back through the new kernel has scratch of
/// the same fields beside it.
void derive_scratch(Kernel& kernel, const Combined& combined) {
  const size_t first = kernel.bindings.size() - combined.scratch.size();
  for (size_t k = 0; k < combined.scratch.size(); k++) {
    kernel.bindings[first + k].of = combined.scratch[k].of;
    kernel.bindings[first + k].companion = combined.scratch[k].companion + " forward";
  }
}
}  // namespace

Forward forward(const Kernel& primal, Modes modes, const Directions& directions) {
  Forward out;
  out.kernel = clone(primal);
  Premises any{modes, std::vector<uint32_t>(primal.bindings.size(), 0)};
  assume(*out.kernel, any);
  optimise(*out.kernel);
  out.kernel->name = "jvp of " + primal.name;
  std::vector<uint32_t> of = directions.of;
  Combined combined;
  std::vector<bool> varies;
  for (uint32_t tangents_by : of) varies.push_back(tangents_by != no_binding);
  if (!directions.is_without_races) out.races = races_of(*out.kernel, varies);
  if (!directions.is_taken_apart) {
    combined = derive_combined(*out.kernel, varies, false, Second::by_kernel);
    derive_scratch(*out.kernel, combined);
    if (combined.is_any) out.not_on_trees = changed(primal);
    of.resize(out.kernel->bindings.size(), no_binding);
    out.distinct = std::move(combined.distinct);
  }
  add_rules(*out.kernel, Direction::forward);
  Pusher(out, of).run();
  for (Inst* inst : combined.without_value) inst->erase();
  return out;
}

}  // namespace quern::autodiff
