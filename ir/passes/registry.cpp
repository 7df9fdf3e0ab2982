#include "ir/passes/registry.h"

#include "ir/passes/atomics/aggregate_atomics.h"
#include "ir/passes/atomics/combine_rounds.h"
#include "ir/passes/atomics/demote_atomics.h"
#include "ir/passes/atomics/factor_sums.h"
#include "ir/passes/atomics/privatise_atomics.h"
#include "ir/passes/atomics/privatise_reductions.h"
#include "ir/passes/checks/check_access.h"
#include "ir/passes/checks/check_arithmetic.h"
#include "ir/passes/checks/lower_checks.h"
#include "ir/passes/checks/lower_print.h"
#include "ir/passes/checks/poll_loops.h"
#include "ir/passes/lower/legalise.h"
#include "ir/passes/lower/limit_nesting.h"
#include "ir/passes/lower/lower_access.h"
#include "ir/passes/lower/lower_loops.h"
#include "ir/passes/lower/lower_random.h"
#include "ir/passes/lower/widen_halves.h"
#include "ir/passes/optimise/carry_elements.h"
#include "ir/passes/optimise/close_counters.h"
#include "ir/passes/optimise/dead_code.h"
#include "ir/passes/optimise/fold_ranges.h"
#include "ir/passes/optimise/forward.h"
#include "ir/passes/optimise/hoist.h"
#include "ir/passes/optimise/promote_slots.h"
#include "ir/passes/optimise/simplify.h"
#include "ir/passes/optimise/split_arrays.h"
#include "ir/passes/optimise/trim_schedule.h"
#include "ir/passes/record/add_sites.h"
#include "ir/passes/record/drop_unused_snapshots.h"
#include "ir/passes/record/inline_calls.h"
#include "ir/passes/record/number_sites.h"
#include "ir/passes/record/structure_exits.h"
#include "ir/passes/tasks/bind.h"
#include "ir/passes/tasks/bound_domains.h"
#include "ir/passes/tasks/follow_tasks.h"
#include "ir/passes/tasks/open_tasks.h"
#include "ir/passes/tasks/split_tasks.h"
#include "ir/passes/trees/expand_trees.h"
#include "ir/passes/walks/defer_rare_branches.h"
#include "ir/passes/walks/defer_updates.h"
#include "ir/passes/walks/interleave_walks.h"
#include "ir/passes/walks/replay_rare_branches.h"
#include "ir/passes/walks/separate_sums.h"
#include "ir/passes/walks/split_walks.h"
#include "ir/passes/walks/version_rounds.h"
#include "ir/passes/walks/version_walks.h"
#include "ir/passes/walks/write_out_nests.h"
#include "quern/ir/lower.h"

