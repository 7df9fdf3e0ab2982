#include "ir/passes/walks/version_walks.h"

#include <algorithm>

#include "ir/passes/walks/strips.h"
#include "ir/passes/walks/versions.h"

namespace quern::ir {

namespace {

bool defined_in(const Region* region, const Value* v) {
  return encloses(region, v->inst ? v->inst->parent : v->region);
}

/// The values from before the loop that alone answer a question `this, or …` of its body.
std::vector<Value*> questions(const Inst* loop) {
  std::vector<Value*> found;
  walk(loop->region(0), [&](Inst* inst) {
    if (!inst->is(Op::bit_or) || inst->type() != Type::b1) return;
    for (size_t k = 0; k < 2; k++) {
      Value* v = inst->operand(k);
      if (!defined_in(loop->region(0), v) && std::ranges::find(found, v) == found.end())
        found.push_back(v);
    }
  });
  return found;
}

void version_by_checks(Kernel& kernel, Inst* loop) {
  const std::vector<Value*> asked = questions(loop);
  if (asked.empty()) return;
  Builder b(kernel);
  b.before(loop).at(loop->loc);
  Value* all = asked[0];
  for (size_t k = 1; k < asked.size(); k++) all = b.binary(Op::bit_and, all, asked[k]);
  version(kernel, loop, all, asked, true);
}

}  // namespace

void version_walks(Kernel& kernel) {
  if (!kernel.modes.checked) return;
  for (Inst* loop : walks_of(kernel)) version_by_checks(kernel, loop);
}

}  // namespace quern::ir
