#pragma once
// Atomic operations for random programs: those of which nobody sees in which order they were done.
#include "tests/fuzz/engine/values.h"

namespace quern::fuzz {

/// On an element.
inline ir::AtomicOp update_of(Random& random, ir::Type type) {
  using enum ir::AtomicOp;
  if (!is_int(type)) return random.pick<ir::AtomicOp>({min, max});
  return random.pick<ir::AtomicOp>({add, add, mul, min, max, bit_and, bit_or, bit_xor});
}

/// Of a reduction: in strict kernels those of floats have an order of their own.
inline ir::AtomicOp reduction_of(Random& random, ir::Type type, bool strict) {
  using enum ir::AtomicOp;
  if (type == ir::Type::b1) return random.pick<ir::AtomicOp>({bit_and, bit_or, bit_xor});
  if (is_int(type)) return update_of(random, type);
  if (!strict) return random.pick<ir::AtomicOp>({min, max});
  return random.pick<ir::AtomicOp>({add, add, mul, min, max});
}

}  // namespace quern::fuzz
