#include "ir/passes/atomics/privatise_reductions.h"

#include "ir/passes/atomics/combine_rows.h"
#include "ir/passes/atomics/follow.h"
#include "ir/passes/tasks/open_tasks.h"
#include "quern/ir/abi.h"

namespace quern::ir {

namespace {

/// The reductions in an iteration's body become `accumulate(reduction, value)`.
template <class F>
void replace_reductions(Builder& b, Inst* loop, F&& accumulate) {
  std::vector<Inst*> found;
  walk(loop->region(0), [&](Inst* inst) {
    if (inst->is(Op::reduce)) found.push_back(inst);
  });
  for (Inst* inst : found) {
    b.before(inst).at(inst->loc);
    accumulate(size_t(inst->imm), inst->operand(0));
    inst->erase();
  }
}

/// Into accumulators, which go to the buffer at the end of the chunk or lane.
void privatise_by_chunk(Builder& b, Accumulators& all, Task& task) {
  Inst* loop = parallel_of(task);
  b.before(loop).at(task.loc);
  all.make();
  Value* begin = all.is_one() ? nullptr : b.builtin(Builtin::begin);
  Value* row = b.builtin(Builtin::chunk);
  b.after(loop);
  all.write(row, all.totals());
  replace_reductions(b, loop, [&](size_t r, Value* v) {
    all.accumulate(r, begin ? b.sub(b.builtin(Builtin::iteration), begin) : nullptr, v);
  });
}

/// Into accumulators of a thread, which at the end go to the cells, once a block.
void privatise_by_thread(Builder& b, Accumulators& all, Task& task) {
  Inst* loop = parallel_of(task);
  b.before(loop).at(task.loc);
  all.make();
  b.after(loop);
  std::vector<Value*> totals;
  for (size_t r = 0; r < all.count(); r++) {
    Value* own = all.total(r);
    if (own->type == Type::b1) own = b.convert(own, Type::u8);
    totals.push_back(b.block_reduce(all.reduction(r).op, own));
  }
  Value* number = b.builtin(Builtin::block_thread);
  Inst* first = b.if_(b.binary(Op::eq, number, b.integer(Type::i64, 0)));
  b.at_end(first->region(1)).yield();
  b.at_end(first->region(0));
  Value* frame = b.arg(abi::frame_address, Type::address);
  for (size_t r = 0; r < all.count(); r++) {
    Value* cell = b.offset(frame, b.integer(Type::i64, 8 * int64_t(all.reduction(r).cell)));
    b.rmw(all.reduction(r).op, cell, totals[r]->type, {&totals[r], 1}, abi::frame_class);
  }
  b.yield();
  replace_reductions(b, loop, [&](size_t r, Value* v) { all.accumulate(r, nullptr, v); });
}

uint32_t declare_rows(Kernel& kernel, size_t task, const std::vector<Reduction>& reductions) {
  std::vector<Type> types;
  for (const Reduction& r : reductions) types.push_back(r.type);
  return abi::declare_buffer(kernel, "partial values", types,
                             {.rule = BufferSize::rows, .task = uint32_t(task)},
                             kernel.tasks[task].loc);
}

}  // namespace

void privatise_reductions(Kernel& kernel, const TargetTraits& target) {
  const size_t count = kernel.tasks.size();
  const uint32_t frame = kernel.frame_binding();
  std::vector<std::vector<Step>> after(count);
  for (size_t k = 0; k < count; k++) {
    if (kernel.tasks[k].reductions.empty()) continue;
    const bool ordered = kernel.tasks[k].options.deterministic || kernel.modes.strict;
    const bool lanes = kernel.tasks[k].lanes;
    if (ordered || target.walk == Task::element) kernel.tasks[k].grain = abi::chunk_iterations;
    const std::vector<Reduction> reductions = kernel.tasks[k].reductions;
    const Task::Walk walk = kernel.tasks[k].walk;
    const Loc loc = kernel.tasks[k].loc;
    const bool by_blocks = walk == Task::element && !lanes;
    const uint32_t buffer = by_blocks ? 0 : declare_rows(kernel, k, reductions);
    Builder b(kernel);
    Accumulators all(b, reductions, ordered, lanes, buffer);
    if (by_blocks) {
      privatise_by_thread(b, all, kernel.tasks[k]);
      continue;
    }
    privatise_by_chunk(b, all, kernel.tasks[k]);
    auto add = [&](Task::Kind kind, Region* body) {
      Task task;
      task.kind = kind;
      task.walk = walk;
      task.loc = loc;
      task.body = body;
      return launch_of(kernel, std::move(task));
    };
    if (!lanes) {
      after[k] = {add(Task::serial, combine_rows(b, all, frame, loc))};
      continue;
    }
    Step combine;
    combine.kind = Step::combining;
    combine.body.push_back(add(Task::combining, gather_values(b, all, loc)));
    combine.body.push_back(add(Task::combining, halve_lanes(b, all, loc)));
    after[k] = {combine, add(Task::serial, take_last_row(b, all, frame, loc))};
  }
  follow(kernel.schedule, after);
}

}  // namespace quern::ir
