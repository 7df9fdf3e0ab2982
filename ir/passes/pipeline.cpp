// The table of contents of the compiler: which passes run, in which order.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

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
#include "quern/ir/text.h"
#include "quern/ir/verify.h"

namespace quern::ir {

namespace {

#ifdef QUERN_VERIFY_PASSES
std::atomic<PassCheck> pass_check = expect_valid;
#else
std::atomic<PassCheck> pass_check = nullptr;
#endif

/// Runs passes one by one: checked, shown to the hook, printed where QUERN_DUMP=passes asks for
/// it. Optional ones of each step stop after QUERN_PASS_LIMIT, which bisects a wrong optimisation.
class Runner {
 public:
  Runner(Kernel& kernel, const PassHook& hook) : kernel_(kernel), hook_(hook) {
    const char* dump = std::getenv("QUERN_DUMP");
    dump_ = dump && std::strcmp(dump, "passes") == 0;
    if (const char* limit = std::getenv("QUERN_PASS_LIMIT")) limit_ = std::atol(limit);
  }

  template <class Pass, class... Arguments>
  void must(const char* name, Pass pass, const Arguments&... arguments) {
    pass(kernel_, arguments...);
    done(name);
  }
  template <class Pass>
  void may(const char* name, Pass pass) {
    if (limit_ == 0) return;
    if (limit_ > 0) limit_--;
    must(name, pass);
  }

 private:
  void done(const char* name) {
    if (dump_) std::fprintf(stderr, "; after %s\n%s\n", name, print(kernel_).c_str());
    if (check_) check_(kernel_, name);
    if (hook_) hook_(name, kernel_);
  }

  Kernel& kernel_;
  const PassHook& hook_;
  const PassCheck check_ = pass_check;
  bool dump_ = false;
  long limit_ = -1;
};

}  // namespace

void set_pass_check(PassCheck check) { pass_check = check; }

void finish_recording(Kernel& kernel, const PassHook& hook) {
  Runner run(kernel, hook);
  run.must("drop_unused_snapshots", drop_unused_snapshots);
  run.must("structure_exits", structure_exits);
  run.must("number_sites", number_sites);
}

void optimise(Kernel& kernel, const PassHook& hook) {
  Runner run(kernel, hook);
  run.must("add_sites", add_sites);
  run.must("inline_calls", inline_calls);
  run.may("split_arrays", split_arrays);
  run.may("promote_slots", promote_slots);
  run.may("simplify", simplify);
  run.may("forward", forward);
  run.may("hoist", hoist);
  run.may("close_counters", close_counters);
  run.may("fold_ranges", [](Kernel& k) { fold_ranges(k, false); });
  run.may("simplify", simplify);
}

void split(Kernel& kernel, const PassHook& hook) {
  Runner run(kernel, hook);
  run.must("inline_applied", inline_applied);
  run.must("split_tasks", split_tasks);
  run.may("promote_slots", promote_slots);
  run.may("simplify", simplify);
  run.may("trim_schedule", trim_schedule);
}

void split_as_written(Kernel& kernel, const PassHook& hook) {
  Runner run(kernel, hook);
  run.must("add_sites", add_sites);
  run.must("split_tasks", split_tasks);
}

void lower(Kernel& kernel, const Signature& signature, const TargetTraits& target,
           const PassHook& hook) {
  Runner run(kernel, hook);
  run.must("bind", bind, signature);
  run.may("factor_sums", factor_sums);
  run.may("combine_rounds", combine_rounds);
  run.may("demote_atomics", demote_atomics);
  run.may("forward", forward);
  run.may("carry_elements", carry_elements);
  run.must("open_tasks", open_tasks, target);
  run.may("fold_ranges", [](Kernel& k) { fold_ranges(k, true); });
  run.may("follow_tasks", follow_tasks);
  run.may("aggregate_atomics", [&](Kernel& k) { aggregate_atomics(k, target); });
  run.may("privatise_atomics", [&](Kernel& k) { privatise_atomics(k, target); });
  run.must("privatise_reductions", privatise_reductions, target);
  run.must("check_access", check_access);
  run.must("expand_trees", [&](Kernel& k) { expand_trees(k, target); });
  run.may("bound_domains", bound_domains);
  run.must("check_arithmetic", check_arithmetic);
  run.must("lower_random", lower_random);
  run.must("lower_checks", lower_checks, target);
  run.must("lower_print", lower_print);
  run.must("lower_access", lower_access);
  run.must("lower_loops", lower_loops, signature, target);
  run.may("promote_slots", promote_slots);
  run.must("widen_halves", widen_halves, target);
  run.may("hoist", hoist);  // library functions, as long as they are one instruction
  run.must("legalise", legalise, target);
  run.may("simplify", simplify);
  run.may("hoist", hoist);
  run.may("version_walks", version_walks);
  if (kernel.modes.checked) run.may("simplify", simplify);  // what was asked is answered
  run.may("write_out_nests", [&](Kernel& k) { write_out_nests(k, target); });
  run.may("split_walks", [&](Kernel& k) { split_walks(k, target); });
  run.may("simplify", simplify);
  run.may("separate_sums", [&](Kernel& k) { separate_sums(k, target); });
  run.may("interleave_walks", [&](Kernel& k) { interleave_walks(k, target); });
  run.may("replay_rare_branches", [&](Kernel& k) { replay_rare_branches(k, target); });
  run.may("defer_rare_branches", [&](Kernel& k) { defer_rare_branches(k, target); });
  run.may("defer_updates", [&](Kernel& k) { defer_updates(k, target); });
  run.may("version_rounds", [&](Kernel& k) { version_rounds(k, target); });
  run.must("poll_loops", poll_loops, target);
  run.must("limit_nesting", limit_nesting, target);
  run.may("simplify", simplify);
  run.may("hoist", hoist);
}

namespace {
/// A float atomic whose result depends on the order of iterations, unless it is one iteration's own.
const Inst* first_ordered(const Kernel& kernel) {
  const Inst* found = nullptr;
  for (Region* root : roots(kernel))
    walk(root, [&](const Inst* inst) {
      if (!found && inst->is(Op::atomic) && is_float(inst->elem) &&
          (inst->atomic() == AtomicOp::add || inst->atomic() == AtomicOp::mul))
        found = inst;
    });
  return found;
}
}  // namespace

void expect_ordered(const Kernel& kernel, const Signature& signature) {
  if (!first_ordered(kernel)) return;
  std::unique_ptr<Kernel> copy = clone(kernel);
  bind(*copy, signature);
  demote_atomics(*copy);
  const Inst* inst = first_ordered(*copy);
  if (!inst) return;
  const Binding& to = copy->bindings[inst->binding()];
  const bool is_of_derivative = !to.companion.empty();
  throw Error(
      inst->loc,
      "a float atomic " + std::string(name(inst->atomic())) +
          (is_of_derivative ? " to " + to.name : "") +
          " depends on the order of iterations, so a strict kernel cannot give the same bits "
          "everywhere; " +
          (is_of_derivative
               ? "let each element be read in one iteration, pass what all of them read as an "
                 "argument of the kernel, or differentiate it without strict"
               : "reduce into a variable, or use integers"));
}

}  // namespace quern::ir
