#include "ir/passes/optimise/close_counters.h"

#include <vector>

#include "ir/analysis/facts.h"
#include "ir/analysis/slice.h"
#include "ir/analysis/uniformity.h"
#include "quern/ir/builder.h"

namespace quern::ir {

namespace {

class Counters {
 public:
  explicit Counters(Kernel& kernel) : kernel_(kernel), b_(kernel) {}

  /// Inner loops first: what they have counted may be what a round outside adds.
  void run(Region* region) {
    for (Inst* inst : *region) {
      for (Region* inner : inst->regions) run(inner);
      if (inst->is(Op::loop) && is_constant(inst->operand(2), 1)) close(inst);
    }
  }

 private:
  void close(Inst* loop) {
    Uniformity stays(kernel_, loop->region(0));
    for (size_t k = 0; k < loop->results.size(); k++) {
      Value* counter = loop->region(0)->arg(k + 1);
      if (!is_int(counter->type) || !is_counted(loop, counter->type)) continue;
      if (!counter->uses && !loop->result(k)->uses) continue;
      const Inst* next = loop->region(0)->terminator()->operand(k)->inst;
      if (!next || next->parent != loop->region(0)) continue;
      const bool adds = next->is(Op::add);
      if (!adds && !next->is(Op::sub)) continue;
      Value* amount = nullptr;
      for (size_t n = 0; n < 2; n++)
        if (next->operand(n) == counter && (adds || n == 0)) amount = next->operand(1 - n);
      if (!amount || !stays(amount)) continue;
      ValueMap copies;
      b_.before(loop).at(next->loc);
      Value* each = repeat_outside(b_, loop->region(0), amount, copies);
      const Op op = next->op;
      replace(loop, k, [&](Value* rounds) {
        Value* all = is_constant(each, 1) ? rounds : b_.mul(rounds, each);
        return is_constant(loop->operand(3 + k), 0) && op == Op::add
                   ? all
                   : b_.binary(op, loop->operand(3 + k), all);
      });
    }
  }

  /// Does the number of a round come out right in this type?
  static bool is_counted(const Inst* loop, Type type) {
    const Value* lo = loop->operand(0);
    if (bit_width(lo->type) >= bit_width(type)) return true;
    const Inst* c = constant_of(lo);
    return c && (!is_signed(lo->type) || to_signed(c->imm, lo->type) >= 0);
  }

  template <class F>
  void replace(Inst* loop, size_t number, const F& after) {
    Value *lo = loop->operand(0), *hi = loop->operand(1);
    const Type type = loop->result(number)->type;
    if (loop->result(number)->uses) {
      const Inst *first = constant_of(lo), *end = constant_of(hi);
      Value* rounds = nullptr;
      if (first && end) {
        rounds = b_.constant(type, has_rounds(loop) ? truncate(end->imm - first->imm, type) : 0);
      } else {
        Value *is_any = b_.lt(lo, hi), *span = is_constant(lo, 0) ? hi : b_.sub(hi, lo);
        rounds = b_.convert(b_.select(is_any, span, b_.integer(lo->type, 0)), type);
      }
      loop->result(number)->replace_with(after(rounds));
    }
    Region* body = loop->region(0);
    if (!body->arg(number + 1)->uses) return;
    b_.before(body->first);
    Value* index = body->arg(0);
    Value* round = b_.convert(is_constant(lo, 0) ? index : b_.sub(index, lo), type);
    body->arg(number + 1)->replace_with(after(round));
  }

  Kernel& kernel_;
  Builder b_;
};

}  // namespace

void close_counters(Kernel& kernel) {
  if (kernel.body) Counters(kernel).run(kernel.body);
  for (Function& f : kernel.callees) Counters(kernel).run(f.body);
}

}  // namespace quern::ir
