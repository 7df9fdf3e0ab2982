#include "backends/interpreter/thread.h"

#include <algorithm>

#include "backends/interpreter/memory.h"

namespace quern::interpreter {

using namespace ir;

namespace {
bool below(Type t, Bits a, Bits b) {
  return is_signed(t) ? to_signed(a, t) < to_signed(b, t) : a < b;
}
}  // namespace

Thread::Thread(Launch& launch)
    : launch_(launch),
      code_(launch.code),
      kernel_(launch.kernel),
      checks_values_(launch.checks_values),
      values_(launch.code.values),
      slots_(launch.code.slot_elements),
      unset_(launch.code.slot_elements),
      touched_(launch.code.slot_elements) {}

void Thread::start(const Block& block, const Part& part) {
  stack_.clear();
  root_ = &block;
  returns_ = in_iteration_ = false;
  waits_at_ = nullptr;
  part_ = part;
  ordinal_ = ~0u;
  iteration_ = 0;
  push(Frame::root, block, nullptr);
}

void Thread::start(const Block& block, const Domain& domain, const Part& part, uint32_t ordinal) {
  start(block, part);
  stack_.clear();
  walk(block, nullptr, domain, part, ordinal);
}

bool Thread::run() {
  while (!stack_.empty()) {
    Frame& top = stack_.back();
    const Step *at = top.at, *end = top.block->steps.data() + top.block->steps.size();
    for (;;) {
      if (at == end) {
        end_region();
        break;
      }
      const Step& s = *at++;
      if (s.elementwise) {
        evaluate(s);
        continue;
      }
      top.at = at;
      if (step(s)) break;
    }
    if (waits_at_) return false;
  }
  return true;
}

std::vector<Bits> Thread::results() const {
  if (returns_) return returned_;
  std::vector<Bits> all;
  for (uint32_t number : root_->yields) all.push_back(value(number));
  return all;
}

void Thread::assign(uint32_t first, uint32_t count, const uint32_t* from) {
  if (count == 1) values_[first] = values_[from[0]];
  if (count <= 1) return;
  copied_.resize(count);
  for (uint32_t k = 0; k < count; k++) copied_[k] = values_[from[k]];
  std::copy(copied_.begin(), copied_.end(), values_.begin() + first);
}

void Thread::evaluate(const Step& s) {
  const Bits in[3] = {value(s.in[0]), value(s.in[1]), value(s.in[2])};
  std::span<const Bits> args(in, s.count);
  Bits out = 0;
  if (!ir::evaluate(s.op, s.operand, s.type, args, out))
    throw InternalError("the interpreter has no rule for '" + std::string(info(s.op).name) + "'");
  if (checks_values_) check_arithmetic(s, args, out);
  set(s, out);
}

bool Thread::step(const Step& s) {
  switch (s.op) {
    case Op::param: {
      Bits word = read_at<Bits>(launch_.args, code_.layout.places[s.inst->binding()].value());
      set(s, s.type == Type::b1 ? uint32_t(word) != 0 : truncate(word, s.type));
      return false;
    }
    case Op::extent: {
      const abi::Place& place = code_.layout.places[s.inst->binding()];
      set(s, truncate(read_at<Bits>(launch_.args, place.extent(s.inst->axis())), s.type));
      return false;
    }
    case Op::first: {
      const abi::Place& place = code_.layout.places[s.inst->binding()];
      set(s, truncate(read_at<Bits>(launch_.args, place.first(s.inst->axis())), s.type));
      return false;
    }
    case Op::origin: {
      const abi::Place& place = code_.layout.places[s.inst->binding()];
      set(s, truncate(read_at<Bits>(launch_.args, place.origin(s.inst->axis())), s.type));
      return false;
    }
    case Op::load: load(s); return false;
    case Op::store: store(s); return false;
    case Op::atomic: atomic(s); return false;
    case Op::slot: slot(s); return false;
    case Op::get: get(s); return false;
    case Op::put: put(s); return false;
    case Op::reduce: reduce(s); return false;
    case Op::check: check(s); return false;
    case Op::print: print(s); return false;
    case Op::random: set(s, random(s)); return false;
    case Op::launch_key: set(s, launch_key()); return false;
    case Op::ordinal: set(s, ordinal_); return false;
    case Op::iteration: set(s, iteration_); return false;
    case Op::call_number: set(s, in_iteration_ ? calls_++ : launch_.serial_calls++); return false;
    case Op::arg: set(s, arg(s)); return false;
    case Op::builtin: set(s, builtin(s)); return false;
    case Op::offset: set(s, operand(s, 0) + operand(s, 1)); return false;
    case Op::read: set(s, read_memory(s.elem, aligned_address(s))); return false;
    case Op::write: write_memory(s.elem, aligned_address(s), operand(s, 1)); return false;
    case Op::rmw: rmw(s); return false;
    case Op::if_: push(Frame::branch, *s.inner[operand(s, 0) ? 0 : 1], &s); return true;
    case Op::loop: loop(s); return true;
    case Op::while_: while_loop(s); return true;
    case Op::parallel: parallel(s); return true;
    case Op::block_reduce: waits_at_ = &s; return true;
    default: call(s); return true;  // `call`, or a function of the library
  }
}

// ---- regions

void Thread::push(Frame::Kind kind, const Block& block, const Step* owner) {
  stack_.push_back({kind, &block, nullptr, owner});
  begin(block);
}

void Thread::begin(const Block& block) {
  if (launch_.limited) {
    uint64_t cost = block.steps.size() + 1;
    if (cost > launch_.steps_left) throw OutOfSteps{};
    launch_.steps_left -= cost;
  }
  stack_.back().block = &block;
  stack_.back().at = block.steps.data();
}

void Thread::end_region() {
  const Block& block = *stack_.back().block;
  switch (block.end) {
    case Op::break_: return leave(block.exit);
    case Op::continue_: return next_round_of(block.exit);
    case Op::return_: return return_();
    default: return yield();
  }
}

void Thread::yield() {
  const Frame& top = stack_.back();
  switch (top.kind) {
    case Frame::loop:
    case Frame::rounds:
    case Frame::iterations: return next_round(true);
    case Frame::condition: return decide();
    case Frame::branch:
    case Frame::function:
      assign(top.owner->result, top.owner->results, top.block->yields.data());
      [[fallthrough]];
    case Frame::root: stack_.pop_back();
  }
}

void Thread::leave(uint64_t loops) {
  while (loops > 0) {
    const Frame::Kind left = stack_.back().kind;
    stack_.pop_back();
    if (left == Frame::loop || left == Frame::rounds) loops--;
  }
}

/// Of the innermost loop but `loops`; the parallel one counts as well.
void Thread::next_round_of(uint64_t loops) {
  for (;; stack_.pop_back()) {
    const Frame::Kind kind = stack_.back().kind;
    if (kind != Frame::loop && kind != Frame::rounds && kind != Frame::iterations) continue;
    if (loops-- == 0) return next_round(false);
  }
}

void Thread::return_() {
  returned_.clear();
  for (uint32_t number : stack_.back().block->yields) returned_.push_back(value(number));
  for (;;) {
    const Frame left = stack_.back();
    if (left.kind == Frame::iterations) return next_iteration();
    stack_.pop_back();
    if (left.kind == Frame::function)
      std::copy(returned_.begin(), returned_.end(), values_.begin() + left.owner->result);
    returns_ |= left.kind == Frame::root;
    if (left.kind == Frame::function || left.kind == Frame::root) return;
  }
}

// ---- loops and calls

void Thread::loop(const Step& s) {
  const Block& body = *s.inner[0];
  assign(body.first_arg + 1, body.args - 1, s.operands + 3);
  values_[body.first_arg] = operand(s, 0);
  stack_.push_back({Frame::loop, &body, nullptr, &s});
  if (s.kind & parallel_walk) first_of_walk_ = walk_rounds_ + 1;
  enter_round(below(s.index, operand(s, 0), operand(s, 1)));
}

void Thread::enter_round(bool more) {
  Frame& top = stack_.back();
  const Step& s = *top.owner;
  const Block& body = *top.block;
  if (more && !launch_.stops(s.inst->loc)) {
    top.round++;
    if (s.kind & parallel_walk) walk_rounds_++;
    return begin(body);
  }
  for (uint32_t k = 0; k + 1 < body.args; k++)
    values_[s.result + k] = value(body.first_arg + 1 + k);
  stack_.pop_back();
}

/// Behind a round: carried values are replaced where it `yielded`.
void Thread::next_round(bool yielded) {
  Frame& top = stack_.back();
  const Block& body = *top.block;
  if (top.kind == Frame::iterations) return next_iteration();
  const Step& s = *top.owner;
  if (top.kind == Frame::rounds) {
    const Block& condition = *s.inner[0];
    if (yielded) assign(condition.first_arg, s.results, body.yields.data());
    top.kind = Frame::condition;
    return begin(condition);
  }
  if (yielded) assign(body.first_arg + 1, body.args - 1, body.yields.data());
  const Type t = s.index;
  const Bits i = value(body.first_arg), next = truncate(i + operand(s, 2), t);
  values_[body.first_arg] = next;
  enter_round(below(t, i, next) && below(t, next, operand(s, 1)));
}

void Thread::while_loop(const Step& s) {
  assign(s.inner[0]->first_arg, s.results, s.operands);
  push(Frame::condition, *s.inner[0], &s);
}

/// Behind the condition of a while.
void Thread::decide() {
  Frame& top = stack_.back();
  const Step& s = *top.owner;
  const Block &condition = *s.inner[0], &body = *s.inner[1];
  bool more = value(condition.yields[0]) != 0 && !(launch_.checked && launch_.failed());
  more &= !launch_.stops(s.inst->loc);
  assign(more ? body.first_arg : s.result, s.results, condition.yields.data() + 1);
  if (!more) return stack_.pop_back();
  top.kind = Frame::rounds;
  top.round++;
  begin(body);
}

void Thread::call(const Step& s) {
  const Block& callee = *s.inner[0];
  assign(callee.first_arg, callee.args, s.operands);
  push(Frame::function, callee, &s);
}

// ---- iterations

Domain Thread::domain_of(std::span<const uint32_t> bounds, std::span<const Type> types) const {
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

Domain Thread::indices_of(uint32_t field, std::span<const Value> args) const {
  const abi::Place& place = code_.layout.places[field];
  Domain d;
  for (const Value& arg : args) {
    d.types.push_back(arg.type);
    d.first.push_back(read_at<int64_t>(launch_.args, place.first(arg.index)));
    d.extent.push_back(read_at<uint64_t>(launch_.args, place.extent(arg.index)));
    d.total *= d.extent.back();
  }
  return d;
}

void Thread::parallel(const Step& s) {
  std::vector<Type> types;
  for (const Use& use : s.inst->operands) types.push_back(use.value->type);
  const uint32_t field = s.inst->options.over;
  walk_.own = field != no_binding ? indices_of(field, s.inst->region(0)->args)
                                  : domain_of({s.operands, s.count}, types);
  const uint32_t ordinal = s.inst->options.ordinal;
  if (kernel_.level >= Level::split)  // of an opened task
    return walk(*s.inner[0], &s, walk_.own, part_, ordinal);
  if (launch_.failed()) throw Stopped{};
  launch_.races.begin();
  launch_.task = ordinal;
  walk(*s.inner[0], &s, walk_.own, {}, ordinal);
}

void Thread::walk(const Block& block, const Step* owner, const Domain& domain, const Part& part,
                  uint32_t ordinal) {
  ordinal_ = ordinal;
  in_iteration_ = true;
  walk_.domain = &domain;
  walk_.order = Order(0, 0);
  walk_.end = part.end;
  walk_.step = 1;
  if (part.walk == Task::unlowered) {
    walk_.order = Order(domain.total, launch_.options.seed);
    walk_.next = 0;
    walk_.end = domain.total;
  } else if (part.walk == Task::chunked) {
    walk_.next = part.begin;
  } else {
    walk_.next = part.thread;
    walk_.step = part.threads;
  }
  stack_.push_back({Frame::iterations, &block, nullptr, owner});
  next_iteration();
}

void Thread::next_iteration() {
  if (walk_.next >= walk_.end) return end_walk();
  if (part_.walk == Task::unlowered && kernel_.level == Level::split &&
      launch_.stops(kernel_.tasks[launch_.task].loc))
    return end_walk();
  Frame& top = stack_.back();
  const Domain& d = *walk_.domain;
  iteration_ = walk_.order(walk_.next);
  walk_.next += walk_.step;
  calls_ = 0;
  uint64_t rest = iteration_;
  for (size_t k = d.first.size(); k-- > 0;) {
    uint64_t at = rest % d.extent[k];
    rest /= d.extent[k];
    values_[top.block->first_arg + k] = truncate(uint64_t(d.first[k]) + at, d.types[k]);
  }
  top.round++;
  begin(*top.block);
}

void Thread::end_walk() {
  stack_.pop_back();
  in_iteration_ = false;
  ordinal_ = ~0u;
  iteration_ = 0;
  if (kernel_.level >= Level::split) return;
  for (Launch::Reducing& r : launch_.reducing)
    slots_[r.key] = r.contributions.combined(slots_[r.key], walk_.domain->total);
  launch_.reducing.clear();
  if (launch_.failed()) throw Stopped{};
}

void Thread::reduce(const Step& s) {
  bool in_task = s.count == 1;
  uint64_t key = in_task ? s.imm : operand(s, 0);
  auto found = std::find_if(launch_.reducing.begin(), launch_.reducing.end(),
                            [&](const Launch::Reducing& r) { return r.key == key; });
  if (found == launch_.reducing.end()) {
    launch_.reducing.push_back({key, Contributions(s.inst->atomic(), s.operand)});
    found = launch_.reducing.end() - 1;
  }
  found->contributions.add(iteration_, operand(s, s.count - 1));
}

}  // namespace quern::interpreter
