#include "ir/passes/trees/leaf_reads.h"

#include "quern/ir/trees.h"

namespace quern::ir {

LeafReads::LeafReads(Kernel& kernel, TreeParts& parts, Builder& b, uint32_t field)
    : rank(kernel.bindings[field].rank),
      leaf(kernel.bindings[field].layout.pools.back()),
      kernel_(kernel),
      parts_(parts),
      b_(b),
      field_(field) {
  extent.fill(1);
  whole_.fill(1);
  for (const Placement::Pool& pool : kernel.bindings[field].layout.pools)
    for (const Placement::Level& level : pool.levels)
      for (uint32_t axis = 0; axis < rank; axis++) whole_[axis] *= level.extent[axis];
  for (const Placement::Level& level : leaf.levels)
    for (uint32_t axis = 0; axis < rank; axis++) extent[axis] *= level.extent[axis];
  is_endless_ = kernel.bindings[field].layout.pools[0].is_hashed();
}

std::vector<LeafReads::Read> LeafReads::around(const Region* body) const {
  AffineForms forms(AffineForms::through_conversions);
  const Binding& loop = kernel_.bindings[field_];
  std::vector<Read> found;
  walk(const_cast<Region*>(body), [&](Inst* inst) {
    if (!inst->is(Op::load) || inst->site != no_site) return;
    const Binding& binding = kernel_.bindings[inst->binding()];
    if (!share_elements(binding, loop)) return;
    if (inst->binding() != field_ && (binding.layout.rebased || loop.layout.rebased)) return;
    Read read{inst};
    if (offset_of(forms, inst, body, read.offset)) found.push_back(read);
  });
  return found;
}

/// Reads at the own index alone need no array.
bool LeafReads::offset_of(AffineForms& forms, const Inst* load, const Region* body,
                          Along& offset) const {
  bool is_own = true;
  for (uint32_t axis = 0; axis < rank; axis++) {
    const Affine& form = forms.of(load->operand(axis));
    if (form.base() != &body->args[axis]) return false;
    offset[axis] = form.constant;
    if (std::abs(form.constant) > extent[axis]) return false;
    is_own &= form.constant == 0;
  }
  return !is_own;
}

std::set<LeafReads::Direction> LeafReads::cells_of(const Along& offset) const {
  std::vector<Direction> cells = {{}};
  for (uint32_t axis = 0; axis < rank; axis++) {
    if (offset[axis] == 0) continue;
    const bool stays = std::abs(offset[axis]) < extent[axis];
    for (size_t k = cells.size(); k-- > 0;) {
      if (stays) cells.push_back(cells[k]);
      cells[k][axis] = offset[axis] < 0 ? -1 : 1;
    }
  }
  return {cells.begin(), cells.end()};
}

Value* LeafReads::slot_of(const Direction& cell, std::span<Value* const> places,
                          bool racing) const {
  Value* inside = nullptr;
  std::vector<Value*> positions(places.begin(), places.end());
  for (uint32_t axis = 0; axis < rank; axis++) {
    if (cell[axis] == 0) continue;
    const Type type = places[axis]->type;
    const int64_t distance = cell[axis] * extent[axis];
    Value* there = b_.add(places[axis], b_.integer(type, distance));
    positions[axis] = there;
    if (cell[axis] > 0 && is_endless_) continue;  // nothing is behind the end, and nothing found
    Value* bound = b_.integer(type, cell[axis] < 0 ? extent[axis] : whole_[axis] - distance);
    Value* is_there = b_.binary(cell[axis] < 0 ? Op::ge : Op::lt, places[axis], bound);
    positions[axis] = b_.select(is_there, there, places[axis]);
    inside = inside ? b_.binary(Op::bit_and, inside, is_there) : is_there;
  }
  Descent descent(kernel_, parts_, field_, b_);
  Value* found = descent.cell(descent.path_at(positions), racing);
  return inside ? b_.select(inside, found, b_.integer(Type::u32, tree::no_cell)) : found;
}

Value* LeafReads::child_at(std::span<Value* const> along) const {
  Value* total = nullptr;
  for (uint32_t axis = 0; axis < rank; axis++) {
    if (extent[axis] == 1) continue;
    int64_t left = extent[axis];
    Value* rest = along[axis];
    for (size_t k = leaf.levels.size(); k-- > 0;) {
      const Placement::Level& level = leaf.levels[k];
      if (level.extent[axis] == 1) continue;
      left /= level.extent[axis];
      Value* digit = rest;
      if (left > 1) {
        std::tie(rest, digit) = divide(b_, b_.convert(rest, Type::u64), level.extent[axis]);
        digit = b_.convert(digit, Type::i64);
      }
      Value* stride = b_.integer(Type::i64, level.stride[axis]);
      Value* part = b_.mul(b_.convert(digit, Type::i64), stride);
      total = total ? b_.add(total, part) : part;
    }
  }
  return total ? total : b_.integer(Type::i64, 0);
}

}  // namespace quern::ir
