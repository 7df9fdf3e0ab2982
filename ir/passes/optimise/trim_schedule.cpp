#include "ir/passes/optimise/trim_schedule.h"

#include <numeric>
#include <set>

#include "ir/passes/optimise/dead_code.h"
#include "quern/ir/schedule.h"

namespace quern::ir {

namespace {

/// Every place that names a cell, as a reference to that name.
class Cells {
 public:
  explicit Cells(Kernel& kernel) : kernel_(kernel), frame_(kernel.frame_binding()) {}

  bool is_access(const Inst* inst) const {
    return (inst->is(Op::load) || inst->is(Op::store)) && inst->binding() == frame_;
  }
  /// Accesses with an index reach cells that they do not name.
  bool have_arrays() {
    bool found = false;
    walk(kernel_, [&](Inst* inst) {
      if (is_access(inst)) found |= inst->operand_count() > (inst->is(Op::store) ? 1u : 0u);
    });
    return found;
  }
  std::vector<uint32_t> uses() {
    std::vector<uint32_t> count(kernel_.frame.size());
    each([&](uint32_t named) {
      count[named]++;
      return named;
    });
    return count;
  }
  void rename(const std::vector<uint32_t>& to) {
    each([&](uint32_t named) { return to[named]; });
  }

 private:
  template <class F>
  void each(F&& f) {
    walk(kernel_, [&](Inst* inst) {
      if (is_access(inst)) inst->part = {frame_, f(inst->component())};
    });
    for (Task& task : kernel_.tasks)
      for (Reduction& r : task.reductions) r.cell = f(r.cell);
    for_each_step(kernel_.schedule, [&](Step& s) {
      if (s.kind != Step::launch) s.cell = f(s.cell);
    });
  }
  Kernel& kernel_;
  uint32_t frame_;
};

/// The task of a step, where that launches a serial one.
Task* serial_of(Kernel& kernel, const Step& step) {
  if (step.kind != Step::launch) return nullptr;
  Task& task = kernel.tasks[step.task];
  return task.kind == Task::serial ? &task : nullptr;
}

void drop_zeros(const Cells& cells, Region* body) {
  std::set<uint32_t> written;
  for (Inst* inst : *body) {
    const bool plain = cells.is_access(inst) && inst->is(Op::store) && inst->operand_count() == 1;
    if (!plain) {
      if (!inst->regions.empty()) return;  // may store anywhere
      continue;
    }
    const Inst* value = inst->operand(0)->inst;
    const bool zero = value && value->is(Op::constant) && value->imm == 0;
    if (zero && !written.contains(inst->component()))
      inst->erase();
    else
      written.insert(inst->component());
  }
}

void drop_copies(Kernel& kernel, Cells& cells, Region* body) {
  const std::vector<uint32_t> uses = cells.uses();
  std::vector<bool> stored(kernel.frame.size());
  walk(body, [&](Inst* inst) {
    if (cells.is_access(inst) && inst->is(Op::store)) stored[inst->component()] = true;
  });
  std::vector<uint32_t> names(kernel.frame.size());
  std::iota(names.begin(), names.end(), 0);
  for (Inst* inst : *body) {
    if (!cells.is_access(inst) || !inst->is(Op::store)) continue;
    const uint32_t result = inst->component();
    Inst* load = inst->operand(0)->inst;
    if (!load || !cells.is_access(load) || result >= kernel.results.size()) continue;
    const uint32_t cell = load->component();
    if (uses[result] != 1 || cell < kernel.results.size() || stored[cell] || names[cell] != cell ||
        kernel.frame[cell] != kernel.frame[result])
      continue;
    inst->erase();
    if (!load->used()) load->erase();
    names[cell] = result;
  }
  cells.rename(names);
}

void drop_unused_cells(Kernel& kernel, Cells& cells) {
  const std::vector<uint32_t> uses = cells.uses();
  while (kernel.frame.size() > kernel.results.size() && uses[kernel.frame.size() - 1] == 0)
    kernel.frame.pop_back();
}

void drop_if_empty(Kernel& kernel, size_t step) {
  const Task* task =
      step < kernel.schedule.size() ? serial_of(kernel, kernel.schedule[step]) : nullptr;
  if (!task || task->body->first != task->body->last || kernel.tasks.size() == 1) return;
  std::vector<bool> gone(kernel.tasks.size());
  gone[kernel.schedule[step].task] = true;
  drop_tasks(kernel, gone);
}

}  // namespace

void trim_schedule(Kernel& kernel) {
  Cells cells(kernel);
  if (kernel.schedule.empty() || cells.have_arrays()) return;
  if (Task* last = serial_of(kernel, kernel.schedule.back()))
    drop_copies(kernel, cells, last->body);
  if (Task* first = serial_of(kernel, kernel.schedule.front())) drop_zeros(cells, first->body);
  dead_code(kernel);
  drop_if_empty(kernel, kernel.schedule.size() - 1);
  drop_if_empty(kernel, 0);
  drop_unused_cells(kernel, cells);
}

}  // namespace quern::ir
