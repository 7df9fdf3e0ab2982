#include "autodiff/plans/costs.h"

#include "quern/ir/ops.h"

namespace quern::autodiff {

using namespace ir;

namespace {
constexpr double usual_rounds = 16;
}

int64_t constant_rounds(const Inst* loop) {
  int64_t v[3];
  for (size_t k = 0; k < 3; k++) {
    const Inst* made = loop->operand(k)->inst;
    if (!made || !made->is(Op::constant)) return -1;
    v[k] = to_signed(made->imm, made->type());
  }
  if (v[2] <= 0) return -1;
  return v[0] < v[1] ? (v[1] - v[0] - 1) / v[2] + 1 : 0;
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
