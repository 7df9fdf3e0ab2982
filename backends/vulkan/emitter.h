#pragma once
// Emits the code of one task. Regions become structured blocks of SPIR-V, in the order of the IR.
#include <unordered_map>

#include "backends/vulkan/block.h"
#include "backends/vulkan/codegen.h"

namespace quern::vulkan {

using ir::AtomicOp;
using ir::Op;
using ir::Type;
using Spv = spv::Op;
using Ids = std::vector<Id>;

/// Is it an array that is cleared by a loop?
bool is_long_array(const ir::Inst* inst);

class Emitter {
 public:
  Emitter(const ir::Kernel& kernel, size_t task, const Abilities& abilities);
  std::vector<uint32_t> run();

 private:
  // ---- what surrounds the task's own code
  void float_modes();
  Id constants_type();
  Id push_constant(size_t offset);
  /// Part `k` of a three-component built-in variable, in 64 bits.
  Id part(Id variable, uint32_t k);
  Id built_in(spv::BuiltIn which);
  void number_threads();
  template <class F>
  void when(Id condition, F&& then) {
    Id inside = w.make_id(), after = w.make_id();
    w.effect(Spv::OpSelectionMerge, {after, 0});
    w.branch(condition, inside, after);
    w.place(inside);
    then();
    w.branch(after);
    w.place(after);
  }
  /// No guard, or its word is not 0.
  Id allowed();
  Id builtin(ir::Builtin which);

  // ---- values and statements
  Id value(const ir::Value* v);
  Ids operands(const ir::Inst& inst, size_t from = 0);
  /// Emits a region; the values of its terminator come back.
  Ids region(const ir::Region* r);
  void statements(const ir::Region* r);
  void emit(const ir::Inst& inst);
  Id single(const ir::Inst& inst);

  // ---- memory
  Id pointer(Id address, Type t);
  Id load(Id address, Type t, uint32_t alignment);
  /// A word that other threads write to meanwhile, as it is now.
  Id load_of_others(Id address);
  void store(Id address, Type t, Id v);
  static Spv atomic_code(AtomicOp op, bool is_signed);
  /// Relaxed, for the whole device.
  Id rmw(const ir::Inst& inst);

  // ---- slots
  struct Slot {
    Id variable;
    Type elem;
  };
  void slot(const ir::Inst& inst);
  /// Drivers take the store of a whole array apart, which takes Mesa's software device time in
  /// proportion to the square of the length.
  void clear_long_array(const ir::Inst& inst, Id variable);
  /// `plain`: operands of an access without an index.
  Id slot_place(const ir::Inst& inst, size_t plain);
  void put(const ir::Inst& inst);

  // ---- structure
  void define(std::span<ir::Value> results, const Ids& values);
  /// Emitted in place: SPIR-V forbids recursion, and so does Quern.
  void call(const ir::Inst& inst);
  void if_else(const ir::Inst& inst);
  struct Loop {
    Id before, head, next, after;
    Id trace = 0;  ///< differs from the fault address where the last test said to go on
    std::vector<SpirvWriter::OpenPhi> carried;
  };
  /// Starts a loop whose head carries `init`.
  Loop open_loop(std::span<const Type> types, const Ids& init);
  /// Ends the head: the next code decides with `test`.
  void end_head(const Loop& loop);
  void test(Loop& loop, Id condition);
  static Ids ids(const Loop& loop);
  /// Carries the index, the values, and whether the index has not wrapped (by a step of 1 it never
  /// does: it is below `hi`).
  void counted_loop(const ir::Inst& inst);
  void while_loop(const ir::Inst& inst);
  void while_loop_tested_inside(const ir::Inst& inst);
  /// From the block `next` back to the head; goes on behind the loop.
  void close(const Loop& loop, const Ids& next, const ir::Inst& inst);
  void report_cut(const ir::Inst& inst);

  const ir::Kernel& kernel_;
  size_t number_;
  const ir::Task& task_;
  const Abilities& abilities_;
  std::unordered_map<const ir::Inst*, size_t> loop_numbers_;
  SpirvWriter w;
  Arithmetic scalar_;
  Block block_;
  Id constants_ = 0, args_ = 0, thread_ = 0, threads_ = 0;
  std::unordered_map<const ir::Value*, Id> values_;
  std::unordered_map<const ir::Value*, Slot> slots_;
};

}  // namespace quern::vulkan
