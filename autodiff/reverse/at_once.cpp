#include "autodiff/reverse/at_once.h"

#include <algorithm>
#include <set>
#include <utility>

#include "autodiff/plans/alike_rows.h"
#include "autodiff/plans/costs.h"
#include "autodiff/plans/loop_plans.h"
#include "autodiff/reverse/replay.h"
#include "quern/ir/lower.h"
#include "quern/ir/partials.h"

namespace quern::autodiff {

using namespace ir;

namespace {

bool is_addition(const Inst* inst) {
  return inst->is(Op::atomic) && inst->atomic() == AtomicOp::add && !inst->used() &&
         is_float(inst->elem);
}

/// The fields whose adjoints a kernel adds to.
std::set<uint32_t> given_adjoints(const Kernel& kernel) {
  std::set<uint32_t> given;
  walk(kernel.body, [&](const Inst* inst) {
    if (!accesses_element(inst->op)) return;
    const Binding& b = kernel.bindings[inst->binding()];
    if (b.is_derived() && b.companion == adjoints) given.insert(b.of);
  });
  return given;
}

/// A kernel whose result is how many additions going back would compute again, i64.
std::unique_ptr<Kernel> spared_by(const Kernel& primal, const LoopPlans& plans,
                                  std::unique_ptr<Kernel> made) {
  Builder b(*made);
  made->body = b.make_region();
  b.at_end(made->body).at(made->loc);
  const LoggedReads none;
  const std::vector<RoundsSite> no_sites;
  Replay values(primal, none, plans, b, no_sites, {});
  values.region(primal.body, Replay::plain);
  Value* spared = b.integer(Type::i64, 0);
  for (const Inst* inst : *primal.body) {
    if (!inst->is(Op::parallel)) continue;
    Value* each = b.integer(Type::i64, int64_t(cost(inst->region(0))));
    spared = b.add(spared, b.mul(iterations_of(b, inst, values.operands_now(inst)), each));
  }
  made->results = {Type::i64};
  b.yield({spared});
  optimise(*made);
  return made;
}

/// Adds to the adjoints of fields what was kept for an adjoint of 1 of a number, times its own.
class Multiplying {
 public:
  Multiplying(Kernel& kernel, uint32_t of_number, Type type)
      : kernel_(kernel), b_(kernel), of_number_(of_number), type_(type) {
    kernel.body = b_.make_region();
    b_.at_end(kernel.body).at(kernel.loc);
  }

  void add(uint32_t kept, uint32_t adjoints) {
    const Binding& of = kernel_.bindings[kept];
    Inst* loop = nullptr;
    std::vector<Value*> index;
    if (of.rank > 0) {
      loop = b_.make(Op::parallel, {}, {});
      loop->kind = of.rank;
      loop->options.over = kept;
      const std::vector<Type> types(of.rank, Type::i64);
      Region* body = b_.make_region(std::span<const Type>(types));
      b_.set_regions(loop, {body});
      for (Value& v : body->args) index.push_back(&v);
      b_.at_end(body);
    }
    Value* factor = b_.load(of_number_, 0, type_, {});
    for (uint32_t c = 0; c < of.components.size(); c++)
      if (const Type type = of.components[c].type; is_float(type)) {
        const Type wide = bit_width(type) < bit_width(type_) ? type_ : type;
        Value* t = b_.convert(factor, wide);
        Value* gives = b_.convert(b_.load(kept, c, type, index), wide);
        Value* term = zero_with(b_, t, b_.mul(t, gives), Further::no);
        term = b_.convert(zero_with(b_, gives, term, Further::no), type);
        b_.store(adjoints, c, index, b_.add(b_.load(adjoints, c, type, index), term));
      }
    if (!loop) return;
    b_.yield();
    b_.after(loop);
  }

  void end() {
    b_.yield();
    optimise(kernel_);
  }

