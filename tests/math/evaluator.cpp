#include "tests/math/evaluator.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace quern::test {

using namespace ir;

Evaluator::Evaluator(const Function& function, bool contract)
    : contract_(contract), parameters_(function.body->args.size()) {
  for (Value& v : function.body->args) number(&v);
  root_ = compile(function.body);
  values_.resize(numbered_.size());
}

int Evaluator::number(const Value* v) {
  auto it = std::find(numbered_.rbegin(), numbered_.rend(), v);
  if (it != numbered_.rend()) return int(numbered_.rend() - it) - 1;
  numbered_.push_back(v);
  return int(numbered_.size()) - 1;
}

int Evaluator::compile(const Region* region) {
  int index = int(blocks_.size());
  blocks_.emplace_back();
  Block block;
  auto plain = [](const Inst* i) { return i && !(i->kind & uncontracted); };
  for (const Inst* inst = region->first; inst != region->last; inst = inst->next) {
    Step s;
    s.op = inst->op;
    s.result = inst->type();
    s.imm = inst->imm;
    if (inst->op == Op::if_) {
      s.argument[0] = number(inst->operand(0));
      for (int k = 0; k < 2; k++) s.branch[k] = compile(inst->region(size_t(k)));
      for (Value& v : inst->results) s.results.push_back(number(&v));
      block.steps.push_back(s);
      continue;
    }
    if (inst->op == Op::loop) {
      for (const Use& use : inst->operands) s.loop_operands.push_back(number(use.value));
      for (Value& v : inst->region(0)->args) s.loop_arguments.push_back(number(&v));
      s.operand = inst->operand(0)->type;
      s.branch[0] = compile(inst->region(0));
      for (Value& v : inst->results) s.results.push_back(number(&v));
      block.steps.push_back(s);
      continue;
    }
    std::vector<Value*> operands;
    for (const Use& use : inst->operands) operands.push_back(use.value);
    if (!operands.empty()) s.operand = operands.back()->type;
    if (contract_ && (inst->op == Op::add || inst->op == Op::sub) && is_float(inst->type()) &&
        plain(inst)) {
      auto product = [&](size_t k) {
        const Inst* i = operands[k]->inst;
        return plain(i) && i->op == Op::mul;
      };
      for (size_t k = 0; k < 2 && !s.fused; k++)
        if (product(k)) {
          Inst* mul = operands[k]->inst;
          s.fused = inst->op == Op::add ? 1 : k == 0 ? 2 : 3;
          operands = {mul->operand(0), mul->operand(1), operands[1 - k]};
        }
    }
    for (Value* v : operands) s.argument[s.arguments++] = number(v);
    s.out = number(inst->result());
    block.steps.push_back(s);
  }
  for (const Use& use : region->last->operands) block.yields.push_back(number(use.value));
  blocks_[size_t(index)] = std::move(block);
  return index;
}

void Evaluator::run(const Block& block) {
  for (const Step& s : block.steps) {
    if (s.op == Op::constant) {
      values_[size_t(s.out)] = s.imm;
      continue;
    }
    Bits args[3];
    for (int k = 0; k < s.arguments; k++) args[k] = values_[size_t(s.argument[k])];
    if (s.op == Op::if_) {
      const Block& taken = blocks_[size_t(s.branch[values_[size_t(s.argument[0])] ? 0 : 1])];
      run(taken);
      for (size_t k = 0; k < s.results.size(); k++)
        values_[size_t(s.results[k])] = values_[size_t(taken.yields[k])];
      continue;
    }
    if (s.op == Op::loop) {
      run_loop(s);
      continue;
    }
    if (s.fused) {
      auto fma = [&](auto a, auto b, auto c) {
        return bits_of(std::fma(s.fused == 3 ? -a : a, b, s.fused == 2 ? -c : c));
      };
      values_[size_t(s.out)] = s.result == Type::f32
                                   ? fma(f32_of(args[0]), f32_of(args[1]), f32_of(args[2]))
                                   : fma(f64_of(args[0]), f64_of(args[1]), f64_of(args[2]));
      continue;
    }
    if (!evaluate(s.op, s.operand, s.result, {args, size_t(s.arguments)}, values_[size_t(s.out)]))
      throw std::logic_error("no meaning for " + std::string(info(s.op).name));
  }
}

void Evaluator::run_loop(const Step& s) {
  auto value = [&](int k) -> Bits& { return values_[size_t(k)]; };
  auto integer = [&](int k) { return to_signed(value(s.loop_operands[size_t(k)]), s.operand); };
  const int64_t lo = integer(0), hi = integer(1), step = integer(2);
  for (size_t k = 0; k < s.results.size(); k++) value(s.results[k]) = value(s.loop_operands[k + 3]);
  const Block& body = blocks_[size_t(s.branch[0])];
  for (int64_t i = lo; i < hi; i += step) {
    value(s.loop_arguments[0]) = truncate(Bits(i), s.operand);
    for (size_t k = 0; k < s.results.size(); k++)
      value(s.loop_arguments[k + 1]) = value(s.results[k]);
    run(body);
    for (size_t k = 0; k < s.results.size(); k++) value(s.results[k]) = value(body.yields[k]);
  }
}

Bits Evaluator::operator()(std::initializer_list<Bits> args) {
  size_t k = 0;
  for (Bits a : args) values_[k++] = a;
  run(blocks_[size_t(root_)]);
  return values_[size_t(blocks_[size_t(root_)].yields[0])];
}

}  // namespace quern::test
