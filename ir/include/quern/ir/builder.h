#pragma once
#include <initializer_list>
#include <unordered_map>

#include "quern/ir/ir.h"

namespace quern::ir {

/// Makes instructions at an insertion point. Checks nothing: the verifier does.
class Builder {
 public:
  explicit Builder(Kernel& kernel) : arena_(*kernel.arena) {}
  explicit Builder(Arena& arena) : arena_(arena) {}

  /// New instructions go to the end of `region`, or before `inst`.
  Builder& at_end(Region* region) {
    region_ = region;
    before_ = nullptr;
    return *this;
  }
  Builder& before(Inst* inst) {
    region_ = inst->parent;
    before_ = inst;
    return *this;
  }
  Builder& after(Inst* inst);
  Region* region() const { return region_; }
  Inst* point() const { return before_; }
  /// Location given to instructions made from here on.
  Builder& at(Loc loc) {
    loc_ = loc;
    return *this;
  }
  Loc loc() const { return loc_; }

  Region* make_region(std::initializer_list<Type> args = {});
  Region* make_region(std::span<const Type> args);
  /// Appends an argument to a region. Existing arguments move: their uses are updated, pointers to
  /// them are not.
  Value* add_arg(Region* region, Type type);

  /// The general form, inserted at the point.
  Inst* make(Op op, std::span<const Type> results, std::span<Value* const> operands,
             uint64_t imm = 0);
  Inst* make(Op op, std::initializer_list<Type> results, std::initializer_list<Value*> operands,
             uint64_t imm = 0);
  /// Regions of an instruction (parents set).
  void set_regions(Inst* inst, std::initializer_list<Region*> regions);
  /// Replaces the whole operand list / extends the result list.
  void set_operands(Inst* inst, std::span<Value* const> operands);
  Value* add_operand(Inst* inst, Value* v);
  /// Existing result values move: their uses are updated.
  Value* add_result(Inst* inst, Type type);

  // values
  Value* constant(Type type, Bits bits);
  Value* integer(Type type, int64_t v) { return constant(type, bits_of_int(v, type)); }
  Value* real(Type type, double v) { return constant(type, bits_of_real(v, type)); }
  Value* boolean(bool v) { return constant(Type::b1, v); }
  /// Element-wise rows; the result type follows from the row (convert and bitcast: pass `result`).
  Value* unary(Op op, Value* a);
  Value* binary(Op op, Value* a, Value* b);
  Value* fma(Value* a, Value* b, Value* c);
  Value* select(Value* c, Value* a, Value* b);
  Value* convert(Value* a, Type to);  ///< the value itself where the type is `to` already
  Value* bitcast(Value* a, Type to);
  Value* add(Value* a, Value* b) { return binary(Op::add, a, b); }
  Value* sub(Value* a, Value* b) { return binary(Op::sub, a, b); }
  Value* mul(Value* a, Value* b) { return binary(Op::mul, a, b); }
  Value* div(Value* a, Value* b) { return binary(Op::div, a, b); }
  Value* lt(Value* a, Value* b) { return binary(Op::lt, a, b); }

  // bindings, slots
  Value* param(uint32_t binding, Type type);
  Value* extent(uint32_t binding, uint32_t axis, Type type);
  Value* first(uint32_t binding, uint32_t axis, Type type);
  Value* origin(uint32_t binding, uint32_t axis, Type type);
  Value* load(uint32_t binding, uint32_t component, Type elem, std::span<Value* const> index);
  Inst* store(uint32_t binding, uint32_t component, std::span<Value* const> index, Value* v);
  Inst* atomic(AtomicOp op, uint32_t binding, uint32_t component, Type elem,
               std::span<Value* const> index, std::span<Value* const> values);
  Value* slot(Type elem, uint64_t count = 1);
  Value* unset_slot(Type elem, uint64_t count);  ///< elements are put before they are read
  Value* get(Value* slot, Value* index = nullptr);
  Inst* put(Value* slot, Value* v);
  Inst* put(Value* slot, Value* index, Value* v);

  // structure
  Inst* if_(Value* cond, std::span<const Type> results = {});  ///< with two empty regions
  Inst* loop(Value* lo, Value* hi, Value* step, std::span<Value* const> init = {});
  Inst* while_(std::span<Value* const> init);
  Inst* yield(std::span<Value* const> values = {});
  Inst* yield(std::initializer_list<Value*> values);

  /// The next random number of the iteration: `random` of where the builder stands.
  Value* random();

  // below access lowering
  Value* arg(uint32_t offset, Type type);
  Value* builtin(Builtin b);
  Value* offset(Value* address, Value* bytes);
  Value* read(Value* address, Type elem, uint64_t alias_class);
  Inst* write(Value* address, Value* v, uint64_t alias_class);
  Inst* rmw(AtomicOp op, Value* address, Type elem, std::span<Value* const> values,
            uint64_t alias_class);
  Value* block_reduce(AtomicOp op, Value* v);

 private:
  Arena& arena_;
  Region* region_ = nullptr;
  Inst* before_ = nullptr;
  Loc loc_;
};

using ValueMap = std::unordered_map<const Value*, Value*>;

/// Copies `inst` (regions included) to the builder's point; operands go through `map`, which learns
/// the copies. Operands not in the map are used as they are.
Inst* clone_inst(Builder& b, const Inst* inst, ValueMap& map);
/// The same of a whole region, arguments and terminator included; the copy is nobody's.
Region* clone_region(Builder& b, const Region* from, ValueMap& map);
/// Copies the instructions of `from` without its terminator; the mapped terminator operands come
/// back.
std::vector<Value*> inline_region(Builder& b, const Region* from, ValueMap& map);
/// Moves everything of `from` (terminator excluded, which is erased) before the builder's point.
void splice(Builder& b, Region* from);
/// Moves `inst` to the builder's point.
void move(Builder& b, Inst* inst);

}  // namespace quern::ir
