#include "ir/passes/atomics/privatise_reductions.h"

#include "ir/passes/atomics/atomic_rules.h"
#include "ir/passes/tasks/open_tasks.h"
#include "quern/ir/abi.h"
#include "quern/ir/builder.h"

namespace quern::ir {

namespace {

constexpr int64_t chunk_length = abi::chunk_iterations;
constexpr int64_t partials = abi::chunk_lanes;

class Privatiser {
 public:
  /// `lanes`: an ordered reduction by threads that are a lane of a chunk each. `buffer`: the binding
  /// of the partial values, where there are any.
  Privatiser(Kernel& kernel, const std::vector<Reduction>& reductions, bool ordered, bool lanes,
             uint32_t buffer)
      : b_(kernel),
        frame_(kernel.frame_binding()),
        buffer_(buffer),
        reductions_(reductions),
        ordered_(ordered),
        one_(!ordered || lanes) {}

  /// Reductions of the task into accumulators, which go to the buffer at the end of the chunk or lane.
  void chunk(Task& task) {
    Inst* loop = parallel_of(task);
    b_.before(loop).at(task.loc);
    make_accumulators();
    Value* begin = one_ ? nullptr : b_.builtin(Builtin::begin);
    Value* row = b_.builtin(Builtin::chunk);
    b_.after(loop);
    for (size_t r = 0; r < reductions_.size(); r++) write_partial(row, r, total(r));
    walk(loop, [&](Inst* inst) {
      b_.before(inst).at(inst->loc);
      Value* iteration = begin ? b_.sub(b_.builtin(Builtin::iteration), begin) : nullptr;
      accumulate(inst->imm, iteration, inst->operand(0));
      inst->erase();
    });
  }

  /// Reductions of an element task into accumulators, which go to the cells at the end.
  void thread(Task& task) {
    Inst* loop = parallel_of(task);
    b_.before(loop).at(task.loc);
    make_accumulators();
    b_.after(loop);
    std::vector<Value*> totals;
    for (size_t r = 0; r < reductions_.size(); r++) {
      Value* own = total(r);
      totals.push_back(b_.block_reduce(reductions_[r].op, b_.convert(own, stored(own->type))));
    }
    Inst* first = b_.if_(b_.binary(Op::eq, b_.builtin(Builtin::block_thread), integer(0)));
    b_.at_end(first->region(1)).yield();
    b_.at_end(first->region(0));
    Value* frame = b_.arg(abi::frame_address, Type::address);
    for (size_t r = 0; r < reductions_.size(); r++) {
      Value* cell = b_.offset(frame, integer(8 * int64_t(reductions_[r].cell)));
      b_.rmw(reductions_[r].op, cell, totals[r]->type, {&totals[r], 1}, abi::frame_class);
    }
    b_.yield();
    walk(loop, [&](Inst* inst) {
      b_.before(inst).at(inst->loc);
      accumulate(inst->imm, nullptr, inst->operand(0));
      inst->erase();
    });
  }

  // The bodies of the tasks that combine what the lanes leave: the last row of all is their value.

  /// Values, which are rows, into lanes of chunks of them.
  Region* gather(Loc loc) {
    return by_threads(loc, [&](Value* lane, Value* first, Value* rows) {
      make_accumulators();
      Value* in_chunk = b_.binary(Op::bit_and, lane, integer(partials - 1));
      Value* length = integer(chunk_length);
      Value* before = b_.mul(b_.div(lane, integer(partials)), length);
      Value* end = b_.binary(Op::min, b_.add(before, length), rows);
      Value* start = b_.add(before, in_chunk);
      around(b_.loop(start, end, integer(partials)), [&](Value* k) {
        Value* row = b_.add(first, k);
        for (size_t r = 0; r < reductions_.size(); r++)
          accumulate(r, nullptr, read_partial(row, r));
      });
      std::vector<Value*> totals;
      for (size_t r = 0; r < reductions_.size(); r++) totals.push_back(total(r));
      return totals;
    });
  }

