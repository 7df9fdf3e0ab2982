#include "autodiff/reverse.h"

#include <unordered_map>

#include "autodiff/activity.h"
#include "ir/analysis/effects.h"
#include "quern/ir/builder.h"
#include "quern/ir/partials.h"

namespace quern::autodiff {

using namespace ir;

namespace {

/// Rounds that a loop may have where what it carried is kept: an array of the iteration's own.
constexpr int64_t most_rounds = 4096;

[[noreturn]] void refuse(const Inst* inst, const std::string& what, const std::string& advice) {
  throw Error(inst->loc, what + " has no adjoint: " + advice);
}

bool has_floats(const Binding& binding) {
  for (const Component& c : binding.components)
    if (is_float(c.type)) return true;
  return false;
}

std::string place(Loc loc) { return std::string(loc.file) + ":" + std::to_string(loc.line); }

// ---- what is read is what was there before

/// Throws where the kernel may read what it has written: the reverse kernel would find something
/// else.
class ReadsOfWritten {
 public:
  explicit ReadsOfWritten(const Kernel& kernel) : kernel_(kernel), effects_(kernel) {}

  void expect_none() {
    walk(kernel_.body, [&](const Inst* inst) {
      const size_t number = order_.size();
      order_[inst] = number;
      if (inst->is(Op::get)) gets_.push_back(inst);
      if (inst->is(Op::put) || inst->is(Op::reduce)) puts_.push_back(inst);
      if (!accesses_element(inst->op)) return;
      if (has(inst->op, flag::reads) && !inst->is(Op::atomic)) reads_.push_back(inst);
      if (has(inst->op, flag::writes)) writes_.push_back(inst);
    });
    for (const Inst* read : reads_)
      for (const Inst* write : writes_)
        if (may_precede(write, read) && effects_.may_change(write, read))
          throw Error(read->loc, name_of(read) +
                                     " is read here behind what may have written it in the same "
                                     "launch (at " +
                                     place(write->loc) +
                                     "), and has no adjoint then: make two kernels of it");
    for (const Inst* get : gets_)
      for (const Inst* put : puts_)
        if (get->operand(0) == put->operand(0) && is_nested(get) && may_precede(get, put))
          throw Error(get->loc, "a variable is read here that changes later in the launch (at " +
                                    place(put->loc) +
                                    "), and has no adjoint then: use another one there");
  }

 private:
  std::string name_of(const Inst* inst) const { return kernel_.bindings[inst->binding()].name; }

  /// Is the variable of another region, in which it is gone back through later?
  static bool is_nested(const Inst* get) { return get->operand(0)->inst->parent != get->parent; }

  bool may_precede(const Inst* write, const Inst* read) const {
    if (order_.at(write) < order_.at(read)) return true;
    for (const Region* r = read->parent; r->parent; r = r->parent->parent) {
      const Inst* around = r->parent;
      if (!encloses(r, write->parent)) continue;
      // What another iteration adds may come first; what it stores would be a race.
      if (around->is(Op::parallel)) return write->is(Op::atomic);
      if (around->is(Op::loop) || around->is(Op::while_)) return true;
    }
    return false;
  }

  const Kernel& kernel_;
  Effects effects_;
  std::vector<const Inst*> reads_, writes_, gets_, puts_;
  std::unordered_map<const Inst*, size_t> order_;
};

// ---- the kernel

class Puller {
 public:
  Puller(const Kernel& primal, Reverse& out)
      : primal_(primal),
        out_(out),
        kernel_(*out.kernel),
        b_(kernel_),
        inputs_(inputs(primal)),
        active_(primal, inputs_) {}

  void run() {
    declare();
    kernel_.body = b_.make_region();
    b_.at_end(kernel_.body).at(kernel_.loc);
    replay(primal_.body);
    for (uint32_t k : out_.scalars) scalar_[k] = b_.slot(type_of(k));
    prepare(primal_.body);
    const Inst* yield = primal_.body->terminator();
    uint32_t seed = first_seed_;
    for (const Use& use : yield->operands)
      if (is_float(use.value->type)) {
        const uint32_t binding = seed++;
        if (active_(use.value))
          accumulate(use.value, b_.param(binding, derivative_type(use.value->type)));
      }
    back(primal_.body);
    std::vector<Value*> results;
    for (uint32_t k : out_.scalars) {
      results.push_back(b_.get(scalar_[k]));
      kernel_.results.push_back(type_of(k));
    }
    b_.yield(results);
  }

