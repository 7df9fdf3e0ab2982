#pragma once
// What the language's templates ask of the recorder: a narrow interface of plain numbers.
//
// Recording functions never throw while a recording is active: the first error poisons it, is
// thrown once at its end, and until then everything records nothing. Outside a recording they throw
// Error.
#include "quern/types.h"

namespace quern::detail {

/// Operations, numbered as in the intermediate representation's table.
enum class Op : uint8_t {
#define QUERN_OP(name, rule, classes, flags, fold, partial, weight) name,
#include "quern/ir/ops.def"
#undef QUERN_OP
};
/// Read-modify-write operations and reductions, numbered as there.
enum class Atomic : uint8_t { add, mul, min, max, bit_and, bit_or, bit_xor, exchange, cas, load };

/// A value, or a mutable local, of one recording.
struct Id {
  uint32_t index = 0;
  uint32_t recording = 0;  ///< 0: none
};

/// The ids of a value's scalars.
template <class T>
struct Ids {
  Id v[size_t(count_of<T>)];
};

struct FieldObject;

#define QUERN_RECORDS [[gnu::cold, gnu::noinline]]

// ---- values
QUERN_RECORDS Id constant(Scalar type, int64_t v, Loc loc);
QUERN_RECORDS Id constant(Scalar type, uint64_t v, Loc loc);
QUERN_RECORDS Id constant(Scalar type, double v, Loc loc);
QUERN_RECORDS Id convert(Id v, Scalar to, Loc loc);
QUERN_RECORDS Id bitcast(Id v, Scalar to, Loc loc);
/// Component-wise `out[k] = op(a[k], b[k])` after converting both to `compute`; a count of 1
/// broadcasts.
QUERN_RECORDS void binary(Op op, Scalar compute, const Id* a, int a_count, const Id* b, int b_count,
                          Id* out, Loc loc);
QUERN_RECORDS Id unary(Op op, Id a, Loc loc);
QUERN_RECORDS Id ternary(Op op, Id a, Id b, Id c, Loc loc);  ///< select, fma
/// 32 random bits; `first` is the word they continue, where a number takes two.
QUERN_RECORDS Id random_word(Loc loc, Id first = {});

// ---- mutable locals
QUERN_RECORDS Id slot(Id init, Loc loc);
QUERN_RECORDS Id get(Id slot, Loc loc);
QUERN_RECORDS void put(Id slot, Id v, Loc loc);
/// `slot op= v`; across a parallel loop a reduction where `op` is one.
QUERN_RECORDS void update(Op op, Id slot, Id v, Loc loc);
/// atomic_min(slot, v) and its like.
QUERN_RECORDS void update(Atomic op, Id slot, Id v, Loc loc);

// ---- storage
/// Records the read of an element; the id also names the place for what follows.
QUERN_RECORDS Id element(FieldObject* field, int component, const Id* index, int rank, Loc loc);
QUERN_RECORDS void store(Id element, Id v, Loc loc);
/// Atomic inside parallel loops and functions, plain in serial code. Yields the old value.
QUERN_RECORDS Id atomic(Atomic op, Id element, const Id* values, int count, Loc loc);
QUERN_RECORDS Id extent(FieldObject* field, int axis, Scalar type, Loc loc);

// ---- structure
struct LoopSpec {
  int rank = 0;
  bool serial = false, deterministic = false;
  Id lo[4], hi[4];
  bool has_block = false;
  int64_t block = 0;  ///< iterations kept together
};
enum class Block : uint8_t { body, loop, while_, then, otherwise };
QUERN_RECORDS void loop_begin(const LoopSpec& spec, Id* index, Loc loc);
QUERN_RECORDS void if_begin(Id condition, Loc loc);
QUERN_RECORDS void else_begin(Loc loc);  ///< an Else on its own: attaches to the If closed last
QUERN_RECORDS void while_begin(Loc loc);
QUERN_RECORDS void while_condition(Id condition, Loc loc);
/// Closes the innermost block; not `complete`: it was left by a native break, return or goto.
QUERN_RECORDS void block_end(Block kind, bool complete, Loc loc) noexcept;
QUERN_RECORDS void break_(Loc loc);
QUERN_RECORDS void continue_(Loc loc);
/// Return(v…): host values are given the result's types.
QUERN_RECORDS void return_(const Id* values, int count, Loc loc);

/// Where recording stands: what follows it can be put under a guard.
struct Position {
  void* region = nullptr;
  void* last = nullptr;
};
QUERN_RECORDS Position position();
/// `a && b` (or `a || b`): everything recorded since `after_a` runs only where `a` does not decide.
QUERN_RECORDS Id guard(bool is_and, Id a, Id b, Position after_a, Loc loc);

// ---- effects that reach the host
QUERN_RECORDS void print(const char* format, const Id* values, int count, Loc loc);
QUERN_RECORDS void check(Id condition, const char* format, const Id* values, int count, Loc loc);

/// Poisons the recording.
QUERN_RECORDS void fail(Loc loc, const char* message);

}  // namespace quern::detail
