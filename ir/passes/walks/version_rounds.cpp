#include "ir/passes/walks/version_rounds.h"

#include <algorithm>
#include <vector>

#include "ir/passes/walks/versions.h"
#include "quern/ir/abi.h"
#include "quern/ir/builder.h"

namespace quern::ir {

namespace {

/// Of a loop that is there two or three times, and of all such loops of a task.
constexpr size_t most_operations = 200, most_of_task = 4000;

size_t operations_of(const Region* body) {
  size_t operations = 0;
  walk(const_cast<Region*>(body), [&](const Inst*) { operations++; });
  return operations;
}

/// A loop in an iteration's code, of straight code but for branches.
bool is_simple(const Inst* loop) {
  if (!loop->is(Op::loop) || loop->kind & (parallel_walk | thread_walk)) return false;
  bool simple = true;
  walk(loop->region(0), [&](const Inst* inst) {
    simple &= !inst->is(Op::loop) && !inst->is(Op::while_) && !inst->is(Op::call);
  });
  return simple && operations_of(loop->region(0)) <= most_operations;
}

/// Does the branch ask where an update goes: to a chunk's copy of a field?
bool updates(const Kernel& kernel, const Inst* branch) {
  bool found = false;
  walk(branch->region(0), [&](const Inst* inst) {
    if (!inst->is(Op::rmw) || inst->imm < abi::first_buffer_class) return;
    const Binding& to = kernel.bindings[inst->imm - abi::first_buffer_class];
    found |= to.kind == Binding::buffer && to.size.rule == BufferSize::copies;
  });
  return found;
}

/// What stands before the loop and says where updates of each round go.
std::vector<Value*> questions(const Kernel& kernel, const Inst* loop) {
  std::vector<Value*> found;
  const Region* body = loop->region(0);
  for (const Inst* inst : *body) {
    if (!inst->is(Op::if_) || !updates(kernel, inst)) continue;
    Value* asked = inst->operand(0);
    if (encloses(body, asked->inst ? asked->inst->parent : asked->region)) continue;
    if (std::ranges::find(found, asked) == found.end()) found.push_back(asked);
  }
  return found;
}

void replace_in(Region* region, Value* from, Value* to) {
  walk(region, [&](Inst* inst) {
    for (Use& use : inst->operands)
      if (use.value == from) use.set(to);
  });
}

void version_by_place(Kernel& kernel, Inst* loop, std::span<Value* const> asked) {
  Builder b(kernel);
  b.before(loop).at(loop->loc);
  Value *all = asked[0], *any = asked[0];
  for (size_t k = 1; k < asked.size(); k++) {
    all = b.binary(Op::bit_and, all, asked[k]);
    any = b.binary(Op::bit_or, any, asked[k]);
  }
  version(kernel, loop, all, asked, true);
  b.before(loop);
  if (asked.size() == 1) {
    replace_in(loop->region(0), all, b.boolean(false));
    return;
  }
  Value* none = b.binary(Op::bit_xor, any, b.boolean(true));
  version(kernel, loop, none, asked, false);
}

}  // namespace

void version_rounds(Kernel& kernel, const TargetTraits& target) {
  if (target.walk != Task::chunked) return;
  for (const Task& task : kernel.tasks) {
    std::vector<Inst*> loops;
    walk(task.body, [&](Inst* inst) {
      if (is_simple(inst)) loops.push_back(inst);
    });
    size_t more = 0;
    for (Inst* loop : loops) {
      const std::vector<Value*> asked = questions(kernel, loop);
      if (asked.empty()) continue;
      more += operations_of(loop->region(0));
      if (more > most_of_task) break;
      version_by_place(kernel, loop, asked);
    }
  }
}

}  // namespace quern::ir
