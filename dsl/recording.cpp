#include "dsl/recording.h"

#include <algorithm>
#include <cstring>
#include <mutex>

namespace quern::detail {

namespace {

thread_local std::vector<std::unique_ptr<Recording>> stack;

/// Where each recording of the process began: a value outlives its recording only by mistake, and
/// the message about that names the place.
struct Places {
  std::mutex mutex;
  std::vector<Loc> begun = {Loc{}};  // number 0 is none
};
Places& places() {
  static Places all;
  return all;
}
uint32_t new_number(Loc loc) {
  Places& all = places();
  std::lock_guard lock(all.mutex);
  all.begun.push_back(loc);
  return uint32_t(all.begun.size() - 1);
}

void set_recording_loc(uint32_t number, Loc loc) {
  Places& all = places();
  std::lock_guard lock(all.mutex);
  all.begun[number] = loc;
}

}  // namespace

Loc recording_loc(uint32_t number) {
  Places& all = places();
  std::lock_guard lock(all.mutex);
  return number < all.begun.size() ? all.begun[number] : Loc{};
}

std::string place(Loc loc) {
  return loc.line ? std::string(loc.file) + ":" + std::to_string(loc.line) : "an unknown place";
}

Recording* active_recording() { return stack.empty() ? nullptr : stack.back().get(); }

Recording& recording(Loc loc) {
  if (stack.empty())
    throw Error(loc,
                "a device value is made or used outside a kernel; values exist only while a kernel "
                "or function is recorded (host access to a field: at, set, copy_to, copy_from)");
  return *stack.back();
}

void expect_no_recording(const char* access, Loc loc) {
  const Recording* r = active_recording();
  if (!r) return;
  const std::string spoken = r->function ? "function" : "kernel";
  throw Error(loc.line ? loc : r->last,
              std::string(access) + " happens once, while the " + spoken +
                  " is recorded (begun at " + place(r->loc) +
                  "), and not when it runs: write it before or behind the " + spoken);
}

void push_recording(std::unique_ptr<Recording> r) {
  constexpr size_t deepest = 64;
  if (stack.size() == deepest)
    throw Error(r->loc,
                "64 recordings are open, each begun in another: a function that records "
                "itself never ends (begun first at " +
                    place(stack.front()->loc) + ")");
  stack.push_back(std::move(r));
}

std::vector<const Recording*> recordings_since(const void* handle) {
  std::vector<const Recording*> out;
  for (const auto& r : stack)
    if (!out.empty() || r->handle == handle) out.push_back(r.get());
  return out;
}

std::unique_ptr<Recording> pop_recording() {
  auto top = std::move(stack.back());
  stack.pop_back();
  return top;
}

Recording::Recording(const void* function_handle, bool is_checked,
                     std::span<const ir::Type> results, Loc at)
    : handle(function_handle),
      function(function_handle != nullptr),
      checked(is_checked),
      number(new_number(at)),
      loc(at),
      last(at),
      kernel(std::make_unique<ir::Kernel>()),
      b(*kernel) {
  kernel->loc = at;
  kernel->results.assign(results.begin(), results.end());
  kernel->body = b.make_region();
  b.at_end(kernel->body);
  frames.push_back({Block::body, nullptr, at});
}

ir::Builder& Recording::at(Loc place_) {
  if (placed.line) place_ = placed;
  if (place_.line) {
    if (!placed_first) begins_by(place_);
    last = place_;
  }
  return b.at(last);
}

void Recording::begins_by(Loc first) {
  placed_first = true;
  if (std::strcmp(first.file, loc.file) != 0 || first.line >= loc.line) return;
  loc = kernel->loc = first;
  set_recording_loc(number, first);
  for (ir::Inst* parameter : *kernel->body) parameter->loc = first;
  // Those of captured fields and companions follow, and lie where these were made.
  const std::vector<ir::Binding>& all = kernel->bindings;
  const auto companions = std::ranges::count_if(all, &ir::Binding::is_derived);
  const size_t parameters = all.size() - captured.size() - size_t(companions);
  for (size_t k = 0; k < parameters; k++) kernel->bindings[k].loc = first;
}

void Recording::fail(Loc at, const std::string& message) {
  if (placed.line) at = placed;
  if (!error) error.emplace(at.line ? at : last, message);
}

bool Recording::expect_own(uint32_t maker, Loc made, Loc use) {
  if (maker == number) return true;
  fail(use.line ? use : made, "a value recorded in another kernel or function (at " + place(made) +
                                  ") is used here; pass it as an argument");
  return false;
}

ir::Value* Recording::value(Id id, Loc use) {
  if (failed()) return nullptr;
  if (id.recording != number) {
    Loc made = recording_loc(id.recording);
    for (const auto& r : stack)
      if (r->number == id.recording && id.index < r->values.size()) {
        ir::Value* v = r->values[id.index];
        if (v->inst && v->inst->loc.line) made = v->inst->loc;
      }
    expect_own(id.recording, made, use);
    return nullptr;
  }
  ir::Value* v = values[id.index];
  if (!v) {
    fail(use,
         "the old value of a reduction is used here; iterations contribute in no order, so it has "
         "none (an atomic on an element of a field yields one)");
    return nullptr;
  }
  const ir::Region* home = v->inst ? v->inst->parent : v->region;
  if (!home || !ir::encloses(home, b.region())) {
    Loc made = v->inst ? v->inst->loc : Loc{};
    fail(use.line ? use : made,
         "a value recorded inside a block (at " + place(made) +
             ") is used outside it; declare a Var before the block and assign it there");
    return nullptr;
  }
  return v;
}

ir::Value* Recording::arithmetic(ir::Op op, ir::Value* x, ir::Value* y) {
  ir::Value* v = b.binary(op, x, y);
  const bool regroups = op == ir::Op::add || op == ir::Op::sub || op == ir::Op::mul;
  if (reassociates && regroups && (v->type == ir::Type::f32 || v->type == ir::Type::f64))
    v->inst->kind |= ir::reassociate | ir::distribute;
  return v;
}

void Recording::close_region() {
  ir::Inst*& first_exit = frames.back().exit;
  if (!first_exit) {
    b.yield();
    return;
  }
  while (b.region()->last != first_exit) b.region()->last->erase();
  first_exit = nullptr;
}

void Recording::leave(ir::Op op, std::span<ir::Value* const> operands, uint64_t imm, Loc place_) {
  ir::Inst* inst = at(place_).make(op, std::span<const ir::Type>(), operands, imm);
  if (!frames.back().exit) frames.back().exit = inst;
}

bool Recording::in_parallel() const {
  for (const Frame& f : frames)
    if (f.parallel) return true;
  return false;
}

bool Recording::can_return() const {
  for (const Frame& f : frames)
    if (f.parallel || f.condition) return false;
  return true;
}

bool Recording::crosses(const ir::Value* slot) const {
  for (const Frame& f : frames)
    if (f.parallel) return !ir::encloses(f.inst->region(0), slot->inst->parent);
  return false;
}

std::optional<uint32_t> Recording::binding(FieldObject* field, Loc use) {
  if (!field->storage) {
    if (field->recording == number) return field->binding;
    fail(use, "a field parameter of another kernel (at " + place(recording_loc(field->recording)) +
                  ") is used here");
    return std::nullopt;
  }
  auto found = captured_bindings.find(field);
  if (found != captured_bindings.end()) return found->second;
  ir::Binding binding;
  binding.kind = ir::Binding::field;
  binding.rank = uint8_t(field->type.rank);
  binding.components = field->storage->components();
  binding.name = "the field made at " + place(field->loc);
  binding.loc = field->loc;
  uint32_t index = uint32_t(kernel->bindings.size());
  kernel->bindings.push_back(std::move(binding));
  captured_bindings.emplace(field, index);
  retain(field);
  captured.push_back(Ref<FieldObject>(field));
  return index;
}

FieldObject* Recording::companion(FieldObject* parameter, const char* name, FieldType type,
                                  Loc use) {
  auto field = std::make_unique<FieldObject>();
  field->type = type;
  field->loc = use;
  field->recording = parameter->recording;
  const std::optional<uint32_t> of = binding(parameter, use);
  if (!of) return field.release();
  std::vector<ir::Binding>& all = kernel->bindings;
  const auto known = std::ranges::find_if(
      all, [&](const ir::Binding& at) { return at.of == *of && at.companion == name; });
  field->binding = uint32_t(known - all.begin());
  if (known != all.end()) return field.release();
  ir::Binding made;
  made.kind = ir::Binding::field;
  made.rank = all[*of].rank;
  for (int k = 0; k < type.element.count; k++) made.components.push_back({scalar_of(type, k)});
  made.name = "the " + std::string(name) + " of " + all[*of].name;
  made.loc = use;
  made.of = *of;
  made.companion = name;
  all.push_back(std::move(made));
  return field.release();
}

uint32_t Recording::add_site(ir::Site site) {
  kernel->sites.push_back(std::move(site));
  return uint32_t(kernel->sites.size() - 1);
}

std::optional<uint32_t> Recording::function_with(const std::string& rule,
                                                 std::span<const ir::Type> arguments,
                                                 size_t results) const {
  for (uint32_t k = 0; k < kernel->callees.size(); k++) {
    const ir::Function& f = kernel->callees[k];
    if (f.derivative == rule && f.results.size() == results &&
        std::ranges::equal(f.body->args, arguments, {}, &ir::Value::type))
      return k;
  }
  return std::nullopt;
}

uint32_t Recording::add_function(ir::Function f, bool has_effect, FuncObject* from) {
  const uint32_t index = uint32_t(kernel->callees.size());
  f.name = (f.derivative.empty() ? "f" : f.derivative) + std::to_string(index);
  kernel->callees.push_back(std::move(f));
  callee_effects.push_back(has_effect);
  if (from) retain(from);
  functions.push_back(Ref<FuncObject>(from));
  return index;
}

uint32_t Recording::import(FuncObject* f, Loc use) {
  auto found = callees.find(f);
  if (found != callees.end()) return found->second;
  std::vector<uint32_t> nested, bindings, sites;
  auto copy = [&](const ir::Region* from) {
    ir::Builder copier(*kernel);
    ir::ValueMap map;
    ir::Region* body = ir::clone_region(copier, from, map);
    ir::walk(body, [&](ir::Inst* inst) {
      switch (ir::info(inst->op).names) {
        case ir::NameUse::axis:
        case ir::NameUse::component: inst->part.binding = bindings[inst->binding()]; break;
        case ir::NameUse::callee: inst->imm = nested[inst->imm]; break;
        default: break;
      }
      if (inst->site != ir::no_site) inst->site = sites[inst->site];
    });
    return body;
  };
  auto of_library = [&](const ir::Function& g) {
    std::vector<ir::Type> arguments;
    for (const ir::Value& arg : g.body->args) arguments.push_back(arg.type);
    if (auto known = function_with(g.derivative, arguments, g.results.size())) return *known;
    ir::Function own = g;
    own.body = copy(g.body);
    return add_function(std::move(own), false);
  };
  for (size_t k = 0; k < f->callees.size(); k++)
    nested.push_back(f->callees[k] ? import(f->callees[k].get(), use)
                                   : of_library(f->kernel->callees[k]));
  for (const auto& field : f->captured) bindings.push_back(binding(field.get(), use).value_or(0));
  for (const ir::Site& site : f->kernel->sites) sites.push_back(add_site(site));
  ir::Region* body = copy(f->kernel->body);

  if (f->reassociated.line && !reassociated.line) reassociated = f->reassociated;
  bool effect = false;
  ir::walk(body, [&](const ir::Inst* inst) { effect |= is_effect(inst); });
  ir::Function own;
  if (f->has_rule()) own.derivative = "own";
  if (f->pushforward) own.pushforward = import(f->pushforward.get(), use);
  if (f->pullback) own.pullback = import(f->pullback.get(), use);
  own.results = f->kernel->results;
  own.body = body;
  own.loc = f->loc;
  return callees[f] = add_function(std::move(own), effect, f);
}

}  // namespace quern::detail