 private:
  Kernel& kernel_;
  Builder b_;
  const uint32_t of_number_;
  const Type type_;
};

}  // namespace

bool has_effect(const Inst* inst) {
  const bool is_load = inst->is(Op::atomic) && inst->atomic() == AtomicOp::load;
  return has(inst->op, flag::writes) && !has(inst->op, flag::slots) && !is_load &&
         !inst->is(Op::call_number);
}

uint32_t number_added_to(const Kernel& kernel, const std::vector<bool>& inputs) {
  if (!kernel.results.empty()) return no_binding;
  uint32_t number = no_binding, component = 0;
  bool fits = true;
  walk(kernel.body, [&](const Inst* inst) {
    if (inst->is(Op::parallel)) fits = fits && inst->parent == kernel.body;
    fits = fits && !inst->is(Op::apply);
    if (!has_effect(inst)) return;
    const bool is_first = number == no_binding;
    fits = fits && is_addition(inst) && kernel.bindings[inst->binding()].rank == 0 &&
           (is_first || (number == inst->binding() && component == inst->component()));
    if (!fits) return;
    number = inst->binding();
    component = inst->component();
  });
  if (!fits || number == no_binding || !inputs[number]) return no_binding;
  const Binding& of = kernel.bindings[number];
  if (of.components.size() > 1) return no_binding;
  walk(kernel.body, [&](const Inst* inst) {
    if (!accesses_element(inst->op) || is_addition(inst)) return;
    const uint32_t other = kernel.bindings[inst->binding()].alias_class;
    fits = fits && other && other != of.alias_class;
  });
  return fits ? number : no_binding;
}

bool pays_at_once(uint64_t additions, uint64_t bytes) {
  // What is kept is cleared, added to and read, and adjoints are added to that would be anyway.
  constexpr double often = 4;
  return double(additions) >= to_make_a_kernel + often * to_keep_byte * double(bytes);
}

void make_at_once(const Kernel& primal, const LoopPlans& plans, uint32_t number, Reverse& out,
                  std::unique_ptr<Kernel> count, std::unique_ptr<Kernel> kernel) {
  AtOnce at_once;
  at_once.assigned = std::exchange(out.assigned, {});
  const auto declare = [&](Binding b) {
    kernel->bindings.push_back(std::move(b));
    return uint32_t(kernel->bindings.size() - 1);
  };
  const std::set<uint32_t> given = given_adjoints(*out.kernel);
  for (uint32_t k = 0; k < out.fields.size(); k++) {
    uint32_t& field = out.fields[k];
    if (field == no_binding) continue;
    if (k != number && given.contains(field))
      at_once.kept.push_back({k, uint32_t(at_once.looked_up_by.size())});
    at_once.looked_up_by.push_back(field);
    field = declare(kernel->bindings[k]);
  }
  at_once.lent = std::exchange(out.lent, {});
  for (uint32_t k = 0; k < at_once.lent.size(); k++)
    at_once.looked_up_by.push_back(out.first_lent + k);

  const auto adjoints_of = [&](uint32_t k) {
    Binding b = primal.bindings[k];
    for (Component& c : b.components) c.type = derivative_type(c.type);
    return b;
  };
  std::vector<uint32_t> factors;
  for (const AtOnce::Kept& kept : at_once.kept) {
    Binding b = adjoints_of(kept.field);
    b.name = "what " + b.name + " gives";
    factors.push_back(declare(std::move(b)));
  }
  const auto companion = [&](uint32_t k) {
    Binding b = adjoints_of(k);
    b.name = "the adjoints of " + b.name;
    b.of = out.fields[k];
    b.companion = adjoints;
    return declare(std::move(b));
  };
  std::vector<uint32_t> companions;
  for (const AtOnce::Kept& kept : at_once.kept) companions.push_back(companion(kept.field));
  const uint32_t of_number = companion(number);
  Multiplying multiplying(*kernel, of_number, kernel->bindings[of_number].components[0].type);
  for (size_t k = 0; k < factors.size(); k++) multiplying.add(factors[k], companions[k]);
  multiplying.end();

  out.augmented.count = spared_by(primal, plans, std::move(count));
  out.augmented.kernel = std::exchange(out.kernel, std::move(kernel));
  out.augmented.at_once = std::move(at_once);
  dump_plan(primal.loc,
            "the launch computes what an adjoint of 1 gives, for going back to multiply");
}

}  // namespace quern::autodiff
