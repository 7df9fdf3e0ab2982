#include "ir/passes/lower/lower_random.h"

#include "ir/passes/tasks/open_tasks.h"
#include "quern/ir/abi.h"
#include "quern/ir/builder.h"

namespace quern::ir {

namespace {

Value* word(Builder& b, uint32_t v) { return b.constant(Type::u32, v); }

/// Word 0 of Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).
Value* philox(Builder& b, Value* key0, Value* key1, std::span<Value* const> counter) {
  std::vector<Value*> state(counter.begin(), counter.end());
  state.push_back(key0);
  state.push_back(key1);
  Value* first = b.integer(Type::i32, 0);
  Value* count = b.integer(Type::i32, 10);
  Inst* rounds = b.loop(first, count, b.integer(Type::i32, 1), state);
  Builder in = b;
  Region* body = rounds->region(0);
  in.at_end(body);
  auto c = [&](size_t k) { return body->arg(1 + k); };
  auto product = [&](Value* v, uint32_t factor) {
    Value* wide = in.convert(v, Type::u64);
    return in.mul(wide, in.constant(Type::u64, factor));
  };
  auto low = [&](Value* v) { return in.convert(v, Type::u32); };
  auto high = [&](Value* v) {
    return in.convert(in.binary(Op::shr, v, in.constant(Type::u64, 32)), Type::u32);
  };
  auto mix = [&](Value* x, Value* y, Value* z) {
    return in.binary(Op::bit_xor, in.binary(Op::bit_xor, x, y), z);
  };
  Value* p0 = product(c(0), 0xD2511F53);
  Value* p1 = product(c(2), 0xCD9E8D57);
  in.yield({mix(high(p1), c(1), c(4)), low(p1), mix(high(p0), c(3), c(5)), low(p0),
            in.add(c(4), word(in, 0x9E3779B9)), in.add(c(5), word(in, 0xBB67AE85))});
  return rounds->result(0);
}

Value* high_word(Builder& b, Value* v) {
  return b.convert(b.binary(Op::shr, v, b.constant(Type::u64, 32)), Type::u32);
}

Value* launch_key(Builder& b) {
  Value* seed = b.convert(b.arg(abi::random_seed, Type::u32), Type::u64);
  Value* launch = b.convert(b.arg(abi::random_launch, Type::u32), Type::u64);
  return b.binary(Op::bit_or, seed, b.binary(Op::shl, launch, b.constant(Type::u64, 32)));
}

/// The number of calls so far, in a slot of the iteration; in serial code it goes on from task to
/// task in a cell.
Value* call_counter(Kernel& kernel, Task& task, uint32_t serial_cell) {
  Builder b(kernel);
  bool serial = task.kind == Task::serial;
  Region* body = serial ? task.body : parallel_of(task)->region(0);
  b.before(body->first).at(task.loc);
  Value* calls_made = b.slot(Type::u32);
  uint32_t frame = kernel.frame_binding();
  if (serial) {
    b.put(calls_made, b.load(frame, serial_cell, Type::u32, {}));
    b.before(body->last).store(frame, serial_cell, {}, b.get(calls_made));
  }
  return calls_made;
}

/// What takes the place of `inst`.
Value* lowered(Builder& b, const Inst* inst, const Task& task, Value* calls_made) {
  switch (inst->op) {
    case Op::launch_key: return launch_key(b);
    case Op::ordinal: return word(b, task.options.ordinal);
    case Op::iteration: return b.bitcast(b.builtin(Builtin::iteration), Type::u64);
    case Op::call_number: {
      Value* number = b.get(calls_made);
      b.put(calls_made, b.add(number, word(b, 1)));
      return number;
    }
    default: break;  // random
  }
  Value *launch = inst->operand(0), *iteration = inst->operand(2);
  Value* counter[4] = {b.convert(iteration, Type::u32), high_word(b, iteration), inst->operand(3),
                       inst->operand(1)};
  Value* seed = b.convert(launch, Type::u32);
  return philox(b, seed, high_word(b, launch), counter);
}

}  // namespace

void lower_random(Kernel& kernel) {
  uint32_t cell = 0;
  bool has_cell = false;
  for (Task& task : kernel.tasks) {
    std::vector<Inst*> all;
    bool counts = false;
    walk(task.body, [&](Inst* inst) {
      counts = counts || inst->is(Op::call_number);
      if (inst->is(Op::random) || inst->is(Op::launch_key) || inst->is(Op::ordinal) ||
          inst->is(Op::iteration) || inst->is(Op::call_number))
        all.push_back(inst);
    });
    if (counts && task.kind == Task::serial && !has_cell) {
      has_cell = true;
      cell = uint32_t(kernel.frame.size());
      kernel.frame.push_back(Type::u32);
    }
    Value* calls_made = counts ? call_counter(kernel, task, cell) : nullptr;
    for (Inst* inst : all) {
      Builder b(kernel);
      b.before(inst).at(inst->loc);
      inst->result()->replace_with(lowered(b, inst, task, calls_made));
      inst->erase();
    }
  }
}

}  // namespace quern::ir
