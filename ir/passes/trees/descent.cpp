#include "ir/passes/trees/descent.h"

#include <bit>

#include "quern/ir/trees.h"

namespace quern::ir {

std::pair<Value*, Value*> divide(Builder& b, Value* v, uint32_t by) {
  if (std::has_single_bit(by)) {
    Value* shift = b.integer(v->type, std::countr_zero(by));
    Value* mask = b.integer(v->type, by - 1);
    return {b.binary(Op::shr, v, shift), b.binary(Op::bit_and, v, mask)};
  }
  Value* n = b.integer(v->type, by);
  Value* quotient = b.div(v, n);
  return {quotient, b.sub(v, b.mul(quotient, n))};
}

// ---- numbers

std::vector<Value*> Descent::children(std::span<Value* const> indices) {
  const Binding& binding = kernel_.bindings[field_];
  std::vector<Value*> sums(pools_.size(), nullptr);
  for (uint32_t axis = 0; axis < binding.rank; axis++) {
    Value* index = indices[axis];
    if (binding.layout.shifted) index = b_.add(index, b_.origin(field_, axis, index->type));
    // A position is never negative. Divisions of 32 bits are several times faster.
    Value* rest = b_.convert(index, bit_width(index->type) <= 32 ? Type::u32 : Type::u64);
    for (size_t p = pools_.size(); p-- > 0;)
      for (size_t k = pools_[p].levels.size(); k-- > 0;) {
        const uint32_t extent = pools_[p].levels[k].extent[axis];
        if (extent == 1) continue;
        auto [quotient, digit] = divide(b_, rest, extent);
        rest = quotient;
        Value* part = b_.mul(digit, b_.integer(digit->type, pools_[p].levels[k].stride[axis]));
        part = b_.convert(part, Type::i64);
        sums[p] = sums[p] ? b_.add(sums[p], part) : part;
      }
  }
  for (Value*& sum : sums)
    if (!sum) sum = b_.integer(Type::i64, 0);
  return sums;
}

/// Number of a child of the cell in `slot`; null: the root.
Value* Descent::below(Value* slot, size_t pool, Value* child) {
  if (!slot) return child;
  Value* size = b_.integer(Type::i64, pools_[pool].children);
  return b_.add(b_.mul(b_.convert(slot, Type::i64), size), child);
}

Value* Descent::load(uint32_t part, Value* at, bool racing) {
  if (!racing) return b_.load(part, 0, Type::u32, {&at, 1});
  return b_.atomic(AtomicOp::load, part, 0, Type::u32, {&at, 1}, {})->result();
}

Value* Descent::atomic(AtomicOp op, uint32_t part, Value* at,
                       std::initializer_list<Value*> values) {
  return b_.atomic(op, part, 0, Type::u32, {&at, 1}, values)->result();
}

Value* Descent::word(size_t pool, uint32_t which) {
  return b_.integer(Type::i64, int64_t(pool * tree::words_of_pool + which));
}

// ---- what is there

Value* Descent::find(std::span<Value* const> children, bool racing) {
  Value *slot = nullptr, *number = nullptr;
  for (size_t p = 0; p < pools_.size(); p++) {
    number = below(slot, p, children[p]);
    if (p + 1 < pools_.size()) slot = load(parts_.table(field_, p), number, racing);
  }
  return number;
}

Value* Descent::is_active(std::span<Value* const> children, bool racing) {
  Value *slot = nullptr, *number = nullptr;
  for (size_t p = 0; p < pools_.size(); p++) {
    number = below(slot, p, children[p]);
    if (p + 1 < pools_.size()) slot = load(parts_.table(field_, p), number, racing);
  }
  Value* active = pools_.back().has_mask() ? is_set(parts_.mask(field_), number, racing) : nullptr;
  if (!slot) return active ? active : b_.boolean(true);
  Value* exists = b_.binary(Op::ge, slot, b_.integer(Type::u32, tree::first_slot));
  return active ? b_.binary(Op::bit_and, active, exists) : exists;
}

/// The word in which an element's bit stands, and the bit.
std::pair<Value*, Value*> Descent::bit(Value* element) {
  Value* at = b_.convert(element, Type::u64);
  if (pools_.back().unit > 1) at = divide(b_, at, pools_.back().unit).first;
  auto [word, rest] = divide(b_, at, 32);
  Value* one = b_.integer(Type::u32, 1);
  return {b_.convert(word, Type::i64), b_.binary(Op::shl, one, b_.convert(rest, Type::u32))};
}

Value* Descent::is_set(uint32_t bits, Value* element, bool racing) {
  auto [at, own] = bit(element);
  Value* set = b_.binary(Op::bit_and, load(bits, at, racing), own);
  return b_.binary(Op::ne, set, b_.integer(Type::u32, 0));
}

Value* Descent::is_listed(Value* element) {
  return pools_.back().has_mask() ? is_set(parts_.listed(field_), element, false) : nullptr;
}

// ---- what becomes active

Value* Descent::claim(std::span<Value* const> children) {
  Value *slot = nullptr, *number = nullptr;
  for (size_t p = 0; p < pools_.size(); p++) {
    number = below(slot, p, children[p]);
    if (p + 1 < pools_.size()) slot = claim_cell(p, number);
  }
  if (pools_.back().has_mask()) unmask(number);
  return number;
}

/// Most bits are set already: a read is cheaper than an atomic.
void Descent::mark(uint32_t part, Value* at, Value* bits) {
  Value* set = b_.binary(Op::bit_and, load(part, at, true), bits);
  Inst* branch = b_.if_(b_.binary(Op::ne, set, bits));
  Region* around = b_.region();
  Inst* point = b_.point();
  b_.at_end(branch->region(0));
  atomic(AtomicOp::bit_or, part, at, {bits});
  b_.yield();
  b_.at_end(branch->region(1)).yield();
  point ? b_.before(point) : b_.at_end(around);
}

void Descent::mark_changed() {
  mark(parts_.state(field_), word(0, tree::changed), b_.integer(Type::u32, 1));
}

void Descent::unmask(Value* element) {
  const uint32_t mask = parts_.mask(field_);
  auto [at, own] = bit(element);
  Value* set = b_.binary(Op::bit_and, load(mask, at, true), own);
  Inst* branch = b_.if_(b_.binary(Op::eq, set, b_.integer(Type::u32, 0)));
  Region* around = b_.region();
  Inst* point = b_.point();
  b_.at_end(branch->region(0));
  atomic(AtomicOp::bit_or, mask, at, {own});
  mark_changed();
  b_.yield();
  b_.at_end(branch->region(1)).yield();
  point ? b_.before(point) : b_.at_end(around);
}

void Descent::end(Value* element) {
  auto [at, own] = bit(element);
  mark(parts_.ending(field_), at, own);
}

/// The slot of the child, whose cell is taken where it has none.
Value* Descent::claim_cell(size_t pool, Value* number) {
  Value* known = load(parts_.table(field_, pool), number, true);
  Value* missing = b_.lt(known, b_.integer(Type::u32, tree::first_slot));
  const Type types[] = {Type::u32};
  Inst* branch = b_.if_(missing, types);
  Region* around = b_.region();
  Inst* point = b_.point();
  if (pools_[pool + 1].direct)
    take_own_cell(branch->region(0), pool, number);
  else
    take_cell(branch->region(0), pool, number, known);
  b_.at_end(branch->region(1)).yield({known});
  point ? b_.before(point) : b_.at_end(around);
  return branch->result();
}

/// The only one that the child can have.
void Descent::take_own_cell(Region* region, size_t pool, Value* number) {
  b_.at_end(region);
  const int64_t skipped = pool > 0 ? tree::first_slot * int64_t(pools_[pool].children) : 0;
  Value* apart = b_.integer(Type::i64, tree::first_slot - skipped);
  Value* own = b_.convert(b_.add(number, apart), Type::u32);
  Value* none = b_.integer(Type::u32, tree::no_cell);
  Value* before = atomic(AtomicOp::cas, parts_.table(field_, pool), number, {none, own});
  Inst* outcome = b_.if_(b_.binary(Op::eq, before, none));
  b_.at_end(outcome->region(0));
  atomic(AtomicOp::add, parts_.state(field_), word(pool + 1, tree::taken),
         {b_.integer(Type::u32, 1)});
  own_cell(pool, own, number);
  b_.yield();
  b_.at_end(outcome->region(1)).yield();
  b_.at_end(region).yield({own});
}

void Descent::own_cell(size_t pool, Value* own, Value* number) {
  Value* slot = b_.convert(own, Type::i64);
  b_.store(parts_.owners(field_, pool + 1), 0, {&slot, 1}, number);
  mark_changed();
}

void Descent::take_cell(Region* region, size_t pool, Value* number, Value* known) {
  const uint32_t table = parts_.table(field_, pool), state = parts_.state(field_);
  const uint32_t ring = parts_.ring(field_, pool + 1);
  const Type types[] = {Type::u32};
  const auto u32 = [&](int64_t v) { return b_.integer(Type::u32, v); };
  b_.at_end(region);
  Value* mine = atomic(AtomicOp::add, state, word(pool + 1, tree::taken), {u32(1)});
  Value* left = b_.sub(load(state, word(pool + 1, tree::limit), false), mine);
  Value* some = b_.binary(Op::gt, b_.bitcast(left, Type::i32), b_.integer(Type::i32, 0));
  Inst* branch = b_.if_(some, types);
  taken_cell(branch->region(0), table, ring, number, known, pool, mine);

  b_.at_end(branch->region(1));
  Value* was = atomic(AtomicOp::cas, table, number, {known, u32(tree::lost_cell)});
  Value* counts = b_.binary(Op::eq, b_.binary(Op::bit_or, was, known), u32(tree::no_cell));
  atomic(AtomicOp::add, state, word(pool + 1, tree::need), {b_.convert(counts, Type::u32)});
  mark(state, word(pool + 1, tree::short_of), u32(1));
  Value* slot = b_.binary(Op::max, was, u32(tree::lost_cell));
  if (reports_) {
    Value* found = b_.binary(Op::ne, slot, u32(tree::lost_cell));
    Value* all = b_.sub(load(state, word(pool + 1, tree::cells), false), u32(tree::first_slot));
    b_.make(Op::check, {}, {found, u32(int64_t(pool + 1)), all})->site = out_of_cells();
  }
  b_.yield({slot});
  b_.at_end(region).yield({branch->result()});
}

/// The cell at position `mine` of the ring becomes the child's, unless another has come first.
void Descent::taken_cell(Region* region, uint32_t table, uint32_t ring, Value* number, Value* known,
                         size_t pool, Value* mine) {
  const auto u32 = [&](int64_t v) { return b_.integer(Type::u32, v); };
  b_.at_end(region);
  Value* last = b_.sub(b_.extent(ring, 0, Type::u32), u32(1));
  const auto position = [&](Value* count) {
    return b_.convert(b_.binary(Op::bit_and, count, last), Type::i64);
  };
  Value* own = load(ring, position(mine), false);
  Value* before = atomic(AtomicOp::cas, table, number, {known, own});
  Value* won = b_.binary(Op::eq, before, known);
  Inst* outcome = b_.if_(won);
  b_.at_end(outcome->region(0));
  own_cell(pool, own, number);
  b_.yield();
  b_.at_end(outcome->region(1));
  Value* count = atomic(AtomicOp::add, parts_.state(field_), word(pool + 1, tree::given), {u32(1)});
  Value* end = position(count);
  b_.store(ring, 0, {&end, 1}, own);
  b_.yield();
  b_.at_end(region);
  b_.yield({b_.select(won, own, before)});
}

uint32_t Descent::out_of_cells() {
  Site s;
  s.kind = Site::other;
  s.loc = b_.loc();
  s.text = "no cell is left where an element of " + kernel_.bindings[field_].name +
           " becomes active: level {} of its tree has {}";
  s.values = {Type::u32, Type::u32};
  kernel_.sites.push_back(std::move(s));
  return uint32_t(kernel_.sites.size() - 1);
}

}  // namespace quern::ir
