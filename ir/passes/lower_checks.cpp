#include "ir/passes/lower_checks.h"

#include <cstddef>
#include <unordered_set>

#include "ir/passes/host_record.h"
#include "quern/ir/abi.h"

namespace quern::ir {

namespace {

using abi::ErrorRecord;

class Lowering {
 public:
  Lowering(Kernel& kernel, uint32_t number)
      : kernel_(kernel), task_(kernel.tasks[number]), number_(number), b_(kernel) {}

  void run(const std::unordered_set<uint32_t>& conditions) {
    walk(task_.body, [&](Inst* inst) {
      if (inst->is(Op::check)) {
        checks_ = true;
        check(inst);
      }
      if (inst->is(Op::while_) && kernel_.modes.checked) bound(inst);
    });
    start_test(conditions);
  }

 private:
  Value* record() { return b_.arg(abi::error_address, Type::address); }

  Value* state() {
    static_assert(offsetof(ErrorRecord, state) == 0);
    return b_.read(record(), Type::u32, abi::error_class);
  }
  Value* is_clear(Value* state) { return b_.binary(Op::eq, state, b_.integer(Type::u32, 0)); }

  /// abi::claim of this task.
  Value* claim() {
    auto word = [&](uint32_t v) { return b_.constant(Type::u32, v); };
    Value* tasks = word(256);
    Value* launch = b_.mul(b_.arg(abi::launch_number, Type::u32), tasks);
    Value* number = b_.add(launch, word(number_ + 1));
    return b_.binary(Op::bit_or, number, word(0x80000000u));
  }

  void check(Inst* inst) {
    b_.before(inst).at(inst->loc);
    Inst* branch = b_.if_(inst->operand(0));
    b_.at_end(branch->region(0)).yield();
    b_.at_end(branch->region(1));
    Value* at = record();
    Value* expected[2] = {b_.integer(Type::u32, 0), claim()};
    Value* old = b_.rmw(AtomicOp::cas, at, Type::u32, expected, abi::error_class)->result();
    Inst* first = b_.if_(b_.binary(Op::eq, old, expected[0]));
    b_.yield();
    b_.at_end(first->region(1)).yield();
    b_.at_end(first->region(0));
    RecordWriter write(b_, at, abi::error_class);
    write.u32(offsetof(ErrorRecord, site), inst->site);
    write.u32(offsetof(ErrorRecord, task), number_);
    write.u32(offsetof(ErrorRecord, count),
              write.values(offsetof(ErrorRecord, values), inst->operands.subspan(1)));
    write.i64(offsetof(ErrorRecord, iteration), b_.builtin(Builtin::iteration));
    write.u32(offsetof(ErrorRecord, launch), b_.arg(abi::launch_number, Type::u32));
    b_.yield();
    inst->erase();
  }

  void bound(Inst* loop) {
    Inst* test = loop->region(0)->terminator();
    b_.before(test).at(loop->loc);
    test->set_operand(0, b_.binary(Op::bit_and, test->operand(0), is_clear(state())));
  }

  void start_test(const std::unordered_set<uint32_t>& conditions) {
    Region* all = task_.body;
    task_.body = b_.make_region();
    b_.at_end(task_.body).at(task_.loc);
    Value* now = state();
    Value* runs = is_clear(now);
    if (task_.kind != Task::serial && checks_)
      runs = b_.binary(Op::bit_or, runs, b_.binary(Op::eq, now, claim()));
    Inst* branch = b_.if_(runs);
    b_.yield();
    b_.at_end(branch->region(0));
    splice(b_, all);
    b_.yield();
    b_.at_end(branch->region(1));
    if (task_.kind == Task::serial) clear_conditions(branch->region(0), conditions);
    b_.at_end(branch->region(1)).yield();
  }

  void clear_conditions(Region* body, const std::unordered_set<uint32_t>& conditions) {
    uint32_t frame = kernel_.frame_binding();
    walk(body, [&](Inst* inst) {
      if (inst->is(Op::store) && inst->binding() == frame && conditions.contains(inst->component()))
        b_.store(frame, inst->component(), {}, b_.boolean(false));
    });
  }

  Kernel& kernel_;
  Task& task_;
  uint32_t number_;
  bool checks_ = false;
  Builder b_;
};

void find_conditions(const std::vector<Step>& steps, std::unordered_set<uint32_t>& cells) {
  for (const Step& s : steps) {
    if (s.kind == Step::if_ || s.kind == Step::repeat) cells.insert(s.cell);
    find_conditions(s.body, cells);
    find_conditions(s.condition, cells);
  }
}

}  // namespace

void lower_checks(Kernel& kernel) {
  std::unordered_set<uint32_t> conditions;
  find_conditions(kernel.schedule, conditions);
  for (uint32_t k = 0; k < kernel.tasks.size(); k++) Lowering(kernel, k).run(conditions);
}

}  // namespace quern::ir
