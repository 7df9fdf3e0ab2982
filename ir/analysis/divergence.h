#pragma once
// Divergence: what the threads of a block do not share (Coutinho et al., PACT 2011).
//
// Varying are the numbers of the threads, indices of iterations, what atomics and random numbers
// give, what may have been written meanwhile, and what is made of varying values; carried values,
// results and slots besides where the number of rounds or the way taken varies. The state of the
// error record is taken for shared: threads of one launch go on or stop together (lower_checks).
//
// Of one task, computed at once; it holds as long as nothing in the task changes.
#include <unordered_set>

#include "ir/analysis/dataflow.h"
#include "ir/analysis/effects.h"

namespace quern::ir {

class Divergence {
 public:
  Divergence(const Kernel& kernel, const Task& task);

  bool varies(const Value* v) const { return varying_.contains(v); }
  /// The innermost branch or loop around the instruction that the threads of a block may take
  /// differently, or null.
  const Inst* around(const Inst* inst) const;

 private:
  friend class Dataflow<Divergence, true>;
  /// Values vary or not wherever they are: what is lost is how many do not.
  using State = size_t;
  void meet(State& into, const State& from) const { into = std::max(into, from); }
  void enter(const Region* region, State& state);
  void leave(const Region*, State&) const {}
  void step(const Inst* inst, State& state, bool last);
  void around(const Inst*, State& state) const { state = varying_.size(); }

  bool decides_differently(const Inst* owner) const;
  bool reads_shared(const Inst* inst);
  void yielded(const Inst* yield);
  void vary(const Value* v) { varying_.insert(v); }

  Effects effects_;
  Touched task_;
  std::unordered_set<const Value*> varying_;
};

}  // namespace quern::ir