 private:
  static std::vector<bool> inputs(const Kernel& kernel) {
    std::vector<bool> all;
    for (const Binding& b : kernel.bindings) all.push_back(has_floats(b));
    return all;
  }
  Type type_of(uint32_t scalar) const {
    return derivative_type(primal_.bindings[scalar].components[0].type);
  }

  void declare() {
    const auto count = uint32_t(primal_.bindings.size());
    out_.fields.assign(count, no_binding);
    for (uint32_t k = 0; k < count; k++) {
      const Binding& of = primal_.bindings[k];
      if (!has_floats(of)) continue;
      if (of.kind == Binding::scalar) out_.scalars.push_back(k);
      if (of.kind != Binding::field) continue;
      out_.fields[k] = uint32_t(kernel_.bindings.size());
      kernel_.bindings.push_back(of);
    }
    first_seed_ = uint32_t(kernel_.bindings.size());
    for (Type type : primal_.results)
      if (is_float(type)) {
        Binding seed;
        seed.kind = Binding::scalar;
        seed.components = {{derivative_type(type)}};
        seed.name = "the adjoint of a result";
        seed.loc = primal_.loc;
        kernel_.bindings.push_back(std::move(seed));
        out_.seeds++;
      }
    companions_.assign(count, no_binding);
    for (uint32_t k = 0; k < count; k++) {
      if (out_.fields[k] == no_binding) continue;
      Binding companion = primal_.bindings[k];
      for (Component& c : companion.components) c.type = derivative_type(c.type);
      companion.name = "the adjoints of " + companion.name;
      companion.of = out_.fields[k];
      companion.companion = adjoints;
      companions_[k] = uint32_t(kernel_.bindings.size());
      kernel_.bindings.push_back(std::move(companion));
    }
  }

  // ---- the primal's values, again

  Value* now(const Value* v) const {
    const auto at = values_.find(v);
    if (at == values_.end()) throw InternalError("a value that was not computed again");
    return at->second;
  }

  /// The region's instructions but those that have effects, and its terminator.
  void replay(const Region* region) {
    for (const Inst* inst : *region)
      if (!has(inst->op, flag::ends)) replay(inst);
  }

  void replay(const Inst* inst) {
    b_.at(inst->loc);
    switch (inst->op) {
      case Op::store:
      case Op::check:
      case Op::print:
      case Op::activate: return;
      case Op::atomic:
        if (inst->atomic() == AtomicOp::load) {
          Value* v = b_.load(inst->binding(), inst->component(), inst->elem, indices(inst));
          values_[inst->result()] = v;
        } else if (inst->used()) {
          refuse(inst, "the old value of an atomic " + std::string(name(inst->atomic())),
                 "it depends on the order of iterations");
        }
        return;
      case Op::launch_key:
        refuse(inst, "a random number", "the launch that goes back would draw another one");
      case Op::call:
      case Op::apply:
        refuse(inst, "a call of " + primal_.callees[size_t(inst->imm)].name,
               "write what it does with operations of the language");
      case Op::append:
      case Op::deactivate:
        refuse(inst, "what ends or appends elements of a tree",
               "only launches without it have one");
      case Op::slot:
        if (inst->imm > 1) refuse(inst, "a local array", "use variables, or elements of a field");
        break;
      case Op::parallel: {
        bool reduces = false;  // it has no other effect that is left
        walk(inst->region(0), [&](const Inst* i) { reduces |= i->is(Op::reduce); });
        if (reduces) parallel(inst, [&] { replay(inst->region(0)); });
        return;
      }
      case Op::if_:
      case Op::while_: return replay_structure(inst);
      case Op::loop: return replay_loop(inst);
      default: break;
    }
    clone_inst(b_, inst, values_);
  }

