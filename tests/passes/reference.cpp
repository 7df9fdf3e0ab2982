#include "tests/passes/reference.h"

#include <unordered_map>

namespace quern::test {

using namespace ir;

namespace {

struct OutOfSteps {};

/// How a region ended: with its yield, or by leaving loops.
struct Flow {
  enum Kind { yield, leave, next, done } kind = yield;
  uint64_t loops = 0;
};

class Machine {
 public:
  Machine(const Kernel& kernel, std::vector<std::vector<Bits>> fields, size_t steps)
      : kernel_(kernel), steps_(steps) {
    out_.fields = std::move(fields);
  }

  Outcome run() {
    try {
      run(kernel_.body);
      out_.results = kernel_.results.empty() ? std::vector<Bits>() : yielded_;
      out_.results.resize(kernel_.results.size());
    } catch (OutOfSteps) {
      out_.ended = false;
    }
    return out_;
  }

 private:
  Bits value(const Value* v) const { return values_.at(v); }
  void set(const Value* v, Bits bits) { values_[v] = bits; }
  std::vector<Bits> operands(const Inst* inst, size_t from = 0) const {
    std::vector<Bits> all;
    for (size_t k = from; k < inst->operand_count(); k++) all.push_back(value(inst->operand(k)));
    return all;
  }
  static bool below(Type t, Bits a, Bits b) {
    return is_signed(t) ? to_signed(a, t) < to_signed(b, t) : a < b;
  }

  Flow run(const Region* region) {
    for (const Inst* inst = region->first; inst; inst = inst->next) {
      if (steps_-- == 0) throw OutOfSteps{};
      if (has(inst->op, flag::ends)) {
        if (!inst->is(Op::yield) && !inst->is(Op::return_)) {
          bool leaves = inst->is(Op::break_);
          return {leaves ? Flow::leave : Flow::next, inst->imm};
        }
        yielded_ = operands(inst);
        return {inst->is(Op::return_) ? Flow::done : Flow::yield};
      }
      Flow flow = step(inst);
      if (flow.kind != Flow::yield) return flow;
    }
    return {};
  }

  void bind(std::span<Value> to, const std::vector<Bits>& from, size_t at = 0) {
    for (size_t k = 0; k < to.size(); k++) set(&to[k], from[at + k]);
  }

  /// What a loop does after its body: true to go on, else the flow to hand outwards.
  static bool goes_on(Flow& flow) {
    if (flow.kind == Flow::yield) return true;
    if (flow.kind == Flow::next && flow.loops == 0) {
      flow = {};
      return true;
    }
    if (flow.kind == Flow::next) {
      flow.loops--;
    } else if (flow.kind == Flow::leave) {
      if (--flow.loops == 0) flow = {};
    }
    return false;
  }

  Flow loop(const Inst* inst) {
    Type t = inst->operand(0)->type;
    std::vector<Bits> in = operands(inst), carried(in.begin() + 3, in.end());
    for (Bits i = in[0]; below(t, i, in[1]);) {
      set(inst->region(0)->arg(0), i);
      bind(inst->region(0)->args.subspan(1), carried);
      Flow flow = run(inst->region(0));
      bool ended = flow.kind != Flow::yield;
      if (!goes_on(flow)) return flow;
      if (!ended) carried = yielded_;
      Bits next = truncate(i + in[2], t);
      if (!below(t, i, next)) break;
      i = next;
    }
    bind(inst->results, carried);
    return {};
  }

  Flow while_loop(const Inst* inst) {
    std::vector<Bits> carried = operands(inst);
    for (;;) {
      bind(inst->region(0)->args, carried);
      run(inst->region(0));
      carried.assign(yielded_.begin() + 1, yielded_.end());
      if (!yielded_[0]) break;
      bind(inst->region(1)->args, carried);
      Flow flow = run(inst->region(1));
      bool ended = flow.kind != Flow::yield;
      if (!goes_on(flow)) return flow;
      if (!ended) carried = yielded_;
    }
    bind(inst->results, carried);
    return {};
  }

  Flow parallel(const Inst* inst) {
    Type t = inst->operand(0)->type;
    for (Bits i = value(inst->operand(0)); below(t, i, value(inst->operand(1))); i++) {
      set(inst->region(0)->arg(0), i);
      run(inst->region(0));
    }
    return {};
  }

  Bits& element(const Inst* inst, Bits index) { return out_.fields.at(inst->binding()).at(index); }

  Flow step(const Inst* inst) {
    switch (inst->op) {
      case Op::constant: set(inst->result(), inst->imm); break;
      case Op::param: set(inst->result(), out_.fields.at(inst->binding()).at(0)); break;
      case Op::extent: set(inst->result(), out_.fields.at(inst->binding()).size()); break;
      case Op::slot: slots_[inst] = std::vector<Bits>(inst->imm); break;
      case Op::get:
        set(inst->result(), slots_.at(inst->operand(0)->inst)
                                .at(inst->operand_count() > 1 ? value(inst->operand(1)) : 0));
        break;
      case Op::put: {
        bool indexed = inst->operand_count() > 2;
        slots_.at(inst->operand(0)->inst).at(indexed ? value(inst->operand(1)) : 0) =
            value(inst->operand(indexed ? 2 : 1));
        break;
      }
      case Op::reduce: {
        Bits& old = slots_.at(inst->operand(0)->inst).at(0);
        old = combine(inst->atomic(), inst->elem, old, value(inst->operand(1)));
        break;
      }
      case Op::load: set(inst->result(), element(inst, value(inst->operand(0)))); break;
      case Op::store: element(inst, value(inst->operand(0))) = value(inst->operand(1)); break;
      case Op::atomic: {
        Bits& old = element(inst, value(inst->operand(0)));
        set(inst->result(), old);
        old = combine(inst->atomic(), inst->elem, old, value(inst->operand(1)));
        break;
      }
      case Op::check:
        if (value(inst->operand(0))) break;
        [[fallthrough]];
      case Op::print:
        for (Bits b : operands(inst)) out_.effects.push_back(b);
        break;
      case Op::call: {
        const Function& f = kernel_.callees.at(inst->imm);
        bind(f.body->args, operands(inst));
        yielded_.clear();
        run(f.body);
        yielded_.resize(f.results.size());
        bind(inst->results, yielded_);
        break;
      }
      case Op::if_: {
        Flow flow = run(inst->region(value(inst->operand(0)) ? 0 : 1));
        if (flow.kind != Flow::yield) return flow;
        bind(inst->results, yielded_);
        break;
      }
      case Op::loop: return loop(inst);
      case Op::while_: return while_loop(inst);
      case Op::parallel: return parallel(inst);
      default: {
        Bits out = 0;
        Type operand = inst->operand(inst->operand_count() - 1)->type;
        if (!ir::evaluate(inst->op, operand, inst->type(), operands(inst), out))
          throw InternalError("the reference evaluator does not know '" +
                              std::string(info(inst->op).name) + "'");
        set(inst->result(), out);
      }
    }
    return {};
  }

  const Kernel& kernel_;
  size_t steps_;
  Outcome out_;
  std::unordered_map<const Value*, Bits> values_;
  std::unordered_map<const Inst*, std::vector<Bits>> slots_;
  std::vector<Bits> yielded_;
};

}  // namespace

Outcome evaluate(const Kernel& kernel, std::vector<std::vector<Bits>> fields, size_t steps) {
  return Machine(kernel, std::move(fields), steps).run();
}

}  // namespace quern::test
