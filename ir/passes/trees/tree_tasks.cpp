#include "ir/passes/trees/tree_tasks.h"

#include "quern/ir/trees.h"

namespace quern::ir {

Step add_task(Kernel& kernel, Task task) {
  Step step;
  step.task = uint32_t(kernel.tasks.size());
  kernel.tasks.push_back(std::move(task));
  return step;
}

Region* TreeTasks::begin(uint32_t number) {
  Region* body = b_.make_region();
  b_.at_end(body).at(kernel_.tasks[number].loc);
  return body;
}

Step TreeTasks::add_serial(Region* body, uint32_t number) {
  Task task;
  task.walk = kernel_.tasks[number].walk;
  task.loc = kernel_.tasks[number].loc;
  task.body = body;
  return add_task(kernel_, std::move(task));
}

Step TreeTasks::count_cells(uint32_t field, uint32_t cell, uint32_t number) {
  const size_t last = kernel_.bindings[field].layout.pools.size() - 1;
  Region* body = begin(number);
  Value* at = b_.integer(Type::i64, int64_t(last * tree::words_of_pool + tree::count));
  Value* count = b_.load(parts_.state(field), 0, Type::u32, {&at, 1});
  b_.store(kernel_.frame_binding(), cell, {}, b_.convert(count, Type::i32));
  b_.yield();
  return add_serial(body, number);
}

Step TreeTasks::allow_taking(uint32_t field, uint32_t number) {
  Region* body = begin(number);
  const uint32_t state = parts_.state(field);
  const std::vector<Placement::Pool> pools = kernel_.bindings[field].layout.pools;
  for (size_t p = 1; p < pools.size(); p++) {
    if (pools[p].direct) continue;
    const auto at = [&](uint32_t word) {
      return b_.integer(Type::i64, int64_t(p * tree::words_of_pool + word));
    };
    const auto load = [&](uint32_t word) {
      Value* place = at(word);
      return b_.load(state, 0, Type::u32, {&place, 1});
    };
    const auto store = [&](uint32_t word, Value* v) {
      Value* place = at(word);
      b_.store(state, 0, {&place, 1}, v);
    };
    Value *taken = load(tree::taken), *limit = load(tree::limit);
    Value* too_many = b_.bitcast(b_.sub(taken, limit), Type::i32);
    Value* some = b_.binary(Op::gt, too_many, b_.integer(Type::i32, 0));
    store(tree::taken, b_.select(some, limit, taken));
    store(tree::limit, load(tree::given));
  }
  b_.yield();
  return add_serial(body, number);
}

}  // namespace quern::ir