  std::vector<Value*> indices(const Inst* inst) const {
    std::vector<Value*> all;
    for (uint32_t k = 0; k < primal_.bindings[inst->binding()].rank; k++)
      all.push_back(now(inst->operand(k)));
    return all;
  }

  /// A region of a new instruction: `body` fills it, and yields.
  template <class F>
  Region* inside(const Region* like, F&& body) {
    std::vector<Type> types;
    for (const Value& arg : like->args) types.push_back(arg.type);
    Region* made = b_.make_region(std::span<const Type>(types));
    for (size_t k = 0; k < types.size(); k++) values_[like->arg(k)] = made->arg(k);
    Region* region = b_.region();
    Inst* point = b_.point();
    b_.at_end(made);
    body();
    point ? b_.before(point) : b_.at_end(region);
    return made;
  }

  std::vector<Value*> operands_now(const Inst* inst) const {
    std::vector<Value*> all;
    for (const Use& use : inst->operands) all.push_back(now(use.value));
    return all;
  }

  void replay_structure(const Inst* inst) {
    std::vector<Type> types;
    for (const Value& v : inst->results) types.push_back(v.type);
    const std::vector<Value*> operands = operands_now(inst);
    std::vector<Region*> regions;
    for (const Region* r : inst->regions)
      regions.push_back(inside(r, [&] {
        replay(r);
        b_.yield(operands_now(r->terminator()));
      }));
    Inst* made = b_.make(inst->op, std::span<const Type>(types), operands);
    b_.set_regions(made, {regions[0], regions[1]});
    for (size_t k = 0; k < types.size(); k++) values_[inst->result(k)] = made->result(k);
  }

  template <class F>
  void parallel(const Inst* inst, F&& body) {
    const std::vector<Value*> operands = operands_now(inst);
    is_parallel_ = true;
    Region* region = inside(inst->region(0), [&] {
      body();
      b_.yield();
    });
    is_parallel_ = false;
    Inst* made = b_.at(inst->loc).make(Op::parallel, std::span<const Type>(), operands);
    made->kind = inst->kind;
    made->options = inst->options;
    b_.set_regions(made, {region});
  }

  // ---- loops

  /// Is the value itself wanted by what goes back through the body? Sums want none of their terms.
  bool is_wanted(const Value* v, const Region* body, std::vector<const Value*>& seen) const {
    for (const Value* s : seen)
      if (s == v) return false;
    seen.push_back(v);
    for (const Use* use = v->uses; use; use = use->next) {
      const Inst* user = use->user;
      if (user == body->terminator()) continue;
      const bool passes = user->is(Op::add) || user->is(Op::sub) || user->is(Op::neg) ||
                          (user->is(Op::convert) && is_float(user->type()));
      if (!passes || !is_float(v->type) || is_wanted(user->result(), body, seen)) return true;
    }
    return false;
  }

  bool keeps_rounds(const Inst* loop) const {
    for (size_t k = 0; k < loop->results.size(); k++) {
      std::vector<const Value*> seen;
      if (is_wanted(loop->region(0)->arg(1 + k), loop->region(0), seen)) return true;
    }
    return false;
  }

  /// Of a loop between constants; else -1.
  int64_t constant_rounds(const Inst* loop) const {
    int64_t v[3];
    for (size_t k = 0; k < 3; k++) {
      const Inst* made = loop->operand(k)->inst;
      if (!made || !made->is(Op::constant)) return -1;
      v[k] = to_signed(made->imm, made->type());
    }
    if (v[2] <= 0) return -1;
    return v[0] < v[1] ? (v[1] - v[0] - 1) / v[2] + 1 : 0;
  }

