#include "tests/math/evaluator.h"

#include "quern/ir/builder.h"
#include "quern/ir/lower.h"

namespace quern::test {

using namespace ir;

namespace {

/// A kernel whose parameters and result are the function's.
std::unique_ptr<Kernel> kernel_of(const Function& function) {
  auto kernel = std::make_unique<Kernel>();
  kernel->level = Level::structured;
  Builder b(*kernel);
  kernel->body = b.make_region();
  b.at_end(kernel->body);
  ValueMap map;
  for (const Value& v : function.body->args) {
    Binding parameter;
    parameter.components.push_back({v.type});
    kernel->bindings.push_back(parameter);
    map[&v] = b.param(uint32_t(kernel->bindings.size() - 1), v.type);
  }
  Value* result = inline_region(b, function.body, map)[0];
  kernel->results = {result->type};
  b.yield({result});
  return kernel;
}

const Inst* product(const Value* v) {
  const Inst* inst = v->inst;
  return inst && inst->is(Op::mul) && !(inst->kind & uncontracted) ? inst : nullptr;
}

/// Sums and differences of a product become fma operations.
void contract_products(Kernel& kernel) {
  walk(kernel, [&](Inst* inst) {
    if (!inst->is(Op::add) && !inst->is(Op::sub)) return;
    if (!is_float(inst->type()) || (inst->kind & uncontracted)) return;
    const size_t which = product(inst->operand(0)) ? 0 : 1;
    const Inst* mul = product(inst->operand(which));
    if (!mul) return;
    Builder b(kernel);
    b.before(inst);
    Value *factor = mul->operand(0), *rest = inst->operand(1 - which);
    if (inst->is(Op::sub)) {
      Value*& negated = which == 0 ? rest : factor;
      negated = b.unary(Op::neg, negated);
    }
    inst->result()->replace_with(b.fma(factor, mul->operand(1), rest));
    inst->erase();
  });
}

}  // namespace

Evaluator::Evaluator(const Function& function, bool contract) {
  auto kernel = kernel_of(function);
  if (contract) contract_products(*kernel);
  split(*kernel);
  layout_ = abi::layout(*kernel);
  block_.resize(layout_.bytes);
  frame_.resize(kernel->frame.size());
  parameters_ = function.body->args.size();
  abi::Writer(layout_, block_.data())
      .head({.frame = reinterpret_cast<uint64_t>(frame_.data()),
             .error = reinterpret_cast<uint64_t>(&error_)});
  tasks_ = std::make_unique<interpreter::Tasks>(*kernel);
}

Bits Evaluator::operator()(std::initializer_list<Bits> args) {
  abi::Writer writer(layout_, block_.data());
  for (size_t k = 0; k < parameters_; k++) writer.scalar(k, args.begin()[k]);
  tasks_->run(0, block_.data());
  return frame_[0];
}

}  // namespace quern::test
