#include "ir/passes/tasks/open_tasks.h"

#include "quern/ir/builder.h"

namespace quern::ir {

void open_tasks(Kernel& kernel, const TargetTraits& target) {
  Builder b(kernel);
  uint32_t frame = kernel.frame_binding();
  for (Task& task : kernel.tasks) {
    bool ordered = task.options.deterministic || kernel.modes.strict;
    bool reduces = !task.reductions.empty();
    bool combines = !reduces || ordered || target.block_reductions;
    task.walk = combines ? target.walk : Task::chunked;
    task.lanes = reduces && ordered && task.walk == Task::element;
    if (task.kind == Task::serial) continue;
    Region* iteration = task.body;
    task.body = b.make_region();
    ValueMap map;
    b.at_end(task.body).at(task.loc);
    std::vector<Value*> bounds;  // of a field on a tree there are none
    if (task.domain) bounds = inline_region(b, task.domain, map);
    for (Inst* inst : *iteration)
      if (inst->is(Op::load) && inst->binding() == frame && inst->operand_count() == 0)
        move(b, inst);
    Inst* loop = b.make(Op::parallel, {}, bounds);
    loop->kind = task.rank;
    loop->options = task.options;
    b.set_regions(loop, {iteration});
    b.yield();
  }
  kernel.level = Level::opened;
}

Inst* parallel_of(const Task& task) {
  Inst* found = nullptr;
  walk(task.body, [&](Inst* inst) {
    if (inst->is(Op::parallel)) found = inst;
  });
  if (found) return found;
  throw InternalError("a range task has no parallel loop");
}

}  // namespace quern::ir
