#include "autodiff/reverse/free_sums.h"

#include <algorithm>

#include "autodiff/primal/moves.h"

namespace quern::autodiff {

using namespace ir;

namespace {

/// The floats whose bits decide on something.
Sources deciding_in(const Kernel& kernel, bool yields_values, uint32_t number) {
  Sources deciding;
  if (yields_values) deciding.add_operands(kernel.body->terminator());
  const auto decides = [&](const Value& v) { return !is_float(v.type) || deciding.contains(&v); };
  const auto adds_to_number = [&](const Inst* inst) {
    return number != no_binding && inst->is(Op::atomic) && inst->binding() == number;
  };
  deciding.find(kernel.body, [&](const Inst* inst) {
    if (adds_to_number(inst)) return deciding.add_operands(inst);
    if (!deciding.follow_moves(inst) && std::ranges::any_of(inst->results, decides))
      deciding.add_operands(inst);
  });
  return deciding;
}

/// What adds to carried value number k of the loop in each round, and nothing else that uses it.
const Inst* running_sum(const Inst* loop, size_t k) {
  const Region* body = loop->region(0);
  const Value* before = body->arg(1 + k);
  const Inst* sum = body->terminator()->operand(k)->inst;
  const bool is_alone = before->uses && !before->uses->next;
  if (!sum || sum->parent != body || !is_alone || before->uses->user != sum) return nullptr;
  if (sum->is(Op::add) || (sum->is(Op::sub) && sum->operand(0) == before)) return sum;
  return nullptr;
}

}  // namespace

std::unordered_set<const Inst*> free_sums(const Kernel& kernel, bool yields_values,
                                          uint32_t number) {
  const Sources deciding = deciding_in(kernel, yields_values, number);
  std::unordered_set<const Inst*> sums;
  walk(kernel.body, [&](const Inst* inst) {
    if (!inst->is(Op::loop)) return;
    for (size_t k = 0; k < inst->results.size(); k++) {
      const Inst* sum = is_float(inst->result(k)->type) ? running_sum(inst, k) : nullptr;
      if (sum && !deciding.contains(sum->result())) sums.insert(sum);
    }
  });
  return sums;
}

}  // namespace quern::autodiff
