#include "ir/passes/atomics/combine_rows.h"

#include "quern/ir/abi.h"

namespace quern::ir {

namespace {

constexpr int64_t chunk_length = abi::chunk_iterations, lanes = abi::chunk_lanes;

Value* integer(Builder& b, int64_t v) { return b.integer(Type::i64, v); }

/// The values of a row into the cells, where there is one.
void into_cells(Builder& b, Accumulators& all, uint32_t frame, Value* any, Value* row) {
  Inst* branch = b.if_(any);
  Region* around = b.region();
  b.at_end(branch->region(1)).yield();
  b.at_end(branch->region(0));
  for (size_t r = 0; r < all.count(); r++) {
    const Reduction& red = all.reduction(r);
    Value* old = b.load(frame, red.cell, red.type, {});
    b.store(frame, red.cell, {}, all.combined(r, old, all.read(row, r)));
  }
  b.yield();
  b.at_end(around);
}

void combine_in_any_order(Builder& b, Accumulators& all, uint32_t frame, Value* rows) {
  std::vector<Value*> start;
  for (size_t r = 0; r < all.count(); r++)
    start.push_back(b.load(frame, all.reduction(r).cell, all.reduction(r).type, {}));
  Value* first = integer(b, 0);
  Inst* loop = b.loop(first, rows, integer(b, 1), start);
  Region* around = b.region();
  b.at_end(loop->region(0));
  Value* row = loop->region(0)->arg(0);
  std::vector<Value*> next;
  for (size_t r = 0; r < all.count(); r++)
    next.push_back(all.combined(r, loop->region(0)->arg(r + 1), all.read(row, r)));
  b.yield(next);
  b.at_end(around);
  for (size_t r = 0; r < all.count(); r++)
    b.store(frame, all.reduction(r).cell, {}, loop->result(r));
}

/// Rows [1024·group, …) become row `group`, in place: what lies there has been read.
void combine_group(Builder& b, Accumulators& all, Value* group, Value* length) {
  all.make();
  Value* first = b.mul(group, integer(b, chunk_length));
  Value* left = b.sub(length, first);
  Value* here = b.binary(Op::min, left, integer(b, chunk_length));
  counted(b, here, [&](Value* k) { all.accumulate_row(k, b.add(first, k)); });
  all.write(group, all.totals());
}

void combine_by_levels(Builder& b, Accumulators& all, uint32_t frame, Value* rows) {
  Inst* levels = b.while_({&rows, 1});
  Region* around = b.region();
  Region* test = levels->region(0);
  b.at_end(test).yield({b.lt(integer(b, 1), test->arg(0)), test->arg(0)});
  Region* level = levels->region(1);
  b.at_end(level);
  Value* length = level->arg(0);
  Value* more = b.add(length, integer(b, chunk_length - 1));
  Value* groups = b.div(more, integer(b, chunk_length));
  counted(b, groups, [&](Value* group) { combine_group(b, all, group, length); });
  b.yield({groups});

  b.at_end(around);
  Value* none = integer(b, 0);
  into_cells(b, all, frame, b.lt(none, rows), none);
}

/// Each row that the task makes is what `make` returns, given its number among them, the first row
/// to read, and how many there are.
template <class F>
Region* by_threads(Builder& b, Accumulators& all, Loc loc, F&& make) {
  Region* body = b.make_region();
  b.at_end(body).at(loc);
  Value* thread = b.builtin(Builtin::thread);
  Value* end = b.builtin(Builtin::end);
  Value* first = b.builtin(Builtin::first_row);
  Value* rows = b.builtin(Builtin::rows);
  Inst* share = b.loop(thread, end, b.builtin(Builtin::threads));
  share->kind = thread_walk;
  fill_loop(b, share, [&](Value* number) {
    const std::vector<Value*> totals = make(number, first, rows);
    all.write(b.add(b.add(first, rows), number), totals);
  });
  b.at_end(body).yield();
  return body;
}

}  // namespace

Region* combine_rows(Builder& b, Accumulators& all, uint32_t frame, Loc loc) {
  Region* body = b.make_region();
  b.at_end(body).at(loc);
  Value* rows = b.builtin(Builtin::end);
  if (all.is_ordered())
    combine_by_levels(b, all, frame, rows);
  else
    combine_in_any_order(b, all, frame, rows);
  b.at_end(body).yield();
  return body;
}

Region* gather_values(Builder& b, Accumulators& all, Loc loc) {
  return by_threads(b, all, loc, [&](Value* lane, Value* first, Value* rows) {
    all.make();
    Value* in_chunk = b.binary(Op::bit_and, lane, integer(b, lanes - 1));
    Value* length = integer(b, chunk_length);
    Value* before = b.mul(b.div(lane, integer(b, lanes)), length);
    Value* end = b.binary(Op::min, b.add(before, length), rows);
    Value* start = b.add(before, in_chunk);
    fill_loop(b, b.loop(start, end, integer(b, lanes)),
              [&](Value* k) { all.accumulate_row(nullptr, b.add(first, k)); });
    return all.totals();
  });
}

Region* halve_lanes(Builder& b, Accumulators& all, Loc loc) {
  return by_threads(b, all, loc, [&](Value* chunk, Value* first, Value*) {
    Value* from = b.add(first, b.mul(chunk, integer(b, lanes)));
    std::vector<Value*> totals;
    for (size_t r = 0; r < all.count(); r++) {
      std::vector<Value*> of_lane;
      for (int64_t j = 0; j < lanes; j++)
        of_lane.push_back(all.read(b.add(from, integer(b, j)), r));
      for (size_t half = of_lane.size() / 2; half > 0; half /= 2)
        for (size_t j = 0; j < half; j++)
          of_lane[j] = all.combined(r, of_lane[j], of_lane[j + half]);
      totals.push_back(of_lane[0]);
    }
    return totals;
  });
}

Region* take_last_row(Builder& b, Accumulators& all, uint32_t frame, Loc loc) {
  Region* body = b.make_region();
  b.at_end(body).at(loc);
  Value* rows = b.builtin(Builtin::end);
  Value* any = b.lt(integer(b, 0), rows);
  into_cells(b, all, frame, any, b.sub(rows, integer(b, 1)));
  b.at_end(body).yield();
  return body;
}

}  // namespace quern::ir
