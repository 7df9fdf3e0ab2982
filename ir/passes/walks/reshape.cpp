#include "ir/passes/walks/reshape.h"

namespace quern::ir {

namespace {

std::span<Value> extended(Arena& arena, std::span<Value> old, std::span<const Type> types) {
  std::span<Value> values = arena.span<Value>(old.size() + types.size());
  for (size_t k = 0; k < values.size(); k++) {
    values[k].index = uint32_t(k);
    values[k].type = k < old.size() ? old[k].type : types[k - old.size()];
    if (k < old.size()) old[k].replace_with(&values[k]);
  }
  return values;
}

std::span<Value> kept(Arena& arena, std::span<Value> old, const std::vector<bool>& keep) {
  size_t count = 0;
  for (size_t k = 0; k < old.size(); k++) count += keep[k];
  std::span<Value> values = arena.span<Value>(count);
  size_t at = 0;
  for (size_t k = 0; k < old.size(); k++) {
    if (!keep[k]) {
      if (old[k].used()) throw InternalError("a value that is still used was dropped");
      continue;
    }
    values[at].index = uint32_t(at);
    values[at].type = old[k].type;
    old[k].replace_with(&values[at++]);
  }
  return values;
}

void own(Inst* inst) {
  for (Value& v : inst->results) v.inst = inst;
}
void own(Region* region) {
  for (Value& v : region->args) v.region = region;
}

}  // namespace

void add_operands(Builder& b, Inst* inst, std::span<Value* const> values) {
  std::vector<Value*> all;
  for (const Use& use : inst->operands) all.push_back(use.value);
  all.insert(all.end(), values.begin(), values.end());
  b.set_operands(inst, all);
}

void add_results(Arena& arena, Inst* inst, std::span<const Type> types) {
  inst->results = extended(arena, inst->results, types);
  own(inst);
}

void add_args(Arena& arena, Region* region, std::span<const Type> types) {
  region->args = extended(arena, region->args, types);
  own(region);
}

void keep_operands(Builder& b, Inst* inst, const std::vector<bool>& keep) {
  std::vector<Value*> values;
  for (size_t k = 0; k < inst->operand_count(); k++)
    if (keep[k]) values.push_back(inst->operand(k));
  b.set_operands(inst, values);
}

void keep_results(Arena& arena, Inst* inst, const std::vector<bool>& keep) {
  inst->results = kept(arena, inst->results, keep);
  own(inst);
}

void keep_args(Arena& arena, Region* region, const std::vector<bool>& keep) {
  region->args = kept(arena, region->args, keep);
  own(region);
}

}  // namespace quern::ir
