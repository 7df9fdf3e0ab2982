#include "quern/ir/schedule.h"

namespace quern::ir {

std::set<uint32_t> condition_cells(const Kernel& kernel) {
  std::set<uint32_t> cells;
  for_each_step(kernel.schedule, [&](const Step& s) {
    if (reads_cell(s)) cells.insert(s.cell);
  });
  return cells;
}

void drop_tasks(Kernel& kernel, const std::vector<bool>& gone) {
  std::vector<uint32_t> number(kernel.tasks.size());
  std::vector<Task> kept;
  for (size_t k = 0; k < kernel.tasks.size(); k++) {
    number[k] = uint32_t(kept.size());
    if (!gone[k]) kept.push_back(std::move(kernel.tasks[k]));
  }
  kernel.tasks = std::move(kept);
  erase_steps(kernel.schedule, [&](const Step& s) {
    return s.kind == Step::launch ? gone[s.task] : s.kind == Step::if_ && s.body.empty();
  });
  for (Task& task : kernel.tasks)
    if (task.follows.task != no_task) task.follows.task = number[task.follows.task];
  for_each_step(kernel.schedule, [&](Step& s) {
    if (s.kind == Step::launch || s.kind == Step::reserve) s.task = number[s.task];
  });
}

}  // namespace quern::ir
