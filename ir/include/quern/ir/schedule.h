#pragma once
// Walking a schedule: for who runs it, for who looks at its steps, for who takes some out.
#include <algorithm>
#include <set>
#include <span>

#include "quern/ir/ir.h"

namespace quern::ir {

/// Runs a schedule. The runner has
///   void launch(uint32_t task)
///   void combine(const Step& step)    the launches of a combining step
///   void refresh(uint32_t binding)    the lists of the tree that the field is on
///   void collect(uint32_t binding)    what ends on the tree that the field is on
///   void reserve(const Step& step)    room on a tree, by the step's launches
///   bool condition(uint32_t cell)     what the frame cell holds, a wait where a device runs
///   bool begin_guard(uint32_t cell)   true: launches until `end_guard` run on condition of the cell,
///   void end_guard()                  which nobody waits for; false: it cannot do that
template <class Runner>
void run_schedule(std::span<const Step> steps, Runner& runner) {
  auto is_launch = [](const Step& s) {
    return s.kind == Step::launch || s.kind == Step::combining;
  };
  for (const Step& step : steps) {
    if (step.kind == Step::launch) {
      runner.launch(step.task);
    } else if (step.kind == Step::combining) {
      runner.combine(step);
    } else if (step.kind == Step::refresh) {
      runner.refresh(step.binding);
    } else if (step.kind == Step::collect) {
      runner.collect(step.binding);
    } else if (step.kind == Step::reserve) {
      runner.reserve(step);
    } else if (step.kind == Step::repeat) {
      for (run_schedule(step.condition, runner); runner.condition(step.cell);
           run_schedule(step.condition, runner))
        run_schedule(step.body, runner);
    } else if (std::ranges::all_of(step.body, is_launch) && runner.begin_guard(step.cell)) {
      run_schedule(step.body, runner);
      runner.end_guard();
    } else if (runner.condition(step.cell)) {
      run_schedule(step.body, runner);
    }
  }
}

/// Calls `visit` with each step, outer before inner.
template <class Steps, class F>
void for_each_step(Steps& steps, F&& visit) {
  for (auto& step : steps) {
    visit(step);
    for_each_step(step.condition, visit);
    for_each_step(step.body, visit);
  }
}

/// Erases the steps for which `gone` holds, which is asked of inner steps before outer ones.
template <class F>
void erase_steps(std::vector<Step>& steps, F&& gone) {
  std::erase_if(steps, [&](Step& step) {
    erase_steps(step.condition, gone);
    erase_steps(step.body, gone);
    return gone(step);
  });
}

/// Does a frame cell decide what of this step runs?
inline bool reads_cell(const Step& s) { return s.kind == Step::if_ || s.kind == Step::repeat; }

/// Is it done by a tree, for the tasks around it?
inline bool sees_to_tree(const Step& s) {
  return s.kind == Step::refresh || s.kind == Step::reserve || s.kind == Step::collect;
}

/// The frame cells that decide what runs.
std::set<uint32_t> condition_cells(const Kernel& kernel);

/// Takes tasks out of a kernel: they, their launches, branches that nothing is left of. The others
/// are numbered anew.
void drop_tasks(Kernel& kernel, const std::vector<bool>& gone);

}  // namespace quern::ir