  /// As the loop was, and what it carried into each round into arrays, where going back wants that.
  void replay_loop(const Inst* inst) {
    std::vector<Value*> kept;
    if (keeps_rounds(inst)) {
      const int64_t rounds = constant_rounds(inst);
      if (rounds < 0 || rounds > most_rounds)
        refuse(inst,
               "a loop that goes on from what its rounds have made, and has no constant number of "
               "them up to " +
                   std::to_string(most_rounds) + ",",
               "give it constant bounds, or write it so that it only adds up");
      for (const Value& v : inst->results)
        kept.push_back(b_.slot(v.type, uint64_t(std::max<int64_t>(rounds, 1))));
    }
    std::vector<Type> types;
    for (const Value& v : inst->results) types.push_back(v.type);
    const std::vector<Value*> operands = operands_now(inst);
    const Region* body = inst->region(0);
    Region* made = inside(body, [&] {
      if (!kept.empty()) {
        Value* round = round_of(operands, values_[body->arg(0)]);
        for (size_t k = 0; k < kept.size(); k++) b_.put(kept[k], round, values_[body->arg(1 + k)]);
      }
      replay(body);
      b_.yield(operands_now(body->terminator()));
    });
    Inst* loop = b_.make(Op::loop, std::span<const Type>(types), operands);
    b_.set_regions(loop, {made});
    for (size_t k = 0; k < types.size(); k++) values_[inst->result(k)] = loop->result(k);
    kept_[inst] = std::move(kept);
  }

  /// (index - lo) / step, i32.
  Value* round_of(std::span<Value* const> bounds, Value* index) {
    Value* from = b_.sub(index, bounds[0]);
    return b_.convert(b_.div(from, bounds[2]), Type::i32);
  }

  void back_loop(const Inst* inst) {
    const std::vector<Value*> bounds = operands_now(inst);
    const Type type = bounds[0]->type;
    const Region* body = inst->region(0);
    const size_t count = inst->results.size();
    // Adjoints of what is carried, from round to round.
    std::vector<Value*> carried(count, nullptr);
    for (size_t k = 0; k < count; k++)
      if (active_(inst->result(k))) {
        carried[k] = b_.slot(derivative_type(inst->result(k)->type));
        b_.put(carried[k], b_.get(adjoint_of(inst->result(k))));
      }
    Value* zero = b_.integer(type, 0);
    Value* one = b_.integer(type, 1);
    Value* last = b_.sub(b_.sub(bounds[1], bounds[0]), one);
    Value* rounds = b_.add(b_.div(last, bounds[2]), one);
    rounds = b_.select(b_.lt(bounds[0], bounds[1]), rounds, zero);
    const std::vector<Value*>& kept = kept_.at(inst);
    Region* made = b_.make_region({type});
    Region* around = b_.region();
    Inst* point = b_.point();
    b_.at_end(made);
    Value* round = b_.sub(b_.sub(rounds, one), made->arg(0));
    values_[body->arg(0)] = b_.add(bounds[0], b_.mul(round, bounds[2]));
    for (size_t k = 0; k < count; k++) {
      const Value* arg = body->arg(1 + k);
      values_[arg] = kept.empty() ? b_.constant(arg->type, 0)  // nobody wants it
                                  : b_.get(kept[k], b_.convert(round, Type::i32));
    }
    replay(body);
    prepare(body);
    for (size_t k = 0; k < count; k++) {
      if (!carried[k]) continue;
      const Value* yielded = body->terminator()->operand(k);
      if (active_(yielded)) accumulate(yielded, b_.get(carried[k]));
    }
    back(body);
    for (size_t k = 0; k < count; k++)
      if (carried[k]) b_.put(carried[k], b_.get(adjoint_of(body->arg(1 + k))));
    b_.yield();
    point ? b_.before(point) : b_.at_end(around);
    Inst* loop = b_.loop(zero, rounds, one);
    b_.set_regions(loop, {made});
    for (size_t k = 0; k < count; k++)
      if (carried[k] && active_(inst->operand(3 + k)))
        accumulate(inst->operand(3 + k), b_.get(carried[k]));
  }

  // ---- adjoints of values

  struct Adjoint {
    Value* slot = nullptr;
    const Region* home = nullptr;  ///< of the primal, where the value is
    bool of_kernel = false;        ///< made outside of parallel loops
    bool is_zero = true;
  };

  /// Slots for what is active directly in the region.
  void prepare(const Region* region) {
    const auto add = [&](const Value* v, Type type) {
      if (active_(v)) adjoints_[v] = {b_.slot(derivative_type(type)), region, !is_parallel_, true};
    };
    for (const Value& arg : region->args) add(&arg, arg.type);
    for (const Inst* inst : *region)
      for (const Value& v : inst->results) add(&v, inst->is(Op::slot) ? inst->elem : v.type);
  }

