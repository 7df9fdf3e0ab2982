#include "ir/passes/checks/guarded_access.h"

#include "ir/analysis/facts.h"

namespace quern::ir {

Value* guard_access(Builder& b, Inst* inst, Value* ok, std::vector<Value*> values) {
  b.before(inst).at(inst->loc);
  values.insert(values.begin(), ok);
  Inst* check = b.make(Op::check, {}, values);
  check->site = inst->site;
  inst->site = no_site;
  std::vector<Type> types;
  for (const Value& v : inst->results) types.push_back(v.type);
  Inst* branch = b.if_(ok, types);
  std::vector<Value*> found, nothing;
  for (size_t k = 0; k < types.size(); k++) {
    inst->result(k)->replace_with(branch->result(k));
    found.push_back(inst->result(k));
  }
  b.at_end(branch->region(0));
  move(b, inst);
  b.yield(found);
  b.at_end(branch->region(1));
  for (const Type type : types) nothing.push_back(b.constant(type, 0));
  b.yield(nothing);
  return types.empty() ? nullptr : branch->result();
}

void guard_indices(Builder& b, const Kernel& kernel, Inst* inst, std::span<const uint32_t> axes,
                   Value* known) {
  b.before(inst).at(inst->loc);
  const bool zero_based = kernel.bindings[inst->binding()].zero_based;
  Value *ok = nullptr, *at = nullptr, *axis = nullptr, *extent = nullptr, *first = nullptr;
  for (size_t n = axes.size(); n-- > 0;) {
    const uint32_t k = axes[n];
    Value* size = b.extent(inst->binding(), k, Type::i64);
    Value* wide = b.convert(inst->operand(k), Type::i64);
    Value* begin = zero_based ? nullptr : b.first(inst->binding(), k, Type::i64);
    Value* inside = in_range(b, begin ? b.sub(wide, begin) : wide, size);
    Value* number = b.integer(Type::i32, k);
    at = ok ? b.select(inside, at, wide) : wide;
    axis = ok ? b.select(inside, axis, number) : number;
    extent = ok ? b.select(inside, extent, size) : size;
    if (begin) first = ok ? b.select(inside, first, begin) : begin;
    ok = ok ? b.binary(Op::bit_and, ok, inside) : inside;
  }
  // The form `known or …` lets the back end keep a copy of the loop without checks.
  if (known) ok = b.binary(Op::bit_or, known, ok);
  std::vector<Value*> told = {at, axis, extent};
  if (first) told.push_back(first);
  guard_access(b, inst, ok, told);
}

Value* guard_array(Builder& b, Inst* inst, Value* index, uint64_t count) {
  const Inst* c = constant_of(index);
  if (c && uint64_t(to_signed(c->imm, index->type)) < count)
    return inst->results.empty() ? nullptr : inst->result();
  b.before(inst).at(inst->loc);
  Value* n = b.integer(Type::i64, int64_t(count));
  Value* ok = in_range(b, index, n);
  Value* wide = b.convert(index, Type::i64);
  return guard_access(b, inst, ok, {wide, n});
}

Value* in_range(Builder& b, Value* index, Value* extent) {
  Value* at = b.convert(index, Type::u64);
  return b.lt(at, b.convert(extent, Type::u64));
}

}  // namespace quern::ir
