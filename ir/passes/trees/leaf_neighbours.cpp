#include "ir/passes/trees/leaf_neighbours.h"

#include "quern/ir/trees.h"

namespace quern::ir {

namespace {
/// Of smaller cells a table costs more than it spares.
constexpr uint32_t least_children = 16;
}  // namespace

LeafNeighbours::LeafNeighbours(Kernel& kernel, TreeParts& parts, Builder& b, uint32_t field,
                               const Region* body)
    : kernel_(kernel), parts_(parts), b_(b), field_(field), reads_(kernel, parts, b, field) {
  const Placement& layout = kernel.bindings[field].layout;
  if (layout.pools.size() == 1 || reads_.leaf.has_lists() || reads_.leaf.children < least_children)
    return;
  around_ = reads_.around(body);
}

/// Directions are numbers of as many digits as there are axes, 0, 1 or 2 each.
int64_t LeafNeighbours::power(uint32_t axis) const {
  int64_t n = 1;
  for (uint32_t k = 0; k < axis; k++) n *= 3;
  return n;
}

Value* LeafNeighbours::entry(Value* cell, Value* direction) {
  Value* first = b_.mul(cell, b_.integer(Type::i64, power(reads_.rank)));
  return b_.add(first, direction);
}

void LeafNeighbours::fill(Value* cell, Value* slot, std::span<Value* const> places) {
  std::set<LeafReads::Direction> cells;
  for (const LeafReads::Read& read : around_) cells.merge(reads_.cells_of(read.offset));
  const uint32_t table = parts_.neighbours(field_);
  for (const LeafReads::Direction& direction : cells) {
    int64_t number = 0;
    for (uint32_t axis = 0; axis < reads_.rank; axis++)
      number += (direction[axis] + 1) * power(axis);
    Value* found =
        direction == LeafReads::Direction{} ? slot : reads_.slot_of(direction, places, false);
    Value* at = entry(cell, b_.integer(Type::i64, number));
    b_.store(table, 0, {&at, 1}, found);
  }
}

void LeafNeighbours::replace(Value* cell, std::span<Value* const> along) {
  const auto integer = [&](int64_t v) { return b_.integer(Type::i32, v); };
  for (const LeafReads::Read& read : around_) {
    b_.before(read.inst).at(read.inst->loc);
    Value* direction = nullptr;
    int64_t own = 0;  // the direction of the cell itself
    std::vector<Value*> there;
    for (uint32_t axis = 0; axis < reads_.rank; axis++) {
      own += power(axis);
      Value* at = along[axis];
      if (const int64_t offset = read.offset[axis]) {
        at = b_.add(at, integer(offset));
        const int64_t size = offset < 0 ? -reads_.extent[axis] : reads_.extent[axis];
        Value* leaves = offset < 0 ? b_.lt(at, integer(0)) : b_.binary(Op::ge, at, integer(size));
        Value* beside = b_.sub(at, integer(size));
        at = b_.select(leaves, beside, at);
        Value* turn = integer(offset < 0 ? -power(axis) : power(axis));
        Value* digit = b_.select(leaves, turn, integer(0));
        direction = direction ? b_.add(direction, digit) : digit;
      }
      there.push_back(b_.convert(at, Type::i64));
    }
    direction = b_.convert(b_.add(direction, integer(own)), Type::i64);
    Value* at = entry(cell, direction);
    Value* slot = b_.load(parts_.neighbours(field_), 0, Type::u32, {&at, 1});
    Value* size = b_.integer(Type::i64, int64_t(reads_.leaf.children));
    Value* first = b_.mul(b_.convert(slot, Type::i64), size);
    Value* number = b_.add(first, reads_.child_at(there));
    const Part part = read.inst->part;
    const uint32_t elements = parts_.elements(part.binding);
    read.inst->result()->replace_with(
        b_.load(elements, part.component, read.inst->elem, {&number, 1}));
    read.inst->erase();
  }
}

}  // namespace quern::ir