  /// The 32 lanes of a chunk into its value.
  Region* halve(Loc loc) {
    return by_threads(loc, [&](Value* chunk, Value* first, Value*) {
      Value* from = b_.add(first, b_.mul(chunk, integer(partials)));
      std::vector<Value*> totals;
      for (size_t r = 0; r < reductions_.size(); r++) {
        std::vector<Value*> lanes;
        for (int64_t j = 0; j < partials; j++)
          lanes.push_back(read_partial(b_.add(from, integer(j)), r));
        for (size_t half = lanes.size() / 2; half > 0; half /= 2)
          for (size_t j = 0; j < half; j++) lanes[j] = combined(r, lanes[j], lanes[j + half]);
        totals.push_back(lanes[0]);
      }
      return totals;
    });
  }

  Region* finish(Loc loc) {
    Region* body = b_.make_region();
    b_.at_end(body).at(loc);
    Value* rows = b_.builtin(Builtin::end);
    Value* none = integer(0);
    Value* any = b_.lt(none, rows);
    into_cells(any, b_.sub(rows, integer(1)));
    b_.at_end(body).yield();
    return body;
  }

  /// The body of the task that combines the chunks' values into the cells.
  Region* combine(Loc loc) {
    Region* body = b_.make_region();
    b_.at_end(body).at(loc);
    Value* chunks = b_.builtin(Builtin::end);
    if (ordered_)
      combine_levels(chunks);
    else
      combine_all(chunks);
    b_.at_end(body).yield();
    return body;
  }

 private:
  template <class F>
  static void walk(Inst* loop, F&& f) {
    std::vector<Inst*> found;
    ir::walk(loop->region(0), [&](Inst* inst) {
      if (inst->is(Op::reduce)) found.push_back(inst);
    });
    for (Inst* inst : found) f(inst);
  }

  Value* integer(int64_t v) { return b_.integer(Type::i64, v); }

  Value* combined(size_t r, Value* a, Value* v) {
    const Reduction& red = reductions_[r];
    Value* out = b_.binary(operation(red.op, red.type), a, v);
    bool free_order = red.op == AtomicOp::add || red.op == AtomicOp::mul;
    if (!ordered_ && is_float(red.type) && free_order) out->inst->kind |= reassociate;
    return out;
  }

  // ---- accumulators: one a reduction, or 32

  void make_accumulators() {
    slots_.clear();
    for (const Reduction& r : reductions_) {
      Value* slot = b_.slot(r.type, one_ ? 1 : partials);
      Value* start = b_.constant(r.type, identity(r.op, r.type));
      slots_.push_back(slot);
      if (one_) {
        b_.put(slot, start);
        continue;
      }
      counted(0, partials, [&](Value* j) { b_.put(slot, j, start); });
    }
  }

  void accumulate(size_t r, Value* number, Value* v) {
    Value* slot = slots_[r];
    if (one_) {
      b_.put(slot, combined(r, b_.get(slot), v));
      return;
    }
    Value* j = b_.binary(Op::bit_and, number, integer(partials - 1));
    b_.put(slot, j, combined(r, b_.get(slot, j), v));
  }

  Value* total(size_t r) {
    Value* slot = slots_[r];
    if (one_) return b_.get(slot);
    for (int64_t half = partials / 2; half > 0; half /= 2)
      counted(0, half, [&](Value* j) {
        Value* upper = b_.get(slot, b_.add(j, integer(half)));
        b_.put(slot, j, combined(r, b_.get(slot, j), upper));
      });
    return b_.get(slot, integer(0));
  }

  // ---- partial values

  static Type stored(Type t) { return t == Type::b1 ? Type::u8 : t; }
  void write_partial(Value* row, size_t r, Value* v) {
    b_.store(buffer_, uint32_t(r), {&row, 1}, v);
  }
  Value* read_partial(Value* row, size_t r) {
    return b_.load(buffer_, uint32_t(r), reductions_[r].type, {&row, 1});
  }

