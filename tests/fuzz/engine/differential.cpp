#include "tests/fuzz/engine/differential.h"

#include <unordered_map>

#include "quern/ir/verify.h"
#include "tests/fuzz/engine/values.h"

namespace quern::fuzz {

using namespace ir;

namespace {

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

TargetTraits target_of(uint64_t seed) {
  Random random(seed ^ 0x7461726765740000);
  auto coin = [&] { return random.chance(50); };
  TargetTraits t;
  // Without a default: a trait that is new has to find its values here.
  auto& [walk, fma_exact, div_exact, sqrt_exact, float_atomic_add, float_atomic_min_max,
         block_reductions, narrow_atomics, stoppable, told_of_failures, whole_grids, strip, calls,
         most_copied, half_conversions, if_nesting, loop_nesting, value_bytes, value_tasks,
         native_math] = t;
  walk = coin() ? Task::element : Task::chunked;
  for (int k = 0; k < 2; k++) {
    fma_exact[k] = coin();
    float_atomic_add[k] = coin();
    float_atomic_min_max[k] = coin();
  }
  div_exact = coin();
  sqrt_exact = coin();
  block_reductions = coin();
  narrow_atomics = coin();
  stoppable = coin();
  told_of_failures = coin();
  whole_grids = coin();
  strip = random.pick<uint32_t>({0, 1, 3, 4, 256});
  calls = coin();
  most_copied = random.pick<uint32_t>({0, 50, 1000});
  half_conversions = coin();
  if_nesting = uint32_t(random.below(5));
  loop_nesting = coin() ? 0 : 30;  // more than random programs have: fewer are an error
  value_bytes = coin() ? 0 : 4096;
  value_tasks = uint32_t(random.below(8));
  for (int op = 0; op < op_count; op++)
    for (Type type : {Type::f16, Type::f32, Type::f64})
      if (info(Op(op)).library && random.chance(20)) native_math.emplace_back(Op(op), type);
  return t;
}

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
  if (!first.refused.empty()) return no(first.refused);
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
  Random random(program.seed ^ 0x6f7074696f6e73);
  try {
    PassHook hook = [&](std::string_view pass, const Kernel& kernel) {
      stage = pass;
      // The hook sees the pipeline's own kernel, which the check made.
      if (checks.sabotage) checks.sabotage(pass, const_cast<Kernel&>(kernel));
      options.max_steps = 20 * checks.max_steps;
      options.seed++;
      options.grain = random.pick<uint64_t>({1, 2, 5, 11, 40, 1000, 1000, 1000});
      options.blocks = 1 + uint32_t(random.below(4));
      options.block_threads = random.pick<uint32_t>({1, 2, 3, 5, 8, 32});
      // An atomic that became plain may race: the interpreter's order would hardly show that.
      options.check_races = pass == "demote_atomics";
      std::vector<interpreter::Finding> races;
      std::string differs;
      if (checks.passes)
        differs = difference(expected, interpret(program, kernel, options, &races));
      if (differs.empty() && !races.empty()) differs = races.front().message;
      if (!differs.empty()) throw Found{{stage, differs}};
      if (pass == "structure_exits")
        expected = interpret(program, *renumbered(*program.kernel, kernel), options);
    };
    auto kernel = clone(*program.kernel);
    if (kernel->level == Level::recorded) finish_recording(*kernel, hook);
    if (checks.passes) {
      auto plain = clone(*kernel);
      split_as_written(*plain, hook);
      assume(*kernel, premises_of(signature(program)));
      optimise(*kernel, hook);
      split(*kernel, hook);
      lower(*kernel, signature(program), target_of(program.seed), hook);
    }
    for (const auto& device : checks.devices) {
      if (!program.on_devices) break;
      stage = device->name();
      Outcome there = run_on(device, program, checks.on_trees);
      if (checks.on_trees) {  // what looks after trees waits, and then lines come out
        there.printed = expected.printed;
        there.lines = expected.lines;
      }
      std::string differs = difference(expected, there);
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
