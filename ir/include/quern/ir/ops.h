#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "quern/ir/type.h"

namespace quern::ir {

enum class Op : uint8_t {
#define QUERN_OP(name, rule, operands, classes, flags, fold, partial, weight) name,
#define QUERN_FORM(name, form, kind, names, regions, levels, flags) name,
#include "quern/ir/ops.def"
};

inline constexpr int op_count = 0
#define QUERN_OP(name, rule, operands, classes, flags, fold, partial, weight) +1
#define QUERN_FORM(name, form, kind, names, regions, levels, flags) +1
#include "quern/ir/ops.def"
    ;

/// How the types of an element-wise operation relate.
enum class OperandRule : uint8_t {
  special,  ///< not element-wise: types follow from the form
  same,     ///< all operands and the result share one type
  compare,  ///< two operands of one type, result b1
  pick,     ///< b1, T, T -> T
  convert,  ///< one scalar -> any other scalar
  bitcast,  ///< one scalar -> another of the same width
};

/// An operand or result of the other operations, as their forms write them.
enum class Item : uint8_t {
  b1,  ///< of this type, as the next four are
  u32,
  u64,
  i64,
  address,
  slot,  ///< what a `slot` has made; `[slot]`: if it stands outside of tasks
  scalar,
  any,  ///< a scalar or an address
  integer,
  elem,     ///< Inst::elem
  index,    ///< an integer, where the slot has several elements
  indices,  ///< an integer for each axis of the binding; of the frame: one or none
  values,   ///< as many of elem as the AtomicOp takes
  rest,     ///< `any*`: any number of any type
};
/// Where Inst::elem stands in a form.
enum class ElemUse : uint8_t { none, operand, result, own };
struct Form {
  Item operands[4] = {}, results[1] = {};
  uint8_t operand_count = 0, result_count = 0;
  ElemUse elem = ElemUse::none;
};

/// What Inst::kind is.
enum class KindUse : uint8_t {
  none,
  arithmetic,  ///< reassociate | uncontracted | unasked | distribute
  loop,        ///< parallel_walk, with brief or without, or thread_walk
  branch,      ///< rarely or sparing
  slot,        ///< unset, by_round
  rank,        ///< number of axes
  atomic,      ///< AtomicOp
  combine,     ///< AtomicOp with an identity
  builtin,     ///< Builtin
};

/// What stands in Inst::imm, or in Inst::part (binding, axis, component) or options.
enum class NameUse : uint8_t {
  nothing,
  bits,       ///< of a constant
  binding,    ///< a scalar one
  axis,       ///< of a field
  component,  ///< of a field, or a cell of the frame
  elements,   ///< of a slot
  reduction,  ///< of the task
  options,    ///< LoopOptions
  loops,      ///< how many
  callee,     ///< a function of the kernel
  entry,      ///< byte offset in the argument block
  alias_class,
};

namespace flag {
enum : uint16_t {
  pure = 1,      ///< no effect; equal operands give equal results; removable
  may_fail = 2,  ///< never run where the program would not have run it
  commutes = 4,  ///< first two operands may be exchanged
  reads = 8,     ///< result depends on what `fields` to `host` name
  writes = 16,   ///< changes it
  control = 32,  ///< owns regions
  ends = 64,     ///< ends a region
  once = 128,    ///< never duplicated or merged
  fields = 256,  ///< elements of bindings
  memory = 512,  ///< what lies at an address
  slots = 1024,  ///< mutable locals
  host = 2048,   ///< what the host sees: errors and lines
};
}

/// Where an operation may stand: Level as bits, and the domains of tasks, which the host evaluates
/// at every level.
namespace level {
enum : uint8_t {
  recorded = 1,
  structured = 2,
  split = 4,
  opened = 8,
  lowered = 16,
  domain = 32,  ///< of a task, and its bound

  recording = recorded,
  loops = recorded | structured | opened,
  functions = recorded | structured | split,
  bodies = recorded | structured | split | opened,
  bindings = bodies | domain,
  code = bodies | lowered,
  addresses = opened | lowered,
  everywhere = code | domain,
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
/// (reductions whose order is unspecified); `distribute` lets a sum also be multiplied out, to be
/// summed term by term (blocks of reassociate()); `uncontracted` keeps it out of an fma in every mode
/// (error terms of the math library). `unasked`: it runs where the program may not have run it, in
/// place of a branch or in front of a loop, so going back a zero gives its operands none, whatever
/// its derivative is there.
inline constexpr uint8_t reassociate = 1;
/// Kind of a `loop` that walks the innermost axis of a parallel loop: its rounds are iterations; or
/// elements, each of which no other round touches.
inline constexpr uint8_t parallel_walk = 1;
/// Kind of a `loop` over a thread's share of the iterations: neither its index nor its step come
/// near the end of their type.
inline constexpr uint8_t thread_walk = 2;
/// Kind bit besides parallel_walk: over a strip that may not be whole, so that what is left over
/// behind whole vectors takes a large part of its time.
inline constexpr uint8_t brief = 4;
/// Kind of an `if_` whose first region hardly ever runs; the second holds pure operations only and
/// may be run where the first is.
inline constexpr uint8_t rarely = 1;
/// Kind of an `if_` that only spares work: what is in its regions could be run whatever the
/// condition is, but for its effects.
inline constexpr uint8_t sparing = 2;
/// Kind bits of a `slot`: elements begin as anything, and each must be put before it is read; no
/// element is accessed by two rounds of one loop of kind parallel_walk.
inline constexpr uint8_t unset = 1;
inline constexpr uint8_t by_round = 2;
inline constexpr uint8_t uncontracted = 2;
inline constexpr uint8_t unasked = 4;
inline constexpr uint8_t distribute = 8;

struct OpInfo {
  std::string_view name;
  uint16_t flags;
  uint8_t levels = level::everywhere;
  // element-wise
  OperandRule rule = OperandRule::special;
  int operands = -1;                                 ///< how many; -1: see the form
  bool bools = false, ints = false, floats = false;  ///< operand classes accepted
  int weight = 0;
  bool library = false;  ///< has a body in ir/math
  // others
  Form form = {};
  KindUse kind = KindUse::arithmetic;
  NameUse names = NameUse::nothing;
  uint8_t regions = 0;
};

const OpInfo& info(Op op);
std::optional<Op> op_named(std::string_view name);
std::string_view name(AtomicOp op);
std::optional<AtomicOp> atomic_named(std::string_view name);
std::string_view name(Builtin b);
std::optional<Builtin> builtin_named(std::string_view name);

/// Values that it takes besides indices or an address.
constexpr size_t operand_count(AtomicOp op) {
  return op == AtomicOp::load ? 0 : op == AtomicOp::cas ? 2 : 1;
}
/// Is there an identity, so that contributions may be combined apart?
constexpr bool has_identity(AtomicOp op) { return op <= AtomicOp::bit_xor; }

/// Any of the flags?
inline bool has(Op op, uint16_t f) { return (info(op).flags & f) != 0; }
inline bool is_pure(Op op) { return has(op, flag::pure); }
/// Does it read or write an element of a binding, at the indices that are its first operands?
inline bool accesses_element(Op op) { return info(op).names == NameUse::component; }
/// Does it read or write what lies at the address that is its first operand?
inline bool accesses_memory(Op op) { return info(op).names == NameUse::alias_class; }

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
