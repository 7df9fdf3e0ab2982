#include "ir/passes/checks/poll_loops.h"

#include "ir/analysis/facts.h"
#include "ir/passes/checks/error_record.h"

namespace quern::ir {

namespace {

/// Rounds between two questions of a loop of straight code.
constexpr int64_t piece = 1 << 22;
/// A piece by such steps is below 2^31.
constexpr int64_t longest_step = 256;
/// Loops of so many constant rounds may be unrolled: the loop around them is straight code then.
constexpr uint64_t few_rounds = 256;

/// Does it only name lines of memory, of which there are few?
bool is_of_hints(const Inst* loop) {
  bool names = false, alone = true;
  for (const Inst* inst : *loop->region(0)) {
    names |= is_hint(inst);
    alone = alone && (is_hint(inst) || has(inst->op, flag::pure | flag::ends));
  }
  return names && alone;
}

bool is_long(const Inst* inst) {
  if (inst->is(Op::while_)) return true;
  if (!inst->is(Op::loop) || is_of_hints(inst)) return false;
  const Inst *lo = constant_of(inst->operand(0)), *hi = constant_of(inst->operand(1));
  return !lo || !hi || truncate(hi->imm - lo->imm, inst->operand(0)->type) > few_rounds;
}

bool contains(Region* region, bool (*what)(const Inst*)) {
  bool found = false;
  walk(region, [&](const Inst* inst) { found |= what(inst); });
  return found;
}

/// Does it combine partial values of a reduction? There are few.
bool reads_buffer(const Inst* inst) {
  return inst->is(Op::read) && inst->imm >= abi::first_buffer_class;
}

bool is_outermost(const Inst* loop) {
  for (const Inst* at = loop->parent->parent; at; at = at->parent->parent)
    if (at->is(Op::loop) || at->is(Op::while_)) return false;
  return true;
}

class Poller {
 public:
  Poller(Kernel& kernel, uint32_t number)
      : kernel_(kernel), task_(kernel.tasks[number]), b_(kernel), record_(b_, number) {}

  void run() {
    std::vector<Inst*> around, alone;
    walk(task_.body, [&](Inst* inst) {
      if (!inst->is(Op::loop)) return;
      Region* body = inst->region(0);
      if (contains(body, is_long))
        around.push_back(inst);
      else if (is_long(inst) && may_be_alone(inst) && !contains(body, reads_buffer))
        alone.push_back(inst);
    });
    for (Inst* loop : around) each_round(loop);
    for (Inst* loop : alone) {
      if (has_short_step(loop))
        by_pieces(loop);
      else
        each_round(loop);
    }
  }

 private:
  bool may_be_alone(const Inst* loop) const {
    const int width = int(bit_width(loop->operand(0)->type));
    if ((loop->kind & parallel_walk) || width < 32) return false;
    return width == 64 || (task_.kind == Task::serial && is_outermost(loop));
  }

  /// A while_ in front of `loop` with its index, its carried values and, where `may_wrap`, whether
  /// the index has not wrapped. It ends where the loop does or the host asks for it; gets a body.
  Inst* asking(Inst* loop, bool may_wrap) {
    b_.before(loop).at(loop->loc);
    std::vector<Value*> init = {loop->operand(0)};
    for (size_t k = 3; k < loop->operand_count(); k++) init.push_back(loop->operand(k));
    if (may_wrap) init.push_back(b_.boolean(true));
    Inst* out = b_.while_(init);
    b_.at_end(out->region(0));
    Region* head = out->region(0);
    std::vector<Value*> tested = {b_.lt(head->arg(0), loop->operand(1))};
    if (may_wrap) tested[0] = b_.binary(Op::bit_and, tested[0], head->arg(init.size() - 1));
    Value* stops = record_.asks_to_stop(record_.state());
    tested[0] = b_.binary(Op::bit_and, tested[0], b_.unary(Op::bit_not, stops));
    Inst* branch = b_.if_(stops);
    b_.at_end(branch->region(1)).yield();
    b_.at_end(branch->region(0));
    record_.report_stop(stop_site(kernel_, loop->loc));
    b_.yield();
    b_.at_end(head);
    for (size_t k = 0; k < init.size(); k++) tested.push_back(head->arg(k));
    b_.yield(tested);
    for (size_t k = 0; k < loop->results.size(); k++)
      loop->result(k)->replace_with(out->result(k + 1));
    return out;
  }

  void each_round(Inst* loop) {
    const bool may_wrap = !is_constant(loop->operand(2), 1);  // by 1 the index stays below its end
    Inst* asks = asking(loop, may_wrap);
    Region* body = loop->region(0);
    loop->regions = {};
    b_.set_regions(asks, {asks->region(0), body});
    if (may_wrap) b_.add_arg(body, Type::b1);
    b_.before(body->last).at(loop->loc);
    std::vector<Value*> next = {b_.add(body->arg(0), loop->operand(2))};
    for (const Use& use : body->last->operands) next.push_back(use.value);
    if (may_wrap) next.push_back(b_.lt(body->arg(0), next[0]));
    b_.set_operands(body->last, next);
    loop->erase();
  }

  static bool has_short_step(const Inst* loop) {
    const Inst* step = constant_of(loop->operand(2));
    return step && step->imm >= 1 && step->imm <= longest_step;
  }

  void by_pieces(Inst* loop) {
    Inst* asks = asking(loop, false);
    Region* body = asks->region(1);
    b_.at_end(body).at(loop->loc);
    Value *from = body->arg(0), *hi = loop->operand(1);
    Type index = from->type, count = unsigned_of(index);
    Value* left = b_.bitcast(b_.sub(hi, from), count);
    const int64_t span = piece * int64_t(constant_of(loop->operand(2))->imm);
    Value* some = b_.binary(Op::min, left, b_.integer(count, span));
    Value* to = b_.add(from, b_.bitcast(some, index));
    move(b_, loop);
    loop->set_operand(0, from);
    loop->set_operand(1, to);
    for (size_t k = 3; k < loop->operand_count(); k++) loop->set_operand(k, body->arg(k - 2));
    std::vector<Value*> next = {to};
    for (size_t k = 0; k < loop->results.size(); k++) next.push_back(loop->result(k));
    b_.yield(next);
  }

  Kernel& kernel_;
  Task& task_;
  Builder b_;
  ErrorRecordCode record_;
};

}  // namespace

void poll_loops(Kernel& kernel, const TargetTraits& target) {
  if (!target.stoppable) return;
  for (uint32_t k = 0; k < kernel.tasks.size(); k++)
    if (kernel.tasks[k].kind != Task::combining) Poller(kernel, k).run();
}

void add_stop_sites(Kernel& kernel) {
  auto add = [&](Inst* inst) {
    if (inst->is(Op::while_) || inst->is(Op::loop)) stop_site(kernel, inst->loc);
  };
  for (const Task& task : kernel.tasks) {
    stop_site(kernel, task.loc);
    walk(task.body, add);
  }
  for (const Function& f : kernel.callees) walk(f.body, add);
}

}  // namespace quern::ir
