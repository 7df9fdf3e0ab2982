#pragma once
// Rows of memory that a strip of iterations reads in the next round of a loop are named ahead.
//
// In each round a strip reads some KB of a row, and the next round's part lies a whole row further:
// no CPU fetches that by itself, as it does what follows in memory. Where the rows that a loop
// comes to take more than a second-level cache, the lines of the next round's part are asked for
// before those of this one are used: what a launch has kept of its rounds comes back from memory so.
#include <functional>

#include "quern/ir/builder.h"

namespace quern::ir {

class RowsAhead {
 public:
  /// Of the iterations of a walk with this body, in a round of `loop`, which has become a loop with
  /// this index. `shared`: what they share, as it is made there; null: they do not.
  RowsAhead(Builder& b, const Region* body, const Inst* loop, Value* index,
            std::function<Value*(Value*)> shared)
      : b_(b), body_(body), loop_(loop), index_(index), shared_(std::move(shared)) {}

  /// Names what `count` iterations from `first` on read there in the next round, if the element of
  /// each follows that of the one before, and it is known where without reading memory. Not where
  /// the loop's step is known at the launch alone.
  void name(const Inst* read, Value* first, Value* count);

 private:
  struct Place {
    Value* start = nullptr;  ///< an address that all share; null: it is not known
    Value* bytes = nullptr;
  };
  Place place_of(Value* address, Value* iteration, Value* round);
  Value* known(Value* v) const;
  Value* made(Value* v, Value* iteration, Value* round);

  Builder& b_;
  const Region* body_;
  const Inst* loop_;
  Value* index_;
  std::function<Value*(Value*)> shared_;
  ValueMap made_;
  int left_ = 0;  ///< instructions that may be made
};

}  // namespace quern::ir