namespace quern::ir {

namespace {

Signature plain_signature(const Kernel& kernel) {
  Signature s;
  for (uint32_t k = 0; k < kernel.bindings.size(); k++) s.fields.push_back({true, k});
  s.modes = kernel.modes;
  return s;
}

Signature wide_signature(const Kernel& kernel) {
  Signature s = plain_signature(kernel);
  s.wide = true;
  return s;
}

TargetTraits element_traits() {
  TargetTraits t;
  t.walk = Task::element;
  return t;
}

TargetTraits whole_grid_traits() {
  TargetTraits t = element_traits();
  t.whole_grids = true;
  return t;
}

TargetTraits told_traits() {
  TargetTraits t;
  t.told_of_failures = true;
  return t;
}

TargetTraits block_traits() {
  TargetTraits t = element_traits();
  t.block_reductions = true;
  return t;
}

TargetTraits strips_of(uint32_t iterations) {
  TargetTraits t;
  t.strip = iterations;
  return t;
}

TargetTraits two_deep() {
  TargetTraits t;
  t.if_nesting = t.loop_nesting = 2;
  return t;
}

TargetTraits calling_traits() {
  TargetTraits t;
  t.calls = true;
  t.most_copied = 0;
  return t;
}

TargetTraits stoppable_traits() {
  TargetTraits t;
  t.stoppable = true;
  return t;
}

/// A target that has nothing but integers of 32 and 64 bits.
TargetTraits bare_traits() {
  TargetTraits t = element_traits();
  for (int k = 0; k < 2; k++) t.fma_exact[k] = t.float_atomic_add[k] = false;
  t.narrow_atomics = t.half_conversions = false;
  return t;
}

constexpr NamedPass all[] = {
    {"drop_unused_snapshots", drop_unused_snapshots},
    {"structure_exits", structure_exits},
    {"number_sites", number_sites},
    {"add_sites", add_sites},
    {"inline_calls", inline_calls},
    {"inline_applied", inline_applied},
    {"promote_slots", promote_slots},
    {"split_arrays", split_arrays},
    {"simplify", simplify},
    {"dead_code", [](Kernel& k) { dead_code(k); }},
    {"forward", forward},
    {"hoist", hoist},
    {"close_counters", close_counters},
    {"fold_ranges", [](Kernel& k) { fold_ranges(k, false); }},
    {"fold_ranges.bound", [](Kernel& k) { fold_ranges(k, true); }},
    {"split_tasks", split_tasks},
    {"trim_schedule", trim_schedule},
    {"bind", [](Kernel& k) { bind(k, plain_signature(k)); }},
    {"factor_sums", factor_sums},
    {"combine_rounds", combine_rounds},
    {"demote_atomics", demote_atomics},
    {"carry_elements", carry_elements},
    {"open_tasks", [](Kernel& k) { open_tasks(k, {}); }},
    {"follow_tasks", follow_tasks},
    {"bound_domains", bound_domains},
    {"expand_trees", expand_trees},
    {"expand_trees.cells", [](Kernel& k) { expand_trees(k, {}); }},
    {"open_tasks.element", [](Kernel& k) { open_tasks(k, element_traits()); }},
    {"aggregate_atomics", [](Kernel& k) { aggregate_atomics(k, block_traits()); }},
    {"privatise_atomics", [](Kernel& k) { privatise_atomics(k, {}); }},
    {"privatise_reductions", [](Kernel& k) { privatise_reductions(k, {}); }},
    {"check_access", check_access},
    {"check_arithmetic", check_arithmetic},
    {"lower_random", lower_random},
    {"lower_checks", [](Kernel& k) { lower_checks(k, {}); }},
    {"lower_checks.calls", [](Kernel& k) { lower_checks(k, calling_traits()); }},
    {"lower_checks.told", [](Kernel& k) { lower_checks(k, told_traits()); }},
    {"lower_checks.stoppable", [](Kernel& k) { lower_checks(k, stoppable_traits()); }},
    {"lower_print", lower_print},
    {"lower_access", lower_access},
    {"lower_loops", [](Kernel& k) { lower_loops(k, plain_signature(k), {}); }},
    {"lower_loops.wide", [](Kernel& k) { lower_loops(k, wide_signature(k), {}); }},
    {"lower_loops.whole",
     [](Kernel& k) { lower_loops(k, plain_signature(k), whole_grid_traits()); }},
    {"version_walks", version_walks},
    {"write_out_nests.4", [](Kernel& k) { write_out_nests(k, strips_of(4)); }},
    {"split_walks.4", [](Kernel& k) { split_walks(k, strips_of(4)); }},
    {"separate_sums.4", [](Kernel& k) { separate_sums(k, strips_of(4)); }},
    {"interleave_walks.3", [](Kernel& k) { interleave_walks(k, strips_of(3)); }},
    {"interleave_walks.4", [](Kernel& k) { interleave_walks(k, strips_of(4)); }},
    {"interleave_walks.64", [](Kernel& k) { interleave_walks(k, strips_of(64)); }},
    {"replay_rare_branches.4", [](Kernel& k) { replay_rare_branches(k, strips_of(4)); }},
    {"defer_rare_branches.4", [](Kernel& k) { defer_rare_branches(k, strips_of(4)); }},
    {"defer_updates.4", [](Kernel& k) { defer_updates(k, strips_of(4)); }},
    {"defer_updates.16", [](Kernel& k) { defer_updates(k, strips_of(16)); }},
    {"version_rounds", [](Kernel& k) { version_rounds(k, {}); }},
    {"limit_nesting.2", [](Kernel& k) { limit_nesting(k, two_deep()); }},
    {"poll_loops.stoppable", [](Kernel& k) { poll_loops(k, stoppable_traits()); }},
    {"widen_halves", [](Kernel& k) { widen_halves(k, {}); }},
    {"widen_halves.bare", [](Kernel& k) { widen_halves(k, bare_traits()); }},
    {"legalise", [](Kernel& k) { legalise(k, {}); }},
    {"legalise.calls", [](Kernel& k) { legalise(k, calling_traits()); }},
    {"legalise.bare", [](Kernel& k) { legalise(k, bare_traits()); }},
};

}  // namespace

std::span<const NamedPass> passes() { return all; }

const NamedPass* pass_named(std::string_view name) {
  for (const NamedPass& p : all)
    if (p.name == name) return &p;
  return nullptr;
}

}  // namespace quern::ir
