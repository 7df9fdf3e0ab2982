#include "ir/passes/walks/version_walks.h"

#include <algorithm>

#include "ir/passes/walks/strips.h"

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

void version(Kernel& kernel, Inst* loop) {
  std::vector<Value*> asked = questions(loop);
  if (asked.empty()) return;
  Builder b(kernel);
  b.before(loop).at(loop->loc);
  Value* all = asked[0];
  for (size_t k = 1; k < asked.size(); k++) all = b.binary(Op::bit_and, all, asked[k]);
  std::vector<Type> types;
  for (const Value& v : loop->results) types.push_back(v.type);
  Inst* branch = b.if_(all, types);
  for (size_t k = 0; k < types.size(); k++) loop->result(k)->replace_with(branch->result(k));

  auto yield_results = [&](Builder& at, Inst* of) {
    std::vector<Value*> results;
    for (size_t k = 0; k < types.size(); k++) results.push_back(of->result(k));
    at.yield(results);
  };
  Builder fast = b, slow = b;
  fast.at_end(branch->region(0));
  slow.at_end(branch->region(1));
  ValueMap map;
  Value* yes = fast.boolean(true);
  for (Value* v : asked) map[v] = yes;
  yield_results(fast, clone_inst(fast, loop, map));
  move(slow, loop);
  yield_results(slow, loop);
}

}  // namespace

void version_walks(Kernel& kernel) {
  if (!kernel.modes.checked) return;
  for (Inst* loop : walks_of(kernel)) version(kernel, loop);
}

}  // namespace quern::ir
