#pragma once
// A walk cut into strips of iterations that are taken through its body part by part: what the
// passes share that put other loops between the parts.
//
// What one part makes and a later one needs crosses in slot arrays, one element an iteration, or,
// where it follows from the index alone, is made again.
#include <functional>
#include <unordered_map>
#include <vector>

#include "quern/ir/builder.h"

namespace quern::ir {

/// The loops of a task, or of all, of kind parallel_walk.
std::vector<Inst*> walks_of(const Task& task);
std::vector<Inst*> walks_of(const Kernel& kernel);

class Strips {
 protected:
  Strips(Kernel& kernel, Inst* walk, int64_t strip)
      : b_(kernel), walk_(walk), body_(walk->region(0)), strip_(strip) {}
  virtual ~Strips() = default;

  Value* integer(int64_t v) { return b_.integer(Type::i64, v); }

  /// Do all iterations of the walk share the value?
  bool is_shared(const Value* v) const {
    return !encloses(body_, v->inst ? v->inst->parent : v->region);
  }

  static bool is_rare(const Inst* inst) { return inst->is(Op::if_) && inst->kind == rarely; }
  /// Is what is usually done in place of a rare branch pure?
  static bool is_usually_pure(const Inst* branch);

  /// Calls `use` for each value from outside that the instruction or its regions use.
  static void outer_operands(const Inst* inst, const std::function<void(Value*)>& use);

  /// Does the value come from memory or from an earlier round? Else it follows from the index.
  bool from_memory(const Value* v);

  /// Calls `use` for each value that must be kept for a later part to have `v`: the value, none
  /// where it follows from the index, of an address what it is made of, and of an integer that was
  /// widened to compute one the narrow one: loops take as many lanes as the widest element allows.
  void crosses(Value* v, const std::function<void(Value*)>& use);

  /// A slot array for what crosses of a value of an earlier part.
  void keep(Value* v);
  /// One of these: an element for each iteration of the strip. A part puts all that a later one
  /// reads, unless it may end early, so that they need not begin as zero.
  Value* array(Type elem);

  /// The loop over strips, with these carried values; the builder moves into its body.
  Inst* begin_strips(std::span<Value* const> init = {});
  /// The same over a part of the iterations, which holds nothing but whole strips.
  Inst* begin_whole_strips(Value* begin, Value* end, std::span<Value* const> init);

  /// A loop over the iterations of the strip: `fill` makes its body and gives the next carried
  /// values. The builder stands behind it afterwards; the last ones come back.
  using Fill = std::function<std::vector<Value*>(std::span<Value> carried)>;
  std::vector<Value*> each(uint8_t kind, std::span<Value* const> init, const Fill& fill);

  /// An `if` with nothing in its other region; `fill` makes the one. The builder stands behind it
  /// afterwards.
  void where(Value* condition, const std::function<void()>& fill);

  /// The value in the part being made; kept ones are read, others made again.
  Value* need(Value* v);
  /// Repeats the instruction in the part being made.
  virtual void copy(const Inst* inst);
  /// The same of all instructions of a region but its terminator.
  void copy_all(const Region* region);

  Builder b_;
  Inst* walk_;
  Region* body_;
  int64_t strip_;
  /// May a part that puts elements end before the last iteration? So a loop around another one does
  /// where the host asks the launch to end (poll_loops).
  bool may_end_early_ = false;
  Value *base_ = nullptr, *count_ = nullptr, *within_ = nullptr;
  std::unordered_map<const Value*, Value*> slots_;
  /// What all iterations of a strip share and is made outside of the loops over them: the value once
  /// it is there, null before.
  std::unordered_map<const Value*, Value*> common_;
  std::vector<Value*> kept_;  ///< the values of slots_, in the order they were met
  ValueMap map_;              ///< of the part being made

 private:
  Value* narrower(Value* v);
  std::unordered_map<const Value*, bool> from_memory_;
};

}  // namespace quern::ir
