#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "quern/ir/type.h"

namespace quern::ir {

enum class Op : uint8_t {
#define QUERN_OP(name, rule, classes, flags, fold, partial, weight) name,
#include "quern/ir/ops.def"
#undef QUERN_OP
};

inline constexpr int op_count = 0
#define QUERN_OP(name, rule, classes, flags, fold, partial, weight) +1
#include "quern/ir/ops.def"
#undef QUERN_OP
    ;

enum class OperandRule : uint8_t {
  special,  ///< the verifier has a rule of its own
  same,     ///< all operands and the result share one type
  compare,  ///< two operands of one type, result b1
  pick,     ///< b1, T, T -> T
  convert,  ///< one scalar -> any other scalar
  bitcast,  ///< one scalar -> another of the same width
};

namespace flag {
enum : uint16_t {
  pure = 1,      ///< no effect; equal operands give equal results; removable
  may_fail = 2,  ///< never run where the program would not have run it
  commutes = 4,  ///< first two operands may be exchanged
  reads = 8,     ///< result depends on memory or a slot
  writes = 16,   ///< changes memory, a slot or the host's view
  control = 32,  ///< owns regions
  ends = 64,     ///< ends a region
  once = 128,    ///< never duplicated or merged
};
}

/// The kind of an `atomic`, `rmw`, `reduce` or `block_reduce`; printed after a dot: `atomic.add`.
/// Float min/max are fmin/fmax of docs/semantics.md. `load` is an atomic read (operand unused:
/// none).
enum class AtomicOp : uint8_t { add, mul, min, max, bit_and, bit_or, bit_xor, exchange, cas, load };

/// What a `builtin` yields, all i64. A chunked task runs iterations [begin, end) of its linear
/// domain as chunk number `chunk`; the serial task behind a task with reductions has the `end`
/// chunks of that to combine; an element task runs one thread out of `threads`, each starting at
/// `thread`; threads run in blocks of a size of the device's choice, and `block_thread` counts
/// those of a block from 0. Where an element task has several axes and is launched with fewer than
/// 2^31 iterations, `reciprocal` is abi::reciprocal of the extent of the innermost one in the order
/// of its walk, `next_reciprocal` that of the next. A combine task runs `end` threads, which share
/// them as an element task's do; it reads the `rows` rows of partial values from `first_row` on.
/// `asks` is 0 in a launch before which none can have failed, on targets that are told so
/// (TargetTraits::told_of_failures). In a task with lanes `chunk` is the number of the lane, until
/// lower_loops replaces it. `iteration` is the linear number of the iteration in its domain (a
/// serial task: 0); lower_loops replaces it.
enum class Builtin : uint8_t {
  chunk,
  begin,
  end,
  thread,
  threads,
  block_thread,
  reciprocal,
  next_reciprocal,
  first_row,
  rows,
  asks,
  iteration
};

/// Kind bits of an arithmetic instruction: `reassociate` lets a float operation be reassociated
/// (reductions whose order is unspecified); `uncontracted` keeps it out of an fma in every mode
/// (error terms of the math library).
inline constexpr uint8_t reassociate = 1;
/// Kind of a `loop` that walks the innermost axis of a parallel loop: its rounds are iterations.
inline constexpr uint8_t parallel_walk = 1;
/// Kind of a `loop` over a thread's share of the iterations: neither its index nor its step come
/// near the end of their type.
inline constexpr uint8_t thread_walk = 2;
/// Kind of an `if_` whose first region hardly ever runs; the second holds pure operations only and
/// may be run where the first is.
inline constexpr uint8_t rarely = 1;
inline constexpr uint8_t uncontracted = 2;

struct OpInfo {
  std::string_view name;
  OperandRule rule;
  bool bools, ints, floats;  ///< operand classes accepted
  int operands;              ///< count for same/compare/pick/convert/bitcast rules; -1: special
  uint16_t flags;
  int weight;
  bool library;  ///< has a body in ir/math
};

const OpInfo& info(Op op);
std::optional<Op> op_named(std::string_view name);
std::string_view name(AtomicOp op);
std::optional<AtomicOp> atomic_named(std::string_view name);
std::string_view name(Builtin b);
std::optional<Builtin> builtin_named(std::string_view name);

inline bool has(Op op, uint16_t f) { return (info(op).flags & f) != 0; }
inline bool is_pure(Op op) { return has(op, flag::pure); }

/// The meaning of an element-wise row on bits, as docs/semantics.md defines it (interpreter rule
/// and constant folder in one). `operand` is the type of the last operand, `result` of the result.
/// False for rows that have none (`none`), and for `library` rows (run their IR body).
bool evaluate(Op op, Type operand, Type result, std::span<const Bits> args, Bits& out);
/// One step of an atomic or a reduction: the new value from the old one and the operand.
Bits combine(AtomicOp op, Type type, Bits old, Bits value);
/// The value that leaves every contribution unchanged (float add: -0).
Bits identity(AtomicOp op, Type type);
/// Would `op` on these operands be an error in checked mode (÷ 0, cast that overflows)?
bool fails(Op op, Type operand, Type result, std::span<const Bits> args);

}  // namespace quern::ir