  Value* adjoint_of(const Value* v) const { return adjoints_.at(v).slot; }

  void accumulate(const Value* v, Value* t) {
    Adjoint& to = adjoints_.at(v);
    add_to(to.slot, t, to.of_kernel, std::exchange(to.is_zero, false) && to.home == here_);
  }

  void add_to(Value* slot, Value* t, bool of_kernel, bool is_zero) {
    if (of_kernel && is_parallel_) {
      Inst* made = b_.make(Op::reduce, {}, {slot, t});
      made->elem = t->type;
      made->kind = uint8_t(AtomicOp::add);
      return;
    }
    Value* sum = is_zero ? t : b_.add(b_.get(slot), t);
    b_.put(slot, sum);
  }

  // ---- going back

  void back(const Region* region) {
    const Region* around = std::exchange(here_, region);
    for (const Inst* inst = region->last; inst; inst = inst->prev)
      if (!has(inst->op, flag::ends)) back(inst);
    here_ = around;
  }

  void back(const Inst* inst) {
    b_.at(inst->loc);
    switch (inst->op) {
      case Op::parallel:
        return parallel(inst, [&] {
          replay(inst->region(0));
          prepare(inst->region(0));
          back(inst->region(0));
        });
      case Op::if_: return back_branch(inst);
      case Op::loop: return back_loop(inst);
      case Op::while_: return expect_flat(inst);
      case Op::load: return back_load(inst);
      case Op::store: return back_store(inst);
      case Op::atomic: return back_atomic(inst);
      case Op::get:
        if (active_(inst->result())) accumulate(inst->operand(0), taken(inst));
        return;
      case Op::put: return back_put(inst);
      case Op::reduce: return back_reduce(inst);
      case Op::param:
        if (active_(inst->result())) add_to(scalar_[inst->binding()], taken(inst), true, false);
        return;
      case Op::bitcast:
        if (active_(inst->operand(0)))
          refuse(inst, "the bits of a float that varies", "it is nowhere smooth");
        return;
      default: return back_operation(inst);
    }
  }

  Value* taken(const Inst* inst) { return b_.get(adjoint_of(inst->result())); }

  void back_operation(const Inst* inst) {
    if (inst->results.empty() || !active_(inst->result())) return;
    Value* adjoint = taken(inst);
    const Type type = derivative_type(inst->type());
    if (inst->is(Op::convert)) {
      const Value* from = inst->operand(0);
      return accumulate(from, b_.convert(adjoint, derivative_type(from->type)));
    }
    const auto widened = [&](const Value* v) {
      return is_float(v->type) ? b_.convert(now(v), type) : now(v);
    };
    std::vector<Value*> operands;
    for (const Use& use : inst->operands) operands.push_back(widened(use.value));
    Value* result = widened(inst->result());
    for (size_t k = 0; k < operands.size(); k++) {
      if (!active_(inst->operand(k))) continue;
      Value* term = chain(b_, inst->op, operands, result, k, adjoint);
      if (term) accumulate(inst->operand(k), term);
    }
  }

  void back_branch(const Inst* inst) {
    Value* condition = now(inst->operand(0));
    Region* regions[2];
    for (size_t n = 0; n < 2; n++) {
      const Region* r = inst->region(n);
      regions[n] = inside(r, [&] {
        replay(r);
        prepare(r);
        for (size_t k = 0; k < inst->results.size(); k++) {
          const Value* yielded = r->terminator()->operand(k);
          if (!active_(inst->result(k)) || !active_(yielded)) continue;
          Value* t = b_.get(adjoint_of(inst->result(k)));
          accumulate(yielded, t);
        }
        back(r);
        b_.yield();
      });
    }
    Inst* made = b_.at(inst->loc).make(Op::if_, {}, {condition});
    b_.set_regions(made, {regions[0], regions[1]});
  }

