// Mutable locals: quern/values/record.h on the recording of this thread.
#include "dsl/recording.h"

namespace quern::detail {

namespace {

constexpr ir::Op op_of(Op op) { return ir::Op(uint8_t(op)); }

/// The scalar operation of an atomic or a reduction, for code that runs it plainly.
ir::Op plain(ir::AtomicOp op, ir::Type type) {
  switch (op) {
    case ir::AtomicOp::add: return ir::Op::add;
    case ir::AtomicOp::mul: return ir::Op::mul;
    case ir::AtomicOp::min: return ir::is_float(type) ? ir::Op::fmin : ir::Op::min;
    case ir::AtomicOp::max: return ir::is_float(type) ? ir::Op::fmax : ir::Op::max;
    case ir::AtomicOp::bit_and: return ir::Op::bit_and;
    case ir::AtomicOp::bit_or: return ir::Op::bit_or;
    case ir::AtomicOp::bit_xor: return ir::Op::bit_xor;
    default: throw InternalError("an atomic without a plain operation updates a variable");
  }
}

void reduce(Recording& r, ir::AtomicOp op, ir::Value* slot, ir::Value* v, Loc loc) {
  if (v->type == ir::Type::f16)
    return r.fail(loc,
                  "a parallel loop reduces into a variable of f16: reductions take the integer "
                  "types, f32 and f64");
  Outer& outer = r.outer(slot);
  if (outer.read)
    return r.fail(loc,
                  "a variable that this parallel loop reduces into is read inside the loop (at " +
                      place(outer.read_at) + ")");
  if (outer.reduced && *outer.reduced != op)
    return r.fail(loc, "a parallel loop reduces into one variable with two operators: " +
                           std::string(ir::name(*outer.reduced)) + " at " +
                           place(outer.reduced_at) + " and " + std::string(ir::name(op)) + " here");
  if (!outer.reduced) outer.reduced_at = loc.line ? loc : r.last;
  outer.reduced = op;
  ir::Inst* inst = r.at(loc).make(ir::Op::reduce, {}, {slot, v});
  inst->kind = uint8_t(op);
  inst->elem = v->type;
}

/// Shifts of narrow integers count in the promoted type, as in C++.
ir::Value* shifted(ir::Builder& b, ir::Op op, ir::Value* v, ir::Value* count) {
  ir::Type type = v->type;
  if (ir::bit_width(type) >= 32) return b.binary(op, v, count);
  ir::Value* wide = b.convert(v, ir::Type::i32);
  ir::Value* by = b.convert(count, ir::Type::i32);
  return b.convert(b.binary(op, wide, by), type);
}

/// A slot, or an element of one: what an id of either names.
struct Place {
  ir::Value* slot;
  ir::Value* index = nullptr;

