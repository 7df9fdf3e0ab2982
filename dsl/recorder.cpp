// Beginning and end of a recording, parameters, results and calls.
#include "dsl/recording.h"
#include "quern/ir/bindings.h"
#include "quern/kernels/func.h"
#include "quern/kernels/signature.h"

namespace quern::detail {

namespace {

std::string type_list(std::span<const ir::Type> types) {
  if (types.size() == 1) return std::string(ir::name(types[0]));
  std::string text = "(";
  for (ir::Type t : types) text += (text.size() > 1 ? ", " : "") + std::string(ir::name(t));
  return text + ")";
}

/// The value in the result's type: a literal adopts it where it fits.
ir::Value* adopted(Recording& r, ir::Value* v, ir::Type to, Loc loc) {
  if (v->type == to || !v->inst || !v->inst->is(ir::Op::constant)) return v;
  ir::Bits bits = v->inst->imm;
  if (ir::is_float(to) && ir::is_float(v->type))
    return r.at(loc).real(to, ir::real_of(bits, v->type));
  if (!ir::is_int(v->type) || !ir::is_number(to)) return v;
  int64_t n = ir::to_signed(bits, v->type);
  if (ir::is_float(to)) return r.at(loc).real(to, double(n));
  bool fits = ir::is_signed(to) ? ir::to_signed(ir::truncate(ir::Bits(n), to), to) == n
                                : n >= 0 && ir::truncate(ir::Bits(n), to) == ir::Bits(n);
  return fits ? r.at(loc).integer(to, n) : v;
}

/// Values of a return in the types of the results; poisons where they do not agree.
std::vector<ir::Value*> returned(Recording& r, const Id* values, int count, Loc loc) {
  std::vector<ir::Value*> out;
  for (int k = 0; k < count; k++) out.push_back(r.value(values[k], loc));
  if (r.failed()) return {};
  const auto& wanted = r.kernel->results;
  std::vector<ir::Type> found;
  for (size_t k = 0; k < out.size(); k++) {
    if (k < wanted.size()) out[k] = adopted(r, out[k], wanted[k], loc);
    found.push_back(out[k]->type);
  }
  if (found == wanted) return out;
  std::string text = "Return(" + (found.empty() ? "" : type_list(found)) + ") in a " + r.spoken();
  r.fail(loc, wanted.empty() ? text +
                                   " without a result: end it with a native `return value;` "
                                   "(or write `-> F32`)"
                             : text + " whose result is " + type_list(wanted));
  return {};
}

}  // namespace

Recorder::Recorder(const void* function, bool checked, const Scalar* results, int count, Loc loc) {
  std::vector<ir::Type> types;
  for (int k = 0; k < count; k++) types.push_back(type_of_scalar(results[k]));
  push_recording(std::make_unique<Recording>(function, checked, types, loc));
}

Recorder::~Recorder() {
  if (open_) pop_recording();
}

Recording* Recorder::finish() {
  open_ = false;
  auto r = pop_recording();
  if (r->failed()) throw *r->error;
  if (r->frames.size() != 1)
    throw InternalError("a recording ended inside a block begun at " + place(r->frames.back().loc));
  r->at(r->loc);
  r->close_region();
  ir::put_companions_last(*r->kernel);
  return r.release();
}

KernelObject* make_kernel(Recording* owned, const char* name) {
  std::unique_ptr<Recording> r(owned);
  if (name) r->kernel->name = name;
  auto kernel = std::make_unique<KernelObject>();
  kernel->reassociated = r->reassociated;
  kernel->captured = std::move(r->captured);
  for (const auto& field : kernel->captured)
    kernel->captured_arguments.push_back({0, field.get()->storage});
  kernel->program = std::make_unique<runtime::Program>(std::move(r->kernel));
  return kernel.release();
}

FuncObject* make_function(Recording* owned) {
  std::unique_ptr<Recording> r(owned);
  auto function = std::make_unique<FuncObject>();
  function->loc = r->loc;
  function->reassociated = r->reassociated;
  function->captured = std::move(r->captured);
  function->callees = std::move(r->functions);
  function->kernel = std::move(r->kernel);
  return function.release();
}

Id parameter(Scalar scalar, Loc loc) {
  Recording& r = recording(loc);
  ir::Type type = type_of_scalar(scalar);
  if (r.function) {
    ir::Region* body = r.kernel->body;
    ir::Value* arg = r.b.add_arg(body, type);
    // Arguments lie side by side: those made before have moved.
    for (ir::Value*& v : r.values)
      if (v && v->region == body) v = body->arg(v->index);
    return r.add(arg);
  }
  ir::Binding binding;
  binding.kind = ir::Binding::scalar;
  binding.components.push_back({type});
  binding.name = "parameter " + std::to_string(r.kernel->bindings.size() + 1);
  binding.loc = loc;
  r.kernel->bindings.push_back(std::move(binding));
  return r.add(r.b.at(loc).param(uint32_t(r.kernel->bindings.size() - 1), type));
}

FieldObject* field_parameter(FieldType type, Loc loc) {
  Recording& r = recording(loc);
  ir::Binding binding;
  binding.kind = ir::Binding::field;
  binding.rank = uint8_t(type.rank);
  for (int k = 0; k < type.element.count; k++) binding.components.push_back({scalar_of(type, k)});
  binding.name = "parameter " + std::to_string(r.kernel->bindings.size() + 1);
  binding.loc = loc;
  r.kernel->bindings.push_back(std::move(binding));
  auto field = std::make_unique<FieldObject>();
  field->type = type;
  field->loc = loc;
  field->recording = r.number;
  field->binding = uint32_t(r.kernel->bindings.size() - 1);
  return field.release();
}

void native_return(const Id* values, int count) {
  Recording& r = recording(Loc{});
  auto out = returned(r, values, count, Loc{});
  if (!r.failed()) r.leave(ir::Op::return_, out, 0, Loc{});
}

void return_(const Id* values, int count, Loc loc) {
  Recording& r = recording(loc);
  if (r.failed()) return;
  if (!r.can_return())
    return r.fail(loc, (r.in_parallel() ? "Return() in a parallel loop"
                                        : "Return() in the condition of a While") +
                           exits_here(r));
  auto out = returned(r, values, count, loc);
  if (!r.failed()) r.leave(ir::Op::return_, out, 0, loc);
}

namespace {
/// "the function begun at a calls the one begun at b, which …": the cycle that a call closes.
std::string cycle(const std::vector<const Recording*>& open) {
  std::string text = "the function begun at " + place(open[0]->loc) + " calls ";
  for (size_t k = 1; k < open.size(); k++)
    text += "the one begun at " + place(open[k]->loc) + ", which calls ";
  return text + (open.size() > 1 ? "the first again" : "itself");
}
}  // namespace

void call(const void* handle, FuncObject* function, const Id* arguments, int count, Id* out,
          int results, Loc loc) {
  Recording& r = recording(loc);
  for (int k = 0; k < results; k++) out[k] = {};
  if (!function) {
    auto open = recordings_since(handle);
    if (open.empty())
      return r.fail(loc,
                    "this Func holds no function: it was moved from, or it is a copy of one "
                    "that is still being recorded");
    return r.fail(loc, "a function cannot call itself, since some devices have no recursion: " +
                           cycle(open) + "; use a loop");
  }
  std::vector<ir::Value*> operands;
  for (int k = 0; k < count; k++) operands.push_back(r.value(arguments[k], loc));
  if (r.failed()) return;
  uint32_t callee = r.import(function, loc);
  if (r.failed()) return;
  const auto& types = function->kernel->results;
  const ir::Op op = function->has_rule() ? ir::Op::apply : ir::Op::call;
  ir::Inst* inst = r.at(loc).make(op, types, operands, callee);
  for (int k = 0; k < results; k++) out[k] = r.add(inst->result(size_t(k)));
}

}  // namespace quern::detail
