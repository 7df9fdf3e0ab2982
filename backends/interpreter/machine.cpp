#include "backends/interpreter/machine.h"

#include <algorithm>

#include "backends/interpreter/memory.h"
#include "backends/interpreter/random.h"

namespace quern::interpreter {

using namespace ir;

namespace {
bool below(Type t, Bits a, Bits b) {
  return is_signed(t) ? to_signed(a, t) < to_signed(b, t) : a < b;
}

/// What a loop does with the flow of its body: true to go on with the next round; else `flow` is
/// what the loop itself ends with.
bool goes_on(Flow& flow) {
  if (flow.kind == Flow::yield) return true;
  if (flow.kind == Flow::next && flow.loops == 0) {
    flow = {};
    return true;
  }
  if (flow.kind == Flow::next) flow.loops--;
  if (flow.kind == Flow::leave && --flow.loops == 0) flow = {};
  return false;
}
}  // namespace

Machine::Machine(const Code& code, const Options& options, Report* report, std::byte* args)
    : code_(code),
      kernel_(code.kernel),
      options_(options),
      report_(report),
      args_(args),
      values_(code.values),
      slots_(code.slot_elements),
      steps_left_(options.max_steps),
      limited_(options.max_steps != 0),
      checks_values_(options.check_overflow || options.check_nan || code.kernel.modes.checked),
      checked_(code.kernel.modes.checked && code.kernel.level != Level::lowered),
      polls_(code.kernel.level == Level::split) {}

void Machine::assign(uint32_t first, uint32_t count, const uint32_t* from) {
  copied_.resize(count);
  for (uint32_t k = 0; k < count; k++) copied_[k] = values_[from[k]];
  std::copy(copied_.begin(), copied_.end(), values_.begin() + first);
}

Flow Machine::run(const Block& block) {
  if (limited_) {
    uint64_t cost = block.steps.size() + 1;
    if (cost > steps_left_) throw OutOfSteps{};
    steps_left_ -= cost;
  }
  for (const Step& s : block.steps) {
    if (s.elementwise) {
      evaluate(s);
    } else {
      Flow flow = step(s);
      if (flow.kind != Flow::yield) return flow;
    }
  }
  if (block.end == Op::break_) return {Flow::leave, block.exit};
  if (block.end == Op::continue_) return {Flow::next, block.exit};
  if (block.end != Op::return_) return {};
  returned_.clear();
  for (uint32_t number : block.yields) returned_.push_back(value(number));
  return {Flow::done};
}

void Machine::evaluate(const Step& s) {
  const Bits in[3] = {value(s.in[0]), value(s.in[1]), value(s.in[2])};
  std::span<const Bits> args(in, s.count);
  Bits out = 0;
  if (!ir::evaluate(s.op, s.operand, s.type, args, out))
    throw InternalError("the interpreter has no rule for '" + std::string(info(s.op).name) + "'");
  if (checks_values_) check_arithmetic(s, args, out);
  set(s, out);
}

Flow Machine::step(const Step& s) {
  switch (s.op) {
    case Op::param: {
      Bits word = read_at<Bits>(args_, code_.layout.places[s.inst->binding()].value());
      set(s, s.type == Type::b1 ? uint32_t(word) != 0 : truncate(word, s.type));
      break;
    }
    case Op::extent: {
      const abi::Place& place = code_.layout.places[s.inst->binding()];
      set(s, truncate(read_at<Bits>(args_, place.extent(s.inst->axis())), s.type));
      break;
    }
    case Op::first: {
      const abi::Place& place = code_.layout.places[s.inst->binding()];
      set(s, truncate(read_at<Bits>(args_, place.first(s.inst->axis())), s.type));
      break;
    }
    case Op::load: load(s); break;
    case Op::store: store(s); break;
    case Op::atomic: atomic(s); break;
    case Op::slot: std::fill_n(slots_.begin() + int64_t(value(s.result)), s.imm, 0); break;
    case Op::get: {
      const Bits* at = element(s, s.count > 1);
      set(s, at ? *at : 0);
      break;
    }
    case Op::put:
      if (Bits* at = element(s, s.count > 2)) *at = operand(s, s.count - 1);
      break;
    case Op::reduce: reduce(s); break;
    case Op::parallel: parallel(s); break;
    case Op::loop: return loop(s);
    case Op::while_: return while_loop(s);
    case Op::if_: return branch(s);
    case Op::call: call(s); break;
    case Op::check: check(s); break;
    case Op::print: print(s); break;
    case Op::random: set(s, random()); break;
    case Op::arg: set(s, arg(s)); break;
    case Op::builtin: set(s, builtin(s)); break;
    case Op::offset: set(s, operand(s, 0) + operand(s, 1)); break;
    case Op::read: set(s, read_memory(s.elem, operand(s, 0))); break;
    case Op::write: write_memory(s.elem, operand(s, 0), operand(s, 1)); break;
    case Op::rmw: rmw(s); break;
    case Op::block_reduce: set(s, operand(s, 0)); break;  // its blocks are of one thread
    default: call(s); break;                              // a function of the library
  }
  return {};
}

// ---- structure

Flow Machine::branch(const Step& s) {
  const Block& side = *s.inner[operand(s, 0) ? 0 : 1];
  Flow flow = run(side);
  if (flow.kind == Flow::yield) assign(s.result, s.results, side.yields.data());
  return flow;
}

Flow Machine::loop(const Step& s) {
  const Block& body = *s.inner[0];
  Type t = s.inst->operand(0)->type;
  Bits hi = operand(s, 1), step = operand(s, 2);
  uint32_t carried = body.args - 1;
  assign(body.first_arg + 1, carried, s.operands + 3);
  for (Bits i = operand(s, 0); below(t, i, hi);) {
    if (stops(s.inst->loc)) break;
    values_[body.first_arg] = i;
    Flow flow = run(body);
    bool ended = flow.kind == Flow::yield;
    if (!goes_on(flow)) return flow;
    if (ended) assign(body.first_arg + 1, carried, body.yields.data());
    Bits next = truncate(i + step, t);
    if (!below(t, i, next)) break;
    i = next;
  }
  for (uint32_t k = 0; k < carried; k++) values_[s.result + k] = value(body.first_arg + 1 + k);
  return {};
}

Flow Machine::while_loop(const Step& s) {
  const Block &condition = *s.inner[0], &body = *s.inner[1];
  uint32_t carried = s.results;
  assign(condition.first_arg, carried, s.operands);
  for (;;) {
    run(condition);
    bool more = value(condition.yields[0]) != 0 && !(checked_ && failed());
    more &= !stops(s.inst->loc);
    assign(more ? body.first_arg : s.result, carried, condition.yields.data() + 1);
    if (!more) return {};
    Flow flow = run(body);
    bool ended = flow.kind == Flow::yield;
    if (!goes_on(flow)) return flow;
    if (ended) assign(condition.first_arg, carried, body.yields.data());
  }
}

void Machine::call(const Step& s) {
  const Block& callee = *s.inner[0];
  assign(callee.first_arg, callee.args, s.operands);
  Flow flow = run(callee);
  if (flow.kind == Flow::yield) {
    assign(s.result, s.results, callee.yields.data());
    return;
  }
  std::copy(returned_.begin(), returned_.end(), values_.begin() + s.result);
}

Domain Machine::domain_of(std::span<const uint32_t> bounds, std::span<const Type> types) const {
  Domain d;
  for (size_t k = 0; k + 1 < bounds.size(); k += 2) {
    int64_t lo = to_signed(value(bounds[k]), types[k]);
    int64_t hi = to_signed(value(bounds[k + 1]), types[k]);
    d.types.push_back(types[k]);
    d.first.push_back(lo);
    d.extent.push_back(hi > lo ? uint64_t(hi) - uint64_t(lo) : 0);
    d.total *= d.extent.back();
  }
  return d;
}

Domain Machine::domain(const Block& block) {
  run(block);
  return domain_of(block.yields, block.yield_types);
}

void Machine::parallel(const Step& s) {
  std::vector<Type> types;
  for (const Use& use : s.inst->operands) types.push_back(use.value->type);
  Domain d = domain_of({s.operands, s.count}, types);
  const uint32_t ordinal = s.inst->options.ordinal;
  if (kernel_.level >= Level::split) {  // of an opened task
    iterate(*s.inner[0], d, part_, ordinal);
    return;
  }
  if (failed()) throw Stopped{};
  races_.begin();
  task_ = ordinal;
  iterate(*s.inner[0], d, {}, ordinal);
  for (Reducing& r : reducing_) slots_[r.key] = r.contributions.combined(slots_[r.key], d.total);
  reducing_.clear();
  if (failed()) throw Stopped{};
}

void Machine::iterate(const Block& block, const Domain& d, const Part& part, uint32_t ordinal) {
  ordinal_ = ordinal;
  in_iteration_ = true;
  if (part.walk == Task::unlowered) {
    Order order(d.total, options_.seed);
    const Loc loc = kernel_.level == Level::split ? kernel_.tasks[task_].loc : Loc{};
    for (uint64_t k = 0; k < d.total && !stops(loc); k++) one(block, d, order(k));
  } else if (part.walk == Task::chunked) {
    for (uint64_t k = part.begin; k < part.end; k++) one(block, d, k);
  } else {
    for (uint64_t k = part.thread; k < part.end; k += part.threads) one(block, d, k);
  }
  in_iteration_ = false;
  ordinal_ = ~0u;
  iteration_ = 0;
}

void Machine::one(const Block& block, const Domain& d, uint64_t linear) {
  uint64_t rest = linear;
  for (size_t k = d.first.size(); k-- > 0;) {
    uint64_t at = rest % d.extent[k];
    rest /= d.extent[k];
    values_[block.first_arg + k] = truncate(uint64_t(d.first[k]) + at, d.types[k]);
  }
  iteration_ = linear;
  calls_ = 0;
  run(block);
}

void Machine::reduce(const Step& s) {
  bool in_task = s.count == 1;
  uint64_t key = in_task ? s.imm : operand(s, 0);
  auto found = std::find_if(reducing_.begin(), reducing_.end(),
                            [&](const Reducing& r) { return r.key == key; });
  if (found == reducing_.end()) {
    reducing_.push_back({key, Contributions(s.inst->atomic(), s.operand)});
    found = reducing_.end() - 1;
  }
  found->contributions.add(iteration_, operand(s, s.count - 1));
}

// ---- whole bodies and tasks

std::vector<Bits> Machine::body() {
  ordinal_ = ~0u;
  Flow flow = run(*code_.body);
  if (flow.kind == Flow::done) return returned_;
  std::vector<Bits> results;
  for (uint32_t number : code_.body->yields) results.push_back(value(number));
  results.resize(kernel_.results.size());
  return results;
}

void Machine::task(uint32_t number, const Block& block, const Domain& d, const Part& part) {
  task_ = number;
  part_ = part;
  const Task& task = kernel_.tasks[number];
  if (!code_.tasks[number].tests_record && (stops(task.loc) || !may_start(task))) {
    for (uint32_t cell : code_.tasks[number].conditions)
      write_memory(Type::b1, cell_address(cell), 0);
    return;
  }
  if (task.kind != Task::serial && task.walk == Task::unlowered)
    iterate(block, d, part, task.options.ordinal);
  else
    run(block);
}

void Machine::finish_reductions(const Task& task, uint64_t iterations) {
  if (stops(task.loc)) reducing_.clear();  // what was to be combined is not there
  for (Reducing& r : reducing_) {
    const Reduction& to = task.reductions.at(r.key);
    Bits address = cell_address(to.cell);
    Bits old = read_memory(to.type, address);
    write_memory(to.type, address, r.contributions.combined(old, iterations));
  }
  reducing_.clear();
}

}  // namespace quern::interpreter