  // ---- combining

  void combine_all(Value* chunks) {
    std::vector<Value*> start;
    for (const Reduction& r : reductions_) start.push_back(b_.load(frame_, r.cell, r.type, {}));
    Value* first = integer(0);
    Inst* loop = b_.loop(first, chunks, integer(1), start);
    Region* around = b_.region();
    b_.at_end(loop->region(0));
    Value* row = loop->region(0)->arg(0);
    std::vector<Value*> next;
    for (size_t r = 0; r < reductions_.size(); r++)
      next.push_back(combined(r, loop->region(0)->arg(r + 1), read_partial(row, r)));
    b_.yield(next);
    b_.at_end(around);
    for (size_t r = 0; r < reductions_.size(); r++)
      b_.store(frame_, reductions_[r].cell, {}, loop->result(r));
  }

  void combine_levels(Value* chunks) {
    Inst* levels = b_.while_({&chunks, 1});
    Region* around = b_.region();
    Region* test = levels->region(0);
    b_.at_end(test).yield({b_.lt(integer(1), test->arg(0)), test->arg(0)});
    Region* level = levels->region(1);
    b_.at_end(level);
    Value* length = level->arg(0);
    Value* more = b_.add(length, integer(chunk_length - 1));
    Value* groups = b_.div(more, integer(chunk_length));
    counted_to(groups, [&](Value* group) { combine_group(group, length); });
    b_.yield({groups});

    b_.at_end(around);
    Value* none = integer(0);
    into_cells(b_.lt(none, chunks), none);
  }

  /// The values of a row into the cells, where there is one.
  void into_cells(Value* any, Value* row) {
    Inst* branch = b_.if_(any);
    Region* around = b_.region();
    b_.at_end(branch->region(1)).yield();
    b_.at_end(branch->region(0));
    for (size_t r = 0; r < reductions_.size(); r++) {
      const Reduction& red = reductions_[r];
      Value* old = b_.load(frame_, red.cell, red.type, {});
      b_.store(frame_, red.cell, {}, combined(r, old, read_partial(row, r)));
    }
    b_.yield();
    b_.at_end(around);
  }

  /// Values [1024·group, …) become value number `group`, in place: what lies there has been read.
  void combine_group(Value* group, Value* length) {
    make_accumulators();
    Value* first = b_.mul(group, integer(chunk_length));
    Value* left = b_.sub(length, first);
    Value* here = b_.binary(Op::min, left, integer(chunk_length));
    counted_to(here, [&](Value* k) {
      Value* row = b_.add(first, k);
      for (size_t r = 0; r < reductions_.size(); r++) accumulate(r, k, read_partial(row, r));
    });
    for (size_t r = 0; r < reductions_.size(); r++) write_partial(group, r, total(r));
  }

  /// A combine task: each row that it makes is what `make` returns, given its number among them,
  /// the first row to read, and how many there are.
  template <class F>
  Region* by_threads(Loc loc, F&& make) {
    Region* body = b_.make_region();
    b_.at_end(body).at(loc);
    Value* thread = b_.builtin(Builtin::thread);
    Value* end = b_.builtin(Builtin::end);
    Value* first = b_.builtin(Builtin::first_row);
    Value* rows = b_.builtin(Builtin::rows);
    Inst* share = b_.loop(thread, end, b_.builtin(Builtin::threads));
    share->kind = thread_walk;
    around(share, [&](Value* number) {
      std::vector<Value*> totals = make(number, first, rows);
      Value* row = b_.add(b_.add(first, rows), number);
      for (size_t r = 0; r < reductions_.size(); r++) write_partial(row, r, totals[r]);
    });
    b_.at_end(body).yield();
    return body;
  }

  // ---- plain loops at the builder's point, which goes on behind them

