// Functions of the library with a derivative of their own: quern/values/record.h on the recording of
// this thread.
#include <algorithm>

#include "dsl/recording.h"

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

}  // namespace quern::detail
