// Functions with a derivative of their own: those of the library (quern/values/record.h, on the
// recording of this thread), and what users give rules for.
#include <algorithm>

#include "dsl/recording.h"
#include "ir/analysis/facts.h"
#include "quern/kernels/differentiable.h"

namespace quern::detail {

namespace {
/// Empty where recording has failed.
std::vector<ir::Value*> values_of(Recording& r, const Id* ids, int count) {
  std::vector<ir::Value*> out;
  for (int k = 0; k < count; k++) out.push_back(r.value(ids[k], Loc{}));
  if (r.failed()) out.clear();
  return out;
}
std::vector<ir::Type> types_of(std::span<ir::Value* const> values) {
  std::vector<ir::Type> out;
  for (const ir::Value* v : values) out.push_back(v->type);
  return out;
}
}  // namespace

bool begin_function(const char* rule, const Id* arguments, int count, int results, Id* parameters) {
  Recording& r = recording(Loc{});
  const std::vector<ir::Type> types = types_of(values_of(r, arguments, count));
  if (r.failed() || r.function_with(rule, types, size_t(results))) return false;
  ir::Function f;
  f.derivative = rule;
  f.loc = r.last;
  f.body = r.b.make_region(std::span<const ir::Type>(types));
  r.open_functions.push_back({std::move(f), r.b.region(), std::move(r.frames), r.function,
                              std::exchange(r.reassociates, false)});
  r.function = true;
  r.frames = {{Block::body, nullptr, r.last}};
  r.b.at_end(r.open_functions.back().function.body);
  for (int k = 0; k < count; k++)
    parameters[k] = r.add(r.open_functions.back().function.body->arg(size_t(k)));
  return true;
}

void end_function(const Id* results, int count) {
  Recording& r = recording(Loc{});
  const std::vector<ir::Value*> values = values_of(r, results, count);
  r.at(Loc{}).yield(values);
  OpenFunction open = std::move(r.open_functions.back());
  r.open_functions.pop_back();
  r.frames = std::move(open.frames);
  r.function = open.in_function;
  r.reassociates = open.reassociates;
  r.b.at_end(open.around);
  open.function.results = types_of(values);
  if (!r.failed()) r.add_function(std::move(open.function), false);
}

void apply(const char* rule, const Id* arguments, int count, Id* out, int results, Loc loc) {
  Recording& r = recording(loc);
  const std::vector<ir::Value*> values = values_of(r, arguments, count);
  if (r.failed()) return;
  const uint32_t callee = r.function_with(rule, types_of(values), size_t(results)).value();
  const std::vector<ir::Type> types = r.kernel->callees[callee].results;
  ir::Inst* inst = r.at(loc).make(ir::Op::apply, types, values, callee);
  for (int k = 0; k < results; k++) out[k] = r.add(inst->result(size_t(k)));
}

namespace {
/// What the instruction does that such a function may not.
std::string offence(const ir::Inst* inst) {
  using ir::NameUse;
  const NameUse names = ir::info(inst->op).names;
  if (inst->is(ir::Op::check)) return "checks a condition";
  if (inst->is(ir::Op::print)) return "prints";
  if (inst->is(ir::Op::launch_key)) return "draws a random number";
  if (inst->is(ir::Op::get) || inst->is(ir::Op::put))
    return "indexes a local array by what is no constant of the host's";
  if (inst->is(ir::Op::div) || inst->is(ir::Op::rem)) return "divides integers by what may be zero";
  if (inst->is(ir::Op::convert)) return "casts a float to an integer, which may not hold it";
  if (names == NameUse::component || names == NameUse::axis) return "uses a field";
  return "records '" + std::string(ir::info(inst->op).name) + "'";
}
}  // namespace

void expect_of_arguments(FuncObject* function) {
  for (const ir::Inst* inst : *function->kernel->body)
    if (const ir::Inst* found = ir::beyond_arguments(*function->kernel, inst))
      throw Error(found->loc, "a function with a derivative of its own, or its rule, " +
                                  offence(found) +
                                  ": they depend on their arguments alone, have no effect and "
                                  "cannot fail");
}

void give_rule(FuncObject* function, bool back, FuncObject* rule) {
  expect_of_arguments(rule);
  retain(rule);
  (back ? function->pullback : function->pushforward) = Ref<FuncObject>(rule);
}

}  // namespace quern::detail