  template <class F>
  void counted(int64_t from, int64_t to, F&& body) {
    Value* first = integer(from);
    Value* end = integer(to);
    around(b_.loop(first, end, integer(1)), body);
  }
  template <class F>
  void counted_to(Value* to, F&& body) {
    Value* first = integer(0);
    around(b_.loop(first, to, integer(1)), body);
  }
  template <class F>
  void around(Inst* loop, F&& body) {
    Region* region = b_.region();
    Inst* point = b_.point();
    b_.at_end(loop->region(0));
    body(loop->region(0)->arg(0));
    b_.yield();
    b_.at_end(region);
    if (point) b_.before(point);
  }

  Builder b_;
  uint32_t frame_, buffer_;
  const std::vector<Reduction>& reductions_;
  bool ordered_;
  bool one_;  ///< accumulator
  std::vector<Value*> slots_;
};

/// Puts `after[task]` behind each launch of a task.
void follow(std::vector<Step>& steps, const std::vector<std::vector<Step>>& after) {
  for (size_t k = 0; k < steps.size(); k++) {
    follow(steps[k].body, after);
    follow(steps[k].condition, after);
    if (steps[k].kind != Step::launch || steps[k].task >= after.size()) continue;
    const std::vector<Step>& next = after[steps[k].task];
    steps.insert(steps.begin() + int64_t(k) + 1, next.begin(), next.end());
    k += next.size();
  }
}

uint32_t declare_partials(Kernel& kernel, size_t task, const std::vector<Reduction>& reductions) {
  std::vector<Type> types;
  for (const Reduction& r : reductions) types.push_back(r.type);
  return abi::declare_buffer(kernel, "partial values", types,
                             {.rule = BufferSize::rows, .task = uint32_t(task)},
                             kernel.tasks[task].loc);
}

Step launch_of(Kernel& kernel, Task::Kind kind, Task::Walk walk, Loc loc, Region* body) {
  Task task;
  task.kind = kind;
  task.walk = walk;
  task.loc = loc;
  task.body = body;
  Step step;
  step.task = uint32_t(kernel.tasks.size());
  kernel.tasks.push_back(std::move(task));
  return step;
}

}  // namespace

void privatise_reductions(Kernel& kernel, const TargetTraits& target) {
  const size_t count = kernel.tasks.size();
  std::vector<std::vector<Step>> after(count);
  for (size_t k = 0; k < count; k++) {
    if (kernel.tasks[k].reductions.empty()) continue;
    const bool ordered = kernel.tasks[k].options.deterministic || kernel.modes.strict;
    const bool lanes = kernel.tasks[k].lanes;
    if (ordered || target.walk == Task::element) kernel.tasks[k].grain = chunk_length;
    const std::vector<Reduction> reductions = kernel.tasks[k].reductions;
    const Task::Walk walk = kernel.tasks[k].walk;
    const Loc loc = kernel.tasks[k].loc;
    const bool by_blocks = walk == Task::element && !lanes;
    const uint32_t buffer = by_blocks ? 0 : declare_partials(kernel, k, reductions);
    Privatiser privatiser(kernel, reductions, ordered, lanes, buffer);
    if (by_blocks) {
      privatiser.thread(kernel.tasks[k]);
      continue;
    }
    privatiser.chunk(kernel.tasks[k]);
    auto add = [&](Task::Kind kind, Region* body) {
      return launch_of(kernel, kind, walk, loc, body);
    };
    if (!lanes) {
      after[k] = {add(Task::serial, privatiser.combine(loc))};
      continue;
    }
    Step combine;
    combine.kind = Step::combining;
    combine.body.push_back(add(Task::combining, privatiser.gather(loc)));
    combine.body.push_back(add(Task::combining, privatiser.halve(loc)));
    after[k] = {combine, add(Task::serial, privatiser.finish(loc))};
  }
  follow(kernel.schedule, after);
}

}  // namespace quern::ir
