#pragma once
// Loops over whole numbers, at a builder's point, which goes on behind them.
#include "quern/ir/builder.h"

namespace quern::ir {

/// Fills a loop's body with what `body(index)` builds.
template <class F>
void fill_loop(Builder& b, Inst* loop, F&& body) {
  Region* around = b.region();
  Inst* point = b.point();
  b.at_end(loop->region(0));
  body(loop->region(0)->arg(0));
  b.yield();
  b.at_end(around);
  if (point) b.before(point);
}

/// For each k, an i64, from 0 to below `to`.
template <class F>
void counted(Builder& b, Value* to, F&& body) {
  Value* first = b.integer(Type::i64, 0);
  fill_loop(b, b.loop(first, to, b.integer(Type::i64, 1)), body);
}

template <class F>
void counted(Builder& b, int64_t to, F&& body) {
  Value* first = b.integer(Type::i64, 0);
  Value* end = b.integer(Type::i64, to);
  fill_loop(b, b.loop(first, end, b.integer(Type::i64, 1)), body);
}

}  // namespace quern::ir
