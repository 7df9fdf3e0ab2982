#include "ir/passes/lower/digits.h"

#include <bit>

namespace quern::ir {

std::pair<Value*, Value*> divide(Builder& b, Value* v, uint32_t by) {
  if (std::has_single_bit(by)) {
    Value* shift = b.integer(v->type, std::countr_zero(by));
    Value* mask = b.integer(v->type, by - 1);
    return {b.binary(Op::shr, v, shift), b.binary(Op::bit_and, v, mask)};
  }
  Value* n = b.integer(v->type, by);
  Value* quotient = b.div(v, n);
  return {quotient, b.sub(v, b.mul(quotient, n))};
}

}  // namespace quern::ir
