#include "ir/passes/walks/versions.h"

#include <vector>

namespace quern::ir {

namespace {

void yield_results(Builder& b, Inst* loop) {
  std::vector<Value*> results;
  for (Value& v : loop->results) results.push_back(&v);
  b.yield(results);
}

}  // namespace

void version(Kernel& kernel, Inst* loop, Value* condition, std::span<Value* const> known,
             bool answer) {
  Builder b(kernel);
  b.before(loop).at(loop->loc);
  std::vector<Type> types;
  for (const Value& v : loop->results) types.push_back(v.type);
  Inst* branch = b.if_(condition, types);
  for (size_t k = 0; k < types.size(); k++) loop->result(k)->replace_with(branch->result(k));

  Builder copied = b, kept = b;
  copied.at_end(branch->region(0));
  kept.at_end(branch->region(1));
  ValueMap map;
  Value* answered = copied.boolean(answer);
  for (Value* v : known) map[v] = answered;
  yield_results(copied, clone_inst(copied, loop, map));
  move(kept, loop);
  yield_results(kept, loop);
}

}  // namespace quern::ir
