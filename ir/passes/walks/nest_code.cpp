#include "ir/passes/walks/nest_code.h"

#include "ir/analysis/facts.h"

namespace quern::ir {

void NestCode::inside(Region* region, const std::function<std::vector<Value*>()>& fill) {
  Region* around = b_.region();
  b_.at_end(region);
  b_.yield(fill());
  b_.at_end(around);
}

Value* NestCode::takes() {
  if (!taken_) return nullptr;
  Value* condition = need(taken_);
  return takes_first_ ? condition : b_.unary(Op::bit_not, condition);
}

void NestCode::copy(const Inst* inst) {
  if (has(inst->op, flag::slots) && !inst->is(Op::slot) && locals_.contains(inst->operand(0)))
    return access_local(inst);
  if (const Nest::Packed* packed = nest_.packed(inst)) {
    map_[inst->result()] = b_.get(packs_[packed->pack], place(*packed));
    return;
  }
  if (nest_.is_unrolled(inst)) return write_out(inst);
  if (inst->regions.empty()) return Strips::copy(inst);
  outer_operands(inst, [&](Value* v) {
    if (!locals_.contains(v)) need(v);
  });
  copy_control(inst);
}

void NestCode::copy_where(Value* taken, const Inst* inst) {
  std::vector<Type> types;
  for (const Value& v : inst->results) types.push_back(v.type);
  outer_operands(inst, [&](Value* v) {
    if (!locals_.contains(v)) need(v);
  });
  Inst* branch = b_.if_(taken, types);
  inside(branch->region(0), [&] {
    copy(inst);
    std::vector<Value*> made;
    for (const Value& v : inst->results) made.push_back(map_.at(&v));
    return made;
  });
  inside(branch->region(1), [&] {
    std::vector<Value*> none;
    for (Type type : types) none.push_back(b_.constant(type, 0));
    return none;
  });
  for (size_t k = 0; k < types.size(); k++) map_[inst->result(k)] = branch->result(k);
}

void NestCode::access_local(const Inst* inst) {
  Value* slot = locals_.at(inst->operand(0));
  const bool puts = inst->is(Op::put);
  Value* at = within_;
  if (inst->operand_count() == (puts ? 3 : 2)) {
    Value* element = b_.convert(need(inst->operand(1)), Type::i64);
    at = b_.add(b_.mul(element, integer(strip_)), within_);
  }
  if (puts)
    b_.put(slot, at, need(inst->operand(inst->operand_count() - 1)));
  else
    map_[inst->result()] = b_.get(slot, at);
}

void NestCode::copy_control(const Inst* inst) {
  std::vector<Value*> operands;
  for (const Use& use : inst->operands) operands.push_back(need(use.value));
  std::vector<Type> types;
  for (const Value& v : inst->results) types.push_back(v.type);
  Inst* made = b_.make(inst->op, types, operands, inst->imm);
  made->kind = inst->kind;
  made->loc = inst->loc;
  for (size_t k = 0; k < types.size(); k++) map_[inst->result(k)] = made->result(k);
  std::vector<Region*> regions;
  Region* around = b_.region();
  for (const Region* from : inst->regions) {
    std::vector<Type> arguments;
    for (const Value& v : from->args) arguments.push_back(v.type);
    regions.push_back(b_.make_region(std::span<const Type>(arguments)));
    for (size_t k = 0; k < arguments.size(); k++) map_[from->arg(k)] = regions.back()->arg(k);
    b_.at_end(regions.back());
    copy_all(from);
    std::vector<Value*> yielded;
    for (const Use& use : from->last->operands) yielded.push_back(need(use.value));
    Inst* last = b_.make(from->last->op, std::span<const Type>(), yielded);
    last->loc = from->last->loc;
  }
  if (regions.size() == 1) b_.set_regions(made, {regions[0]});
  if (regions.size() == 2) b_.set_regions(made, {regions[0], regions[1]});
  b_.at_end(around);
}

void NestCode::write_out(const Inst* loop) {
  const Region* round = loop->region(0);
  const Type type = loop->operand(0)->type;
  const int64_t lo = to_signed(constant_of(loop->operand(0))->imm, type);
  const int64_t rounds = *constant_rounds(loop);
  std::vector<Value*> carried;
  for (size_t k = 3; k < loop->operand_count(); k++) carried.push_back(need(loop->operand(k)));
  for (int64_t at = 0; at < rounds; at++) {
    map_[round->arg(0)] = b_.integer(type, lo + at);
    for (size_t k = 0; k < carried.size(); k++) map_[round->arg(k + 1)] = carried[k];
    copy_all(round);
    for (size_t k = 0; k < carried.size(); k++) carried[k] = need(round->last->operand(k));
  }
  for (size_t k = 0; k < carried.size(); k++) map_[loop->result(k)] = carried[k];
}

// ---- packs

/// Where an iteration's element of a pack stands, at the rounds of these loops.
Value* NestCode::place(const Nest::Packed& packed) {
  const Pack& pack = nest_.packs()[packed.pack];
  Value* at = integer(0);
  for (size_t k = 0; k < pack.axes.size(); k++) {
    Value* round = b_.convert(need(packed.loops[k]->region(0)->arg(0)), Type::i64);
    at =
        b_.add(b_.mul(at, integer(pack.axes[k].count)), b_.sub(round, integer(pack.axes[k].first)));
  }
  return b_.add(b_.mul(at, integer(strip_)), within_);
}

void NestCode::fill(const Pack& pack, Value* slot) {
  std::unordered_map<const Value*, Value*> none;
  std::swap(slots_, none);
  Value* reads = nullptr;
  for (const Inst* loop : pack.may_be_idle) {
    Value* runs = b_.lt(loop->operand(0), loop->operand(1));
    reads = reads ? b_.binary(Op::bit_and, reads, runs) : runs;
  }
  if (reads)
    where(reads, [&] { copy_side_by_side(pack, slot); });
  else
    copy_side_by_side(pack, slot);
  std::swap(slots_, none);
}

void NestCode::copy_side_by_side(const Pack& pack, Value* slot) {
  Region* around = b_.region();
  std::vector<Value*> rounds;
  for (size_t k = 0; k < pack.axes.size(); k++) {
    const auto [factor, first, count] = pack.axes[k];
    const Type type = pack.loops[k]->operand(0)->type;
    Inst* loop =
        b_.loop(b_.integer(type, first), b_.integer(type, first + count), b_.integer(type, 1));
    rounds.push_back(loop->region(0)->arg(0));
    b_.at_end(loop->region(0));
  }
  const Nest::Packed here{size_t(&pack - nest_.packs().data()), pack.loops};
  each(walks_, {}, [&](std::span<Value>) {
    for (size_t k = 0; k < rounds.size(); k++) map_[pack.loops[k]->region(0)->arg(0)] = rounds[k];
    Strips::copy(pack.read);
    b_.put(slot, place(here), map_.at(pack.read->result()));
    return std::vector<Value*>();
  });
  for (size_t k = 0; k < pack.axes.size(); k++) {
    b_.yield();
    b_.at_end(b_.region()->parent->parent);
  }
  b_.at_end(around);
}

}  // namespace quern::ir
