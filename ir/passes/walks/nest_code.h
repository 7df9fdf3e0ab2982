#pragma once
// The code of an iteration of a nest (nest.h), repeated in loops over a strip.
#include "ir/passes/walks/nest.h"
#include "ir/passes/walks/strips.h"

namespace quern::ir {

class NestCode : protected Strips {
 protected:
  NestCode(Kernel& kernel, Inst* walk, int64_t strip)
      : Strips(kernel, walk, strip), nest_(kernel, walk) {}

  /// `fill` makes what stands in the region, and gives what it yields.
  void inside(Region* region, const std::function<std::vector<Value*>()>& fill);

  /// Local variables are those of the iteration, reads of a pack find it there, loops of few rounds are
  /// written out.
  void copy(const Inst* inst) override;

  /// Does the iteration take the branch that is run because any does? Null outside of one.
  Value* takes();
  /// What may not be done in an iteration that does not come to it; its results are then not used.
  void copy_where(Value* taken, const Inst* inst);

  /// Copies what the strip's iterations will read again and again to the slot. Before a strip's first
  /// piece: nothing that pieces keep is there yet.
  void fill(const Pack& pack, Value* slot);

  Nest nest_;
  uint8_t walks_ = parallel_walk;  ///< the kind of the loops over a strip
  std::unordered_map<const Value*, Value*> locals_;
  std::vector<Value*> packs_;
  Value* taken_ = nullptr;    ///< the condition of the branch that is run because any takes it
  bool takes_first_ = false;  ///< its first region is

 private:
  void access_local(const Inst* inst);
  void copy_control(const Inst* inst);
  void write_out(const Inst* loop);
  Value* place(const Nest::Packed& packed);
  void copy_side_by_side(const Pack& pack, Value* slot);
};

}  // namespace quern::ir