  /// A loop of unknown rounds may stand where nothing goes back through it.
  void expect_flat(const Inst* inst) {
    bool has_effect = false;
    for (const Value& v : inst->results) has_effect |= active_(&v);
    walk(const_cast<Inst*>(inst)->region(1), [&](const Inst* i) {
      has_effect |=
          (i->is(Op::store) || i->is(Op::atomic) || i->is(Op::reduce)) && is_float(i->elem);
    });
    if (has_effect)
      refuse(inst, "a While loop that values go through", "give it a constant number of rounds");
  }

  // ---- fields and variables

  void back_load(const Inst* inst) {
    if (!active_(inst->result())) return;
    Value* t = taken(inst);
    b_.atomic(AtomicOp::add, companions_[inst->binding()], inst->component(), t->type,
              indices(inst), {&t, 1});
  }

  Value* adjoint_element(const Inst* inst) {
    return b_.load(companions_[inst->binding()], inst->component(), derivative_type(inst->elem),
                   indices(inst));
  }

  void back_store(const Inst* inst) {
    if (!is_float(inst->elem)) return;
    const Value* v = inst->operands.back().value;
    if (active_(v)) accumulate(v, adjoint_element(inst));
    Value* zero = b_.real(derivative_type(inst->elem), 0);
    b_.store(companions_[inst->binding()], inst->component(), indices(inst), zero);
  }

  void back_atomic(const Inst* inst) {
    if (!is_float(inst->elem)) return;
    if (inst->atomic() == AtomicOp::load) return back_load(inst);
    if (inst->atomic() != AtomicOp::add)
      refuse(inst, "an atomic " + std::string(name(inst->atomic())) + " of floats",
             "use atomic_add, or a loop over what is combined");
    const Value* v = inst->operands.back().value;
    if (active_(v)) accumulate(v, adjoint_element(inst));
  }

  void back_put(const Inst* inst) {
    const Value* slot = inst->operand(0);
    if (!active_(slot)) return;
    const Value* v = inst->operands.back().value;
    Value* old = b_.get(adjoint_of(slot));
    b_.put(adjoint_of(slot), b_.real(old->type, 0));
    if (active_(v)) accumulate(v, old);
  }

  void back_reduce(const Inst* inst) {
    const Value *slot = inst->operand(0), *v = inst->operand(1);
    if (!active_(slot) || !active_(v)) return;
    if (inst->atomic() != AtomicOp::add)
      refuse(inst, "what a loop reduces by " + std::string(name(inst->atomic())),
             "sums have one; others are written with a serial loop");
    accumulate(v, b_.get(adjoint_of(slot)));
  }

  const Kernel& primal_;
  Reverse& out_;
  Kernel& kernel_;
  Builder b_;
  const std::vector<bool> inputs_;
  const Activity active_;
  uint32_t first_seed_ = 0;
  std::vector<uint32_t> companions_;             ///< of each binding of the primal
  std::unordered_map<uint32_t, Value*> scalar_;  ///< slots of adjoints, by binding
  ValueMap values_;                              ///< the primal's, as they were computed last
  std::unordered_map<const Inst*, std::vector<Value*>> kept_;  ///< what loops carried, likewise
  std::unordered_map<const Value*, Adjoint> adjoints_;
  const Region* here_ = nullptr;  ///< of the primal, that is gone back through
  bool is_parallel_ = false;
};

}  // namespace

Reverse reverse(const Kernel& primal, const Premises& premises) {
  std::unique_ptr<Kernel> source = clone(primal);
  // Indices are those of the launch before, which was checked if it was to be.
  Premises unchecked = premises;
  unchecked.modes.checked = false;
  assume(*source, unchecked);
  optimise(*source);
  ReadsOfWritten(*source).expect_none();
  Reverse out;
  out.kernel = std::make_unique<Kernel>();
  Kernel& made = *out.kernel;
  made.name = "vjp of " + primal.name;
  made.loc = source->loc;
  made.level = Level::structured;
  made.modes = source->modes;
  made.bindings = source->bindings;
  Puller(*source, out).run();
  optimise(made);
  out.reads.assign(primal.bindings.size(), false);
  walk(made.body, [&](const Inst* inst) {
    if (accesses_element(inst->op) && inst->binding() < out.reads.size())
      out.reads[inst->binding()] = true;
  });
  return out;
}

}  // namespace quern::autodiff
