#include "autodiff/plans/costs.h"

#include <algorithm>
#include <optional>

#include "quern/ir/ops.h"

namespace quern::autodiff {

using namespace ir;

namespace {
constexpr double usual_rounds = 16;

/// Of an integer constant.
std::optional<int64_t> number(const Value* v) {
  if (!v->inst || !v->inst->is(Op::constant)) return {};
  return to_signed(v->inst->imm, v->type);
}
}  // namespace

int64_t constant_rounds(const Inst* loop) {
  const auto begin = number(loop->operand(0)), end = number(loop->operand(1)),
             step = number(loop->operand(2));
  if (!begin || !end || !step || *step <= 0) return -1;
  return *begin < *end ? (*end - *begin - 1) / *step + 1 : 0;
}

double iterations(const Inst* parallel) {
  double all = 1;
  for (size_t k = 0; k + 1 < parallel->operand_count(); k += 2) {
    const auto begin = number(parallel->operand(k)), end = number(parallel->operand(k + 1));
    if (!begin || !end) return usual_rounds;
    all *= std::max(double(*end) - double(*begin), 0.0);
  }
  return parallel->operand_count() == 0 ? usual_rounds : all;
}

double cost(const Inst* inst) {
  if (info(inst->op).library) return library_call;
  switch (inst->op) {
    case Op::constant:
    case Op::param: return 0;
    case Op::apply: return 100;
    case Op::div:
    case Op::rem:
    case Op::sqrt: return 5;
    case Op::load: return 2;
    case Op::if_: return 1 + cost(inst->region(0)) + cost(inst->region(1));
    case Op::while_: return usual_rounds * (cost(inst->region(0)) + cost(inst->region(1)));
    case Op::loop: {
      const int64_t rounds = constant_rounds(inst);
      return (rounds < 0 ? usual_rounds : double(rounds)) * (1 + cost(inst->region(0)));
    }
    default: return 1;
  }
}

double cost(const Region* region) {
  double sum = 0;
  for (const Inst* inst : *region) sum += cost(inst);
  return sum;
}

}  // namespace quern::autodiff
