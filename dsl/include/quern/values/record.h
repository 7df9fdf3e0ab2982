#pragma once
// What the language's templates ask of the recorder: a narrow interface of plain numbers.
//
// Recording functions never throw while a recording is active: the first error poisons it, is
// thrown once at its end, and until then everything records nothing. Outside a recording they throw
// Error.
#include "quern/types/types.h"

namespace quern::detail {

/// Operations, numbered as in the intermediate representation's table.
enum class Op : uint8_t {
#define QUERN_OP(name, rule, operands, classes, flags, fold, partial, weight) name,
#define QUERN_FORM(name, form, kind, names, regions, levels, flags) name,
#include "quern/ir/ops.def"
};
/// Read-modify-write operations and reductions, numbered as there.
enum class Atomic : uint8_t { add, mul, min, max, bit_and, bit_or, bit_xor, exchange, cas, load };

/// A value, or a mutable local, of one recording.
struct Id {
  uint32_t index = 0;
  uint32_t recording = 0;  ///< 0: none
  bool named = false;      ///< read from an object with a name: of an earlier statement
};

/// The ids of a value's scalars.
template <class T, int N = count_of<T>>
struct Ids {
  Id v[size_t(N)];
};
/// Those of the mutable locals of a variable.
template <class T>
using SlotIds = Ids<T, slots_of<T>.slots>;
/// Those of the part of type M that begins at `at`.
template <class M, class T, int N>
auto part_of(const Ids<T, N>& ids, int at) {
  Ids<M, N == count_of<T> ? count_of<M> : slots_of<M>.slots> out;
  for (Id& id : out.v) id = ids.v[at++];
  return out;
}

/// The ids as read from an object with a name.
template <class T, int N>
constexpr Ids<T, N> named(Ids<T, N> ids) {
  for (Id& id : ids.v) id.named = true;
  return ids;
}

struct FieldObject;
struct Recording;

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
/// Matrix product of a (rows × inner) and b (inner × columns) after converting both to `compute`.
QUERN_RECORDS void product(Scalar compute, const Id* a, const Id* b, int rows, int inner,
                           int columns, Id* out, Loc loc);
QUERN_RECORDS Id unary(Op op, Id a, Loc loc);
QUERN_RECORDS Id ternary(Op op, Id a, Id b, Id c, Loc loc);  ///< select, fma
/// 32 random bits.
QUERN_RECORDS Id random_word(Loc loc);

/// The operands of one operation, from the left. Compilers evaluate them in different orders: puts
/// their random numbers into that of the operands, or poisons where effects cannot be.
struct Evaluated {
  const Id* ids;
  int count;
};
QUERN_RECORDS void in_order(const Evaluated* operands, int count, Loc loc);
template <class... T>
void in_order(Loc loc, const T&... ids) {
  const Evaluated all[] = {{ids.v, int(sizeof ids.v / sizeof(Id))}...};
  in_order(all, int(sizeof...(T)), loc);
}

/// `index`; checked: an error unless it is one of 0 … count-1 of `what`.
QUERN_RECORDS Id in_range(Id index, int count, Loc loc, const char* what = "a component");
/// r · columns + c.
QUERN_RECORDS Id row_major(Id r, int columns, Id c, Loc loc);
/// The part at `index`, of a value's or (`slots`) a variable's parts; the last one where there is
/// none.
QUERN_RECORDS Id pick(const Id* parts, int count, bool slots, Id index, Loc loc);

// ---- mutable locals: each of `count` elements, zero. `slot` names one of one element, or, by the
// id that item() yields, an element of one.
QUERN_RECORDS Id slot(Scalar type, int count, Loc loc);
QUERN_RECORDS Id get(Id slot, Loc loc);
QUERN_RECORDS void put(Id slot, Id v, Loc loc);
/// Records the read of element index · stride + offset, counted from `base`: a local, or an item
/// of one.
QUERN_RECORDS Id item(Id base, Id index, int stride, int offset, Loc loc);
/// The slot at `index` becomes v; none where there is none.
QUERN_RECORDS void put_at(const Id* slots, int count, Id index, Id v, Loc loc);
/// `slot op= v`; across a parallel loop a reduction where `op` is one.
QUERN_RECORDS void update(Op op, Id slot, Id v, Loc loc);
/// atomic_min(slot, v) and its like. Yields the old value; of a reduction one that cannot be used.
QUERN_RECORDS Id update(Atomic op, Id slot, Id v, Loc loc);

// ---- storage
/// Records the read of an element; the id also names the place for what follows.
QUERN_RECORDS Id element(FieldObject* field, int component, const Id* index, int rank, Loc loc);
QUERN_RECORDS void store(Id element, Id v, Loc loc);
/// Atomic inside parallel loops and functions, plain in serial code. Yields the old value.
QUERN_RECORDS Id atomic(Atomic op, Id element, const Id* values, int count, Loc loc);
/// What is asked of an element's existence, or done to it.
enum class Activity : uint8_t { is_active, activate, deactivate, length, append };
/// Yields b1 where something is asked, i64 for a length or a place in a list, else nothing.
QUERN_RECORDS Id activity(Activity what, FieldObject* field, const Id* index, int rank, Loc loc);
/// b1: is the element active? Then for each axis, i32: of a box around it in which nothing is, how many
/// elements lie before it, how many behind it; into `answers`.
QUERN_RECORDS void empty_box(FieldObject* field, const Id* index, int rank, Id* answers, Loc loc);
QUERN_RECORDS Id extent(FieldObject* field, int axis, Scalar type, Loc loc);
QUERN_RECORDS Id first_index(FieldObject* field, int axis, Scalar type, Loc loc);

// ---- structure
/// All indices of a field.
struct FieldIndices {
  uint32_t binding = 0;
  uint32_t recording = 0;  ///< 0: of no field
  Scalar type = Scalar::i32;
};
struct LoopSpec {
  int rank = 0;
  FieldIndices over;  ///< in place of bounds
  bool serial = false, deterministic = false;
  Id lo[4], hi[4];
  Id step[4];  ///< none: 1
  bool has_block = false;
  int64_t block = 0;  ///< iterations kept together
};
enum class Block : uint8_t { body, loop, while_, then, otherwise };
/// A loop over all indices of a field.
QUERN_RECORDS LoopSpec indices_of(FieldObject* field, Scalar type, Loc loc);
/// The same loop by bounds, where it names a field.
QUERN_RECORDS LoopSpec bounded(LoopSpec spec, Loc loc);
QUERN_RECORDS void loop_begin(const LoopSpec& spec, Id* index, Loc loc);
QUERN_RECORDS void if_begin(Id condition, Loc loc);
QUERN_RECORDS void else_begin(Loc loc);  ///< an Else on its own: attaches to the If closed last
QUERN_RECORDS void while_begin(Loc loc);
QUERN_RECORDS void while_condition(Id condition, Loc loc);
/// Closes the innermost block; not `complete`: it was left by a native break, return or goto, which
/// is refused, or by an exception of the user's, at which it ends as if it were complete.
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

/// From here on float + - × may be reassociated, or may not. Yields what held before.
QUERN_RECORDS bool reassociation(bool allowed, Loc loc);

// ---- functions of the library with a derivative of their own
/// True: the kernel has no function yet that takes such arguments, gives so many results and whose
/// derivative is given by the rule of this name. What is recorded up to end_function is its body, of
/// `parameters`.
QUERN_RECORDS bool begin_function(const char* rule, const Id* arguments, int count, int results,
                                  Id* parameters);
QUERN_RECORDS void end_function(const Id* results, int count);
/// Calls that function.
QUERN_RECORDS void apply(const char* rule, const Id* arguments, int count, Id* out, int results,
                         Loc loc);

// ---- effects that reach the host
/// A value for a place {} of a text: `form` has a {} for each of its scalars.
struct Reported {
  const char* form;
  const Id* scalars;
  int count;
};
QUERN_RECORDS void print(const char* format, const Reported* values, int count, Loc loc);
QUERN_RECORDS void check(Id condition, const char* format, const Reported* values, int count,
                         Loc loc);

/// While it lives, what is recorded is placed at its location: library functions written in plain
/// operators report the line of their caller; without one (operators of structures) the line
/// recorded last. The outermost one counts.
class Placed {
 public:
  explicit Placed(Loc loc);
  /// Of a function with these operands: what is recorded is made of those that are temporaries.
  template <class... U>
    requires(sizeof...(U) > 0)
  Placed(Loc loc, U&&... operands) : Placed(loc) {
    made_of(loc, temporary_ids<U>(operands)...);
  }
  Placed(const Placed&) = delete;
  ~Placed();

 private:
  static constexpr Ids<bool> none = {{{0, 0, true}}};
  /// A variable's value is no temporary's.
  template <class U>
  static auto temporary_ids(std::remove_reference_t<U>& operand) {
    if constexpr (Device<U> && !std::is_lvalue_reference_v<U> &&
                  !requires { operand.quern_slots(); })
      return std::move(operand).quern_ids(Loc{});
    else
      return none;
  }
  template <class... T>
  void made_of(Loc loc, const T&... ids) {
    const Evaluated all[] = {{ids.v, int(sizeof ids.v / sizeof(Id))}...};
    made_of(all, int(sizeof...(T)), loc);
  }
  QUERN_RECORDS void made_of(const Evaluated* operands, int count, Loc loc);

  Recording* recording_ = nullptr;
};

/// Poisons the recording.
QUERN_RECORDS void fail(Loc loc, const char* message);

}  // namespace quern::detail
