#pragma once
// What the generator of random programs knows of the place where it writes the next statement.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "quern/ir/ir.h"

namespace quern::fuzz {

using ir::AtomicOp;
using ir::Type;
using ir::Value;

/// What the iterations of the current parallel loop may do with a piece of memory.
struct Role {
  enum Kind { read, own, atomic } kind = read;
  std::vector<AtomicOp> ops = {};       ///< atomic: of each component
  std::vector<Value*> everywhere = {};  ///< atomic: the index that all iterations use, if they do
};

struct Slot {
  Value* value;
  Type type;
  uint64_t count;
  bool shared;    ///< of kernel level
  bool reducing;  ///< a target of the current parallel loop
  AtomicOp op;
};

/// Where the generator stands.
struct State {
  bool parallel = false, function = false;
  int depth = 0;
  uint64_t trips = 1;      ///< rounds of the loops around, at most
  size_t breakable = 0;    ///< loops that break may leave
  size_t continuable = 0;  ///< those, and the parallel loop
  bool returnable = false;

  bool kernel_level() const { return !parallel && !function; }
  /// Inside something that exits may not leave.
  State closed() const {
    State s = *this;
    s.breakable = s.continuable = 0;
    s.returnable = false;
    return s;
  }
};

}  // namespace quern::fuzz
