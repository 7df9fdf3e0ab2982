// Copying and moving what is there: instructions, regions, kernels.
#include "quern/ir/builder.h"

namespace quern::ir {

namespace {
Value* mapped(const ValueMap& map, Value* v) {
  auto it = map.find(v);
  return it == map.end() ? v : it->second;
}
}  // namespace

Region* clone_region(Builder& b, const Region* from, ValueMap& map) {
  std::vector<Type> types;
  for (const Value& a : from->args) types.push_back(a.type);
  Region* to = b.make_region(std::span<const Type>(types));
  for (size_t k = 0; k < types.size(); k++) map[&from->args[k]] = &to->args[k];
  Builder inner = b;
  inner.at_end(to);
  for (const Inst* inst = from->first; inst; inst = inst->next) clone_inst(inner, inst, map);
  return to;
}

Inst* clone_inst(Builder& b, const Inst* inst, ValueMap& map) {
  std::vector<Value*> operands;
  for (const Use& use : inst->operands) operands.push_back(mapped(map, use.value));
  std::vector<Type> types;
  for (const Value& v : inst->results) types.push_back(v.type);
  Inst* copy = b.make(inst->op, types, operands, inst->imm);
  copy->kind = inst->kind;
  copy->elem = inst->elem;
  copy->part = inst->part;
  copy->options = inst->options;
  copy->site = inst->site;
  copy->loc = inst->loc;
  for (size_t k = 0; k < types.size(); k++) map[&inst->results[k]] = &copy->results[k];
  if (inst->regions.size() == 1) b.set_regions(copy, {clone_region(b, inst->region(0), map)});
  if (inst->regions.size() == 2) {
    Region* first = clone_region(b, inst->region(0), map);
    b.set_regions(copy, {first, clone_region(b, inst->region(1), map)});
  }
  return copy;
}

std::vector<Value*> inline_region(Builder& b, const Region* from, ValueMap& map) {
  for (const Inst* inst = from->first; inst != from->last; inst = inst->next)
    clone_inst(b, inst, map);
  std::vector<Value*> out;
  for (const Use& use : from->last->operands) out.push_back(mapped(map, use.value));
  return out;
}

void move(Builder& b, Inst* inst) {
  if (b.point() == inst) return;
  inst->unlink();
  b.region()->insert(inst, b.point());
}

void splice(Builder& b, Region* from) {
  if (from->last && has(from->last->op, flag::ends)) from->last->erase();
  while (from->first) move(b, from->first);
}

std::unique_ptr<Kernel> clone(const Kernel& kernel) {
  auto copy = std::make_unique<Kernel>();
  copy->name = kernel.name;
  copy->loc = kernel.loc;
  copy->level = kernel.level;
  copy->modes = kernel.modes;
  copy->results = kernel.results;
  copy->bindings = kernel.bindings;
  copy->tasks = kernel.tasks;
  copy->schedule = kernel.schedule;
  copy->frame = kernel.frame;
  copy->callees = kernel.callees;
  copy->sites = kernel.sites;
  Builder b(*copy);
  auto root = [&](Region*& region) {
    ValueMap map;
    if (region) region = clone_region(b, region, map);
  };
  copy->body = kernel.body;
  root(copy->body);
  for (Function& f : copy->callees) root(f.body);
  for (Task& t : copy->tasks) {
    root(t.domain);
    root(t.bound);
    root(t.body);
  }
  return copy;
}

}  // namespace quern::ir
