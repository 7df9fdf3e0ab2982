// Branches, loops and calls.
#include <algorithm>
#include <cstddef>

#include "backends/vulkan/emitter.h"
#include "quern/ir/abi.h"

namespace quern::vulkan {

void Emitter::define(std::span<ir::Value> results, const Ids& values) {
  for (size_t k = 0; k < results.size(); k++) values_[&results[k]] = values[k];
}

void Emitter::call(const ir::Inst& inst) {
  const ir::Region* body = kernel_.callees.at(inst.imm).body;
  define(body->args, operands(inst));
  define(inst.results, region(body));
}

void Emitter::if_else(const ir::Inst& inst) {
  Id start[2] = {w.make_id(), w.make_id()};
  Id join = w.make_id();
  w.effect(Spv::OpSelectionMerge, {join, 0});
  w.branch(value(inst.operand(0)), start[0], start[1]);
  Ids results[2];
  Id end[2];
  for (int k = 0; k < 2; k++) {
    w.place(start[k]);
    results[k] = region(inst.region(k));
    end[k] = w.block();
    w.branch(join);
  }
  w.place(join);
  Ids joined;
  for (size_t k = 0; k < inst.results.size(); k++)
    joined.push_back(
        w.phi(scalar_.type(inst.results[k].type), results[0][k], end[0], results[1][k], end[1]));
  define(inst.results, joined);
}

Emitter::Loop Emitter::open_loop(std::span<const Type> types, const Ids& init) {
  Loop loop{w.block(), w.make_id(), w.make_id(), w.make_id(), 0, {}};
  w.branch(loop.head);
  w.place(loop.head);
  for (size_t k = 0; k < init.size(); k++)
    loop.carried.push_back(w.open_phi(scalar_.type(types[k]), init[k], loop.before, loop.next));
  return loop;
}

void Emitter::end_head(const Loop& loop) {
  Id start = w.make_id();
  w.effect(Spv::OpLoopMerge, {loop.after, loop.next, 0});
  w.branch(start);
  w.place(start);
}

void Emitter::test(Loop& loop, Id condition) {
  if (abilities_.mesa_software) {
    // Compilers know that `condition` is false behind the loop, but not what this sum is.
    Id number = scalar_.convert(Type::b1, Type::u64, condition);
    loop.trace = w.op(Spv::OpIAdd, scalar_.type(Type::u64),
                      {number, push_constant(offsetof(PushConstants, fault))});
  }
  Id inside = w.make_id();
  w.branch(condition, inside, loop.after);
  w.place(inside);
}

Ids Emitter::ids(const Loop& loop) {
  Ids all;
  for (auto& phi : loop.carried) all.push_back(phi.id);
  return all;
}

namespace {
/// Does a round compute the next one's index?
bool looks_ahead(const ir::Inst& loop) {
  bool looks = false;
  const ir::Value *index = loop.region(0)->arg(0), *step = loop.operand(2);
  const auto is_step = [&](const ir::Value* v) {
    return v == step || (v->inst && step->inst && v->inst->is(Op::constant) &&
                         step->inst->is(Op::constant) && v->inst->imm == step->inst->imm);
  };
  for (const ir::Use* use = index->uses; use; use = use->next) {
    const ir::Inst* sum = use->user;
    looks |= sum->is(Op::add) && (is_step(sum->operand(0)) || is_step(sum->operand(1)));
  }
  return looks;
}
}  // namespace

void Emitter::counted_loop(const ir::Inst& inst) {
  const ir::Region* body = inst.region(0);
  Type t = inst.operand(0)->type;
  Id hi = value(inst.operand(1)), step = value(inst.operand(2));
  // Mesa's software driver takes the next index of a round for the loop's, and that for the index where
  // a long branch stands between them (22.3): in v[j] = f(v[j]) + v[j + 1] it stores to v[j + 1].
  if (looks_ahead(inst)) step = scalar_.hidden(t, step);
  const ir::Inst* constant = inst.operand(2)->inst;
  bool by_one = constant && constant->is(Op::constant) && constant->imm == 1;
  bool may_wrap = !by_one && inst.kind != ir::thread_walk;
  std::vector<Type> types = {t};
  Ids init = {value(inst.operand(0))};
  for (size_t k = 3; k < inst.operand_count(); k++) {
    types.push_back(inst.operand(k)->type);
    init.push_back(value(inst.operand(k)));
  }
  if (may_wrap) {
    types.push_back(Type::b1);
    init.push_back(w.boolean(true));
  }
  Loop loop = open_loop(types, init);
  Ids carried = ids(loop);
  Id index = carried[0];
  define(body->args, carried);
  end_head(loop);
  Id more = scalar_.less(t, index, hi);
  if (may_wrap) more = w.op(Spv::OpLogicalAnd, w.bool_type(), {more, carried.back()});
  test(loop, more);
  Ids next = region(body);
  w.branch(loop.next);
  w.place(loop.next);
  next.insert(next.begin(), w.op(Spv::OpIAdd, scalar_.type(t), {index, step}));
  if (may_wrap) next.push_back(scalar_.less(t, index, next[0]));
  close(loop, next, inst);
  carried.erase(carried.begin());
  define(inst.results, carried);
}

namespace {
bool is_pure(const ir::Region* region) {
  bool pure = true;
  ir::walk(const_cast<ir::Region*>(region), [&](const ir::Inst* inst) {
    pure &= ir::is_pure(inst->op) || ir::has(inst->op, ir::flag::control | ir::flag::ends);
  });
  return pure;
}
}  // namespace

void Emitter::while_loop(const ir::Inst& inst) {
  if (abilities_.mesa_software && !is_pure(inst.region(0))) return while_loop_tested_inside(inst);
  std::vector<Type> types;
  for (const ir::Value& v : inst.results) types.push_back(v.type);
  Loop loop = open_loop(types, operands(inst));
  define(inst.region(0)->args, ids(loop));
  end_head(loop);
  Ids tested = region(inst.region(0));
  test(loop, tested[0]);
  tested.erase(tested.begin());
  define(inst.region(1)->args, tested);
  Ids next = region(inst.region(1));
  w.branch(loop.next);
  w.place(loop.next);
  close(loop, next, inst);
  define(inst.results, tested);
}

/// On Mesa's software driver what the head of a loop makes goes on changing for the lanes that have
/// left, while others go round: what they read there is 0. Only what is carried stays. So the
/// condition is tested in the body, and whether to go on is carried, with the results.
void Emitter::while_loop_tested_inside(const ir::Inst& inst) {
  const size_t count = inst.results.size();
  std::vector<Type> types;
  for (int twice = 0; twice < 2; twice++)
    for (const ir::Value& v : inst.results) types.push_back(v.type);
  types.push_back(Type::b1);
  Ids init = operands(inst);
  init.insert(init.end(), init.begin(), init.begin() + std::ptrdiff_t(count));
  init.push_back(w.boolean(true));
  Loop loop = open_loop(types, init);
  const Ids carried = ids(loop);
  define(inst.region(0)->args, carried);
  end_head(loop);
  test(loop, carried.back());
  Ids tested = region(inst.region(0));
  const Id more = tested[0];
  tested.erase(tested.begin());
  const Id start = w.make_id(), join = w.make_id(), before = w.block();
  w.effect(Spv::OpSelectionMerge, {join, 0});
  w.branch(more, start, join);
  w.place(start);
  define(inst.region(1)->args, tested);
  const Ids round = region(inst.region(1));
  const Id end = w.block();
  w.branch(join);
  w.place(join);
  Ids next;
  for (size_t k = 0; k < count; k++)
    next.push_back(w.phi(scalar_.type(types[k]), round[k], end, tested[k], before));
  next.insert(next.end(), tested.begin(), tested.end());
  next.push_back(more);
  w.branch(loop.next);
  w.place(loop.next);
  close(loop, next, inst);
  define(inst.results,
         {carried.begin() + std::ptrdiff_t(count), carried.begin() + std::ptrdiff_t(2 * count)});
}

void Emitter::close(const Loop& loop, const Ids& next, const ir::Inst& inst) {
  for (size_t k = 0; k < next.size(); k++) w.close(loop.carried[k], next[k]);
  w.branch(loop.head);
  w.place(loop.after);
  if (!abilities_.mesa_software) return;
  Id fault = push_constant(offsetof(PushConstants, same_fault));
  Id cut = w.op(Spv::OpINotEqual, w.bool_type(), {loop.trace, fault});
  when(cut, [&] { report_cut(inst); });
}

void Emitter::report_cut(const ir::Inst& inst) {
  auto it = loop_numbers_.find(&inst);
  uint64_t loop = it == loop_numbers_.end() ? 0xffff : std::min<size_t>(it->second + 1, 0xffff);
  Id word = scalar_.type(Type::u64);
  Id where = scalar_.constant(Type::u64, loop | uint64_t(number_ & 0xffff) << 16);
  Id id = w.op(Spv::OpShiftLeftLogical, word,
               {push_constant(offsetof(PushConstants, id)), scalar_.constant(Type::u64, 32)});
  // The loops around it are cut with it: the first report stays.
  Id fault = push_constant(offsetof(PushConstants, fault));
  Id first = w.op(Spv::OpIEqual, w.bool_type(),
                  {load(fault, Type::u64, 8), scalar_.constant(Type::u64, 0)});
  when(first, [&] { store(fault, Type::u64, w.op(Spv::OpBitwiseOr, word, {id, where})); });
}

}  // namespace quern::vulkan
