#include "tests/fuzz/engine/differential.h"

#include <unordered_map>

#include "quern/ir/verify.h"

namespace quern::fuzz {

using namespace ir;

namespace {

/// Targets whose lowering differs; which one a program is lowered for depends on its seed.
TargetTraits traits_of(uint64_t seed) {
  TargetTraits t;
  t.walk = seed % 3 == 0 ? Task::element : Task::chunked;
  t.block_reductions = seed % 2 == 0;
  t.fma_exact[0] = t.fma_exact[1] = seed % 2 == 0;
  t.float_atomic_min_max[0] = t.float_atomic_min_max[1] = seed % 5 == 0;
  t.narrow_atomics = seed % 4 != 1;
  t.half_conversions = seed % 7 < 4;
  t.if_nesting = uint32_t(seed % 5);
  t.lanes = seed % 5 < 3 ? 0 : 4;
  t.calls = seed % 11 < 6;
  t.stoppable = seed % 13 < 7;
  t.most_copied = 0;
  return t;
}

bool is_guarded(const Value* v) {
  const Inst* pick = v->inst;
  if (!pick || !pick->is(Op::select) || !pick->operand(1)->inst ||
      !pick->operand(1)->inst->is(Op::constant))
    return false;
  const Inst* test = pick->operand(0)->inst;
  return test && test->is(Op::ne) && test->operand(0) == pick->operand(2) &&
         test->operand(1) == pick->operand(2);
}

/// An operation that shows the bits of a NaN has an operand that is none.
bool hides_nans(const Kernel& kernel) {
  bool hides = true;
  for (Region* root : roots(kernel))
    walk(root, [&](Inst* inst) {
      const Value* seen = nullptr;
      if (inst->is(Op::bitcast) && is_float(inst->operand(0)->type)) seen = inst->operand(0);
      if (inst->is(Op::copysign)) seen = inst->operand(1);
      if (seen && !is_guarded(seen)) hides = false;
    });
  return hides;
}

struct Found {
  Failure failure;
};

/// A recorded kernel whose parallel loops have the numbers that they get when `structured`, its
/// next stage, is numbered: loops that can never be reached are gone there.
std::unique_ptr<Kernel> renumbered(const Kernel& recorded, const Kernel& structured) {
  std::unordered_map<uint32_t, uint32_t> ordinals;
  auto loops = [](Region* body, auto&& visit) {
    walk(body, [&](Inst* inst) {
      if (inst->is(Op::parallel)) visit(inst);
    });
  };
  loops(structured.body,
        [&](Inst* inst) { ordinals.emplace(inst->options.ordinal, uint32_t(ordinals.size())); });
  auto out = clone(recorded);
  loops(out->body, [&](Inst* inst) { inst->options.ordinal = ordinals[inst->options.ordinal]; });
  return out;
}

}  // namespace

bool sound(const Program& program, const Checks& checks, std::string* why) {
  auto no = [&](const std::string& reason) {
    if (why) *why = reason;
    return false;
  };
  if (auto findings = verify(*program.kernel); !findings.empty()) return no(findings.front());
  if (!hides_nans(*program.kernel)) return no("it looks at the bits of a NaN");
  interpreter::Options options;
  options.max_steps = checks.max_steps;
  options.check_bounds = options.check_races = true;
  std::vector<interpreter::Finding> findings;
  Outcome first = interpret(program, *program.kernel, options, &findings);
  if (!first.ended) return no("it takes too many steps");
  if (!findings.empty()) return no(findings.front().message);
  if (first.failed) return no("a check fails");
  for (uint64_t seed = 1; seed < 3; seed++) {
    options.seed = seed;
    std::string differs = difference(first, interpret(program, *program.kernel, options));
    if (!differs.empty()) return no("the order of iterations shows: " + differs);
  }
  return true;
}

std::optional<Failure> check(const Program& program, const Checks& checks) {
  interpreter::Options options;
  options.max_steps = checks.max_steps;
  Outcome expected = interpret(program, *program.kernel, options);
  std::string stage = "start";
  try {
    PassHook hook = [&](std::string_view pass, const Kernel& kernel) {
      stage = pass;
      // The hook sees the pipeline's own kernel, which the check made.
      if (checks.sabotage) checks.sabotage(pass, const_cast<Kernel&>(kernel));
      options.max_steps = 20 * checks.max_steps;
      options.seed++;
      options.grain = 1 + options.seed % 11;
      std::string differs;
      if (checks.passes) differs = difference(expected, interpret(program, kernel, options));
      if (!differs.empty()) throw Found{{stage, differs}};
      if (pass == "structure_exits")
        expected = interpret(program, *renumbered(*program.kernel, kernel), options);
    };
    auto kernel = clone(*program.kernel);
    if (kernel->level == Level::recorded) finish_recording(*kernel, hook);
    if (checks.passes) {
      auto plain = clone(*kernel);
      split(*plain, hook);
      optimise(*kernel, hook);
      lower(*kernel, signature(program), traits_of(program.seed), hook);
    }
    for (const auto& device : checks.devices) {
      stage = device->name();
      std::string differs = difference(expected, run_on(device, program));
      if (!differs.empty()) return Failure{stage, differs};
    }
  } catch (const Found& found) {
    return found.failure;
  } catch (const std::exception& e) {
    return Failure{"after " + stage, e.what()};
  }
  return {};
}

}  // namespace quern::fuzz
