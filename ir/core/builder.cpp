#include "quern/ir/builder.h"

namespace quern::ir {

Builder& Builder::after(Inst* inst) {
  region_ = inst->parent;
  before_ = inst->next;
  return *this;
}

Region* Builder::make_region(std::initializer_list<Type> args) {
  return make_region(std::span<const Type>(args.begin(), args.size()));
}

Region* Builder::make_region(std::span<const Type> args) {
  Region* r = arena_.make<Region>();
  r->args = arena_.span<Value>(args.size());
  for (size_t k = 0; k < args.size(); k++) {
    r->args[k].type = args[k];
    r->args[k].index = uint32_t(k);
    r->args[k].region = r;
  }
  return r;
}

namespace {
/// Values are addressed by pointer: growing a list moves every value's uses to its new place.
std::span<Value> grown(Arena& arena, std::span<Value> old, Type type) {
  std::span<Value> values = arena.span<Value>(old.size() + 1);
  for (size_t k = 0; k < old.size(); k++) {
    values[k] = old[k];
    values[k].uses = nullptr;
    old[k].replace_with(&values[k]);
  }
  values.back().type = type;
  values.back().index = uint32_t(old.size());
  return values;
}
}  // namespace

Value* Builder::add_arg(Region* region, Type type) {
  region->args = grown(arena_, region->args, type);
  region->args.back().region = region;
  return &region->args.back();
}

Value* Builder::add_result(Inst* inst, Type type) {
  inst->results = grown(arena_, inst->results, type);
  inst->results.back().inst = inst;
  return &inst->results.back();
}

Inst* Builder::make(Op op, std::span<const Type> results, std::span<Value* const> operands,
                    uint64_t imm) {
  Inst* inst = arena_.make<Inst>();
  inst->op = op;
  inst->imm = imm;
  inst->loc = loc_;
  inst->results = arena_.span<Value>(results.size());
  for (size_t k = 0; k < results.size(); k++) {
    inst->results[k].type = results[k];
    inst->results[k].index = uint32_t(k);
    inst->results[k].inst = inst;
  }
  set_operands(inst, operands);
  if (region_) region_->insert(inst, before_);
  return inst;
}

Inst* Builder::make(Op op, std::initializer_list<Type> results,
                    std::initializer_list<Value*> operands, uint64_t imm) {
  return make(op, std::span<const Type>(results.begin(), results.size()),
              std::span<Value* const>(operands.begin(), operands.size()), imm);
}

void Builder::set_regions(Inst* inst, std::initializer_list<Region*> regions) {
  inst->regions = arena_.span<Region*>(regions.size());
  size_t k = 0;
  for (Region* r : regions) {
    inst->regions[k++] = r;
    if (r) r->parent = inst;
  }
}

void Builder::set_operands(Inst* inst, std::span<Value* const> operands) {
  std::vector<Value*> values(operands.begin(), operands.end());
  for (Use& use : inst->operands) use.set(nullptr);
  inst->operands = arena_.span<Use>(values.size());
  for (size_t k = 0; k < values.size(); k++) inst->set_operand(k, values[k]);
}

Value* Builder::add_operand(Inst* inst, Value* v) {
  std::vector<Value*> values;
  for (Use& use : inst->operands) values.push_back(use.value);
  values.push_back(v);
  set_operands(inst, values);
  return v;
}

Value* Builder::constant(Type type, Bits bits) {
  return make(Op::constant, {type}, {}, truncate(bits, type))->result();
}

Value* Builder::unary(Op op, Value* a) { return make(op, {a->type}, {a})->result(); }

Value* Builder::binary(Op op, Value* a, Value* b) {
  Type t = info(op).rule == OperandRule::compare ? Type::b1 : a->type;
  return make(op, {t}, {a, b})->result();
}

Value* Builder::fma(Value* a, Value* b, Value* c) {
  return make(Op::fma, {a->type}, {a, b, c})->result();
}

Value* Builder::select(Value* c, Value* a, Value* b) {
  return make(Op::select, {a->type}, {c, a, b})->result();
}

Value* Builder::convert(Value* a, Type to) {
  return a->type == to ? a : make(Op::convert, {to}, {a})->result();
}

Value* Builder::bitcast(Value* a, Type to) {
  return a->type == to ? a : make(Op::bitcast, {to}, {a})->result();
}

namespace {
Inst* at_part(Inst* inst, Part part) {
  inst->part = part;
  return inst;
}
}  // namespace

Value* Builder::param(uint32_t binding, Type type) {
  return at_part(make(Op::param, {type}, {}), {binding, 0})->result();
}

Value* Builder::extent(uint32_t binding, uint32_t axis, Type type) {
  return at_part(make(Op::extent, {type}, {}), {binding, axis})->result();
}
Value* Builder::first(uint32_t binding, uint32_t axis, Type type) {
  return at_part(make(Op::first, {type}, {}), {binding, axis})->result();
}
Value* Builder::origin(uint32_t binding, uint32_t axis, Type type) {
  return at_part(make(Op::origin, {type}, {}), {binding, axis})->result();
}

Value* Builder::load(uint32_t binding, uint32_t component, Type elem,
                     std::span<Value* const> index) {
  Inst* inst = make(Op::load, std::span<const Type>(&elem, 1), index);
  at_part(inst, {binding, component})->elem = elem;
  return inst->result();
}

namespace {
std::vector<Value*> joined(std::span<Value* const> a, std::span<Value* const> b) {
  std::vector<Value*> all(a.begin(), a.end());
  all.insert(all.end(), b.begin(), b.end());
  return all;
}
}  // namespace

Inst* Builder::store(uint32_t binding, uint32_t component, std::span<Value* const> index,
                     Value* v) {
  Inst* inst = make(Op::store, {}, joined(index, {&v, 1}));
  at_part(inst, {binding, component})->elem = v->type;
  return inst;
}

Inst* Builder::atomic(AtomicOp op, uint32_t binding, uint32_t component, Type elem,
                      std::span<Value* const> index, std::span<Value* const> values) {
  Inst* inst = make(Op::atomic, std::span<const Type>(&elem, 1), joined(index, values));
  inst->kind = uint8_t(op);
  at_part(inst, {binding, component})->elem = elem;
  return inst;
}

Value* Builder::slot(Type elem, uint64_t count) {
  Inst* inst = make(Op::slot, {Type::slot}, {}, count);
  inst->elem = elem;
  return inst->result();
}

Value* Builder::unset_slot(Type elem, uint64_t count) {
  Value* made = slot(elem, count);
  made->inst->kind = unset;
  return made;
}

Value* Builder::get(Value* slot, Value* index) {
  Type elem = slot->inst->elem;
  Inst* inst = index ? make(Op::get, {elem}, {slot, index}) : make(Op::get, {elem}, {slot});
  inst->elem = elem;
  return inst->result();
}

Inst* Builder::put(Value* slot, Value* v) {
  Inst* inst = make(Op::put, {}, {slot, v});
  inst->elem = v->type;
  return inst;
}

Inst* Builder::put(Value* slot, Value* index, Value* v) {
  Inst* inst = make(Op::put, {}, {slot, index, v});
  inst->elem = v->type;
  return inst;
}

Inst* Builder::if_(Value* cond, std::span<const Type> results) {
  Inst* inst = make(Op::if_, results, std::span<Value* const>(&cond, 1));
  set_regions(inst, {make_region(), make_region()});
  return inst;
}

Inst* Builder::loop(Value* lo, Value* hi, Value* step, std::span<Value* const> init) {
  std::vector<Value*> operands = {lo, hi, step};
  std::vector<Type> results, args = {lo->type};
  for (Value* v : init) {
    operands.push_back(v);
    results.push_back(v->type);
    args.push_back(v->type);
  }
  Inst* inst = make(Op::loop, results, operands);
  set_regions(inst, {make_region(std::span<const Type>(args))});
  return inst;
}

Inst* Builder::while_(std::span<Value* const> init) {
  std::vector<Type> types;
  for (Value* v : init) types.push_back(v->type);
  Inst* inst = make(Op::while_, types, init);
  set_regions(
      inst, {make_region(std::span<const Type>(types)), make_region(std::span<const Type>(types))});
  return inst;
}

Inst* Builder::yield(std::span<Value* const> values) { return make(Op::yield, {}, values); }
Inst* Builder::yield(std::initializer_list<Value*> values) {
  return make(Op::yield, std::span<const Type>(),
              std::span<Value* const>(values.begin(), values.size()));
}

Value* Builder::random() {
  Value* launch = make(Op::launch_key, {Type::u64}, {})->result();
  Value* ordinal = make(Op::ordinal, {Type::u32}, {})->result();
  Value* iteration = make(Op::iteration, {Type::u64}, {})->result();
  Value* call = make(Op::call_number, {Type::u32}, {})->result();
  return make(Op::random, {Type::u32}, {launch, ordinal, iteration, call})->result();
}

Value* Builder::arg(uint32_t offset, Type type) {
  return make(Op::arg, {type}, {}, offset)->result();
}

Value* Builder::builtin(Builtin b) {
  Inst* inst = make(Op::builtin, {Type::i64}, {});
  inst->kind = uint8_t(b);
  return inst->result();
}

Value* Builder::block_reduce(AtomicOp op, Value* v) {
  Inst* inst = make(Op::block_reduce, {v->type}, {v});
  inst->kind = uint8_t(op);
  inst->elem = v->type;
  return inst->result();
}

Value* Builder::offset(Value* address, Value* bytes) {
  return make(Op::offset, {Type::address}, {address, bytes})->result();
}

Value* Builder::read(Value* address, Type elem, uint64_t alias_class) {
  Inst* inst = make(Op::read, {elem}, {address}, alias_class);
  inst->elem = elem;
  return inst->result();
}

Inst* Builder::write(Value* address, Value* v, uint64_t alias_class) {
  Inst* inst = make(Op::write, {}, {address, v}, alias_class);
  inst->elem = v->type;
  return inst;
}

Inst* Builder::rmw(AtomicOp op, Value* address, Type elem, std::span<Value* const> values,
                   uint64_t alias_class) {
  Inst* inst =
      make(Op::rmw, std::span<const Type>(&elem, 1), joined({&address, 1}, values), alias_class);
  inst->kind = uint8_t(op);
  inst->elem = elem;
  return inst;
}

}  // namespace quern::ir
