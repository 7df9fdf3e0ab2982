#include "ir/passes/walks/version_rounds.h"

#include <algorithm>
#include <vector>

#include "ir/passes/walks/versions.h"
#include "quern/ir/builder.h"

namespace quern::ir {

namespace {

constexpr size_t most_operations = 200;  ///< of a loop that is there two or three times

/// A loop in an iteration's code, of straight code but for branches.
bool is_simple(const Inst* loop) {
  if (!loop->is(Op::loop) || loop->kind & (parallel_walk | thread_walk)) return false;
  size_t operations = 0;
  bool simple = true;
  walk(loop->region(0), [&](const Inst* inst) {
    operations++;
    simple &= !inst->is(Op::loop) && !inst->is(Op::while_) && !inst->is(Op::call);
  });
  return simple && operations <= most_operations;
}

bool updates(const Inst* branch) {
  bool found = false;
  for (const Region* region : branch->regions)
    walk(const_cast<Region*>(region), [&](const Inst* inst) { found |= inst->is(Op::rmw); });
  return found;
}

/// What stands before the loop and says where updates of each round go.
std::vector<Value*> questions(const Inst* loop) {
  std::vector<Value*> found;
  const Region* body = loop->region(0);
  for (const Inst* inst : *body) {
    if (!inst->is(Op::if_) || !updates(inst)) continue;
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

void version_by_place(Kernel& kernel, Inst* loop) {
  const std::vector<Value*> asked = questions(loop);
  if (asked.empty()) return;
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
  std::vector<Inst*> loops;
  for (const Task& task : kernel.tasks)
    walk(task.body, [&](Inst* inst) {
      if (is_simple(inst)) loops.push_back(inst);
    });
  for (Inst* loop : loops) version_by_place(kernel, loop);
}

}  // namespace quern::ir
