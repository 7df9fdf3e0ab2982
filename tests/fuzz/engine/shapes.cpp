#include "tests/fuzz/engine/shapes.h"

namespace quern::fuzz {

using namespace ir;

Value* Shapes::load(const Element& e) { return b_.load(e.binding, e.component, e.type, e.index); }

void Shapes::store(const Element& e, Value* v) {
  b_.store(e.binding, e.component, e.index, values_.convert(v, e.type));
}

Value* Shapes::joined(Value* a, Value* b, Random& random) {
  const Op op = a->type == Type::b1 ? random.pick<Op>({Op::bit_xor, Op::bit_or, Op::bit_and})
                                    : random.pick<Op>({Op::add, Op::sub, Op::mul, Op::min});
  return b_.binary(op, a, b);
}

void Shapes::inner_loop(const Element& from, const Element& other, const Element& to) {
  Value* start = values_.convert(load(from), to.type);
  const uint32_t axis = uint32_t(random_.below(other.index.size()));
  Value *first = b_.integer(Type::i64, 0), *end = b_.extent(other.binding, axis, Type::i64);
  Inst* loop = b_.loop(first, end, b_.integer(Type::i64, 1), {&start, 1});
  Region* around = b_.region();
  b_.at_end(loop->region(0));
  Element at = other;
  at.index[axis] = loop->region(0)->arg(0);
  Value* next = random_.chance(40) ? in_branch(from, at, loop->region(0)->arg(1))
                                   : of_round(from, at, loop->region(0)->arg(1));
  Random aside(Random(random_).word());  // what others draw stays as it is
  if (aside.below(5) == 1) next = triangle(at, axis, next, aside);
  const bool updates = random_.chance(30);
  if (updates) store(to, joined(load(to), next));
  b_.yield({next});
  b_.at_end(around);
  if (!updates) store(to, loop->result());
}

/// What `carried` becomes by the elements.
Value* Shapes::of_round(const Element& from, const Element& at, Value* carried) {
  Value* v = values_.convert(load(at), carried->type);
  if (random_.chance(50)) v = joined(v, values_.convert(load(from), carried->type));
  return joined(carried, v);
}

/// `carried` behind a loop of few rounds around one of as many as its index says.
Value* Shapes::triangle(const Element& at, uint32_t axis, Value* carried, Random& random) {
  Value *zero = b_.integer(Type::i64, 0), *one = b_.integer(Type::i64, 1);
  Region* around = b_.region();
  Inst* rows =
      b_.loop(zero, b_.integer(Type::i64, 2 + int64_t(random.below(2))), one, {&carried, 1});
  b_.at_end(rows->region(0));
  Value *row = rows->region(0)->arg(0), *begun = rows->region(0)->arg(1);
  Inst* columns = b_.loop(zero, random.chance(50) ? row : b_.add(row, one), one, {&begun, 1});
  b_.at_end(columns->region(0));
  Value *column = columns->region(0)->arg(0), *v = columns->region(0)->arg(1);
  Element in_row = at;
  in_row.index[axis] =
      b_.binary(Op::rem, random.chance(50) ? row : column, b_.extent(at.binding, axis, Type::i64));
  v = joined(v, values_.convert(load(in_row), v->type), random);
  if (random.chance(50) && v->type != Type::b1) v = joined(v, b_.convert(column, v->type), random);
  b_.yield({v});
  b_.at_end(rows->region(0)).yield({columns->result()});
  b_.at_end(around);
  return rows->result();
}

/// A round as of_round makes it, in some iterations.
Value* Shapes::in_branch(const Element& from, const Element& at, Value* carried) {
  const Type type = carried->type;
  Value* own = values_.convert(load(from), type);
  Inst* branch = b_.if_(type == Type::b1 ? own : b_.lt(own, carried), {&type, 1});
  const size_t taken = random_.below(2);
  Region* around = b_.region();
  b_.at_end(branch->region(1 - taken)).yield({carried});
  b_.at_end(branch->region(taken));
  b_.yield({of_round(from, at, carried)});
  b_.at_end(around);
  return branch->result();
}

void Shapes::rare_case(const Element& from, const Element& to) {
  const Type type = random_.chance(50) ? Type::f32 : Type::f64;
  const Op op = random_.pick<Op>({Op::sin, Op::cos, Op::tan, Op::fmod, Op::remainder});
  Value* x = values_.convert(load(from), type);
  if (random_.chance(50)) x = b_.mul(x, b_.real(type, 0x1p60));
  if (info(op).operands == 1)
    store(to, b_.unary(op, x));
  else
    store(to, b_.binary(op, x, b_.real(type, 0.75)));
}

Value* Shapes::neighbour(Value* at, Value* extent) {
  const Type t = at->type;
  Value *zero = b_.integer(t, 0), *one = b_.integer(t, 1);
  Value* last = b_.sub(extent, one);
  switch (random_.below(4)) {
    case 0: return b_.binary(Op::rem, b_.add(at, one), extent);
    case 1: return b_.binary(Op::min, b_.add(at, one), last);
    case 2: return b_.binary(Op::max, b_.sub(at, one), zero);
    default: return b_.select(b_.binary(Op::eq, at, zero), last, b_.sub(at, one));
  }
}

void Shapes::stencil(const Element& from, const Element& to) {
  const uint32_t axis = uint32_t(random_.below(from.index.size()));
  Element beside = from;
  Value*& at = beside.index[axis];
  at = neighbour(at, b_.extent(from.binding, axis, at->type));
  Value* v = values_.convert(load(from), to.type);
  store(to, joined(v, values_.convert(load(beside), to.type)));
}

}  // namespace quern::fuzz