  explicit Place(ir::Value* v) : slot(v) {
    if (v->type == ir::Type::slot) return;
    slot = v->inst->operand(0);
    if (v->inst->operand_count() == 2) index = v->inst->operand(1);
  }
  ir::Value* get(ir::Builder& b) const { return b.get(slot, index); }
  void put(ir::Builder& b, ir::Value* v) const {
    if (index)
      b.put(slot, index, v);
    else
      b.put(slot, v);
  }
  bool is_array() const { return slot->inst->imm > 1; }
};

/// An array of kernel level is no reduction's variable.
bool races(Recording& r, const Place& place, Loc loc) {
  if (!place.is_array() || !r.crosses(place.slot)) return false;
  r.fail(loc, "an array declared outside a parallel loop (at " +
                  detail::place(place.slot->inst->loc) +
                  ") is changed inside it, so iterations race; declare it inside, or use a field, "
                  "whose += is atomic");
  return true;
}
}  // namespace

Id slot(Scalar type, int count, Loc loc) {
  Recording& r = recording(loc);
  if (r.failed()) return {};
  return r.add(r.at(loc).slot(type_of_scalar(type), uint64_t(count)));
}

Id item(Id base, Id index, int stride, int offset, Loc loc) {
  Recording& r = recording(loc);
  ir::Value *v = r.value(base, loc), *at = r.value(index, loc);
  if (!v || !at) return {};
  ir::Builder& b = r.at(loc);
  Place to(v);
  if (!to.is_array()) return r.add(b.get(to.slot));
  if (stride != 1) at = b.binary(ir::Op::mul, at, b.integer(at->type, stride));
  if (to.index) {
    ir::Type type = to.index->type == ir::Type::i64 ? ir::Type::i64 : at->type;
    at = b.add(b.convert(to.index, type), b.convert(at, type));
  }
  if (offset != 0) at = b.add(at, b.integer(at->type, offset));
  return r.add(b.get(to.slot, at), {base, index});
}

Id get(Id id, Loc loc) {
  Recording& r = recording(loc);
  ir::Value* v = r.value(id, loc);
  if (!v) return {};
  Place to(v);
  ir::Value* s = to.slot;
  if (r.crosses(s)) {
    Outer& outer = r.outer(s);
    if (outer.reduced) {
      r.fail(loc, "a variable that this parallel loop reduces into (at " + place(outer.reduced_at) +
                      ") is read inside the loop");
      return {};
    }
    if (!outer.read) outer.read_at = loc.line ? loc : r.last;
    outer.read = true;
  }
  return r.add(to.get(r.at(loc)));
}

void put(Id id, Id v, Loc loc) {
  Recording& r = recording(loc);
  ir::Value *to = r.value(id, loc), *x = r.value(v, loc);
  if (!to || !x) return;
  Place at(to);
  if (races(r, at, loc)) return;
  if (r.crosses(at.slot))
    return r.fail(loc,
                  "a variable declared outside a parallel loop (at " + place(at.slot->inst->loc) +
                      ") is assigned inside it, so iterations race; use +=, atomic_min(v, x), ... "
                      "or declare it inside");
  at.put(r.at(loc), x);
}

void put_at(const Id* slots, int count, Id index, Id v, Loc loc) {
  Recording& r = recording(loc);
  for (int k = 0; k < count; k++) {
    ir::Value* at = r.value(index, loc);
    if (!at) return;
    ir::Builder& b = r.at(loc);
    Id here = r.add(b.binary(ir::Op::eq, at, b.integer(at->type, k)));
    put(slots[k], ternary(Op::select, here, v, get(slots[k], loc), loc), loc);
  }
}

void update(Op op, Id id, Id v, Loc loc) {
  Recording& r = recording(loc);
  ir::Value *to = r.value(id, loc), *x = r.value(v, loc);
  if (!to || !x) return;
  Place at(to);
  ir::Value* s = at.slot;
  if (races(r, at, loc)) return;
  ir::Builder& b = r.at(loc);
  if (r.crosses(s)) {
    switch (op) {
      case Op::add: return reduce(r, ir::AtomicOp::add, s, x, loc);
      case Op::sub: return reduce(r, ir::AtomicOp::add, s, b.unary(ir::Op::neg, x), loc);
      case Op::mul: return reduce(r, ir::AtomicOp::mul, s, x, loc);
      case Op::bit_and: return reduce(r, ir::AtomicOp::bit_and, s, x, loc);
      case Op::bit_or: return reduce(r, ir::AtomicOp::bit_or, s, x, loc);
      case Op::bit_xor: return reduce(r, ir::AtomicOp::bit_xor, s, x, loc);
      default:
        return r.fail(loc, "a variable declared outside a parallel loop (at " +
                               place(s->inst->loc) +
                               ") is changed inside it by an operator that is no reduction, so "
                               "iterations race; declare it inside");
    }
  }
  ir::Value* old = at.get(b);
  bool shift = op == Op::shl || op == Op::shr;
  at.put(b, shift ? shifted(b, op_of(op), old, x) : r.arithmetic(op_of(op), old, x));
}

Id update(Atomic kind, Id id, Id v, Loc loc) {
  Recording& r = recording(loc);
  ir::Value *to = r.value(id, loc), *x = r.value(v, loc);
  if (!to || !x) return {};
  Place at(to);
  if (races(r, at, loc)) return {};
  ir::AtomicOp op = ir::AtomicOp(uint8_t(kind));
  if (r.crosses(at.slot)) {
    reduce(r, op, at.slot, x, loc);
    return r.add(nullptr);
  }
  ir::Builder& b = r.at(loc);
  ir::Value* old = at.get(b);
  at.put(b, r.arithmetic(plain(op, x->type), old, x));
  return r.add(old);
}

}  // namespace quern::detail
