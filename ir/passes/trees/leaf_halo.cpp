#include "ir/passes/trees/leaf_halo.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "ir/analysis/effects.h"
#include "ir/passes/atomics/counted.h"
#include "quern/ir/trees.h"

namespace quern::ir {

namespace {
/// Of an array, for each element of a cell; of all arrays together, so that they stay in a first cache
/// or close to it; cells that are looked for besides the own one.
constexpr uint64_t most_around = 8, most_bytes = 128 << 10, most_cells = 27;
}  // namespace

LeafHalo::LeafHalo(Kernel& kernel, TreeParts& parts, Builder& b, uint32_t field, const Region* body,
                   bool racing)
    : kernel_(kernel),
      parts_(parts),
      b_(b),
      field_(field),
      racing_(racing),
      rank_(kernel.bindings[field].rank),
      leaf_(kernel.bindings[field].layout.pools.back()) {
  extent_.fill(1);
  whole_.fill(1);
  for (const Placement::Pool& pool : kernel.bindings[field].layout.pools)
    for (const Placement::Level& level : pool.levels)
      for (uint32_t axis = 0; axis < rank_; axis++) whole_[axis] *= level.extent[axis];
  for (const Placement::Level& level : leaf_.levels)
    for (uint32_t axis = 0; axis < rank_; axis++) extent_[axis] *= level.extent[axis];
  is_endless_ = kernel.bindings[field].layout.pools[0].is_hashed();
  collect(body);
}

// ---- which reads

void LeafHalo::collect(const Region* body) {
  AffineForms forms(AffineForms::through_conversions);
  const Binding& loop = kernel_.bindings[field_];
  std::map<Part, Array> found;
  walk(const_cast<Region*>(body), [&](Inst* inst) {
    if (!inst->is(Op::load) || inst->site != no_site) return;
    const Binding& binding = kernel_.bindings[inst->binding()];
    if (!share_elements(binding, loop)) return;
    if (inst->binding() != field_ && (binding.layout.shifted || loop.layout.shifted)) return;
    Read read{inst};
    if (!offset_of(forms, inst, body, read.offset)) return;
    Array& array = found[inst->part];
    array.part = inst->part;
    array.elem = inst->elem;
    add(array, read);
  });
  std::vector<Array> possible;
  for (auto& [part, array] : found)
    if (measure(array) && !is_written(body, part)) possible.push_back(std::move(array));
  choose(std::move(possible));
}

/// Reads at the own index alone need no array.
bool LeafHalo::offset_of(AffineForms& forms, const Inst* load, const Region* body,
                         Along& offset) const {
  bool is_own = true;
  for (uint32_t axis = 0; axis < rank_; axis++) {
    const Affine& form = forms.of(load->operand(axis));
    if (form.base() != &body->args[axis]) return false;
    offset[axis] = form.constant;
    if (std::abs(form.constant) > extent_[axis]) return false;
    is_own &= form.constant == 0;
  }
  return !is_own;
}

bool LeafHalo::is_written(const Region* body, Part part) const {
  const Effects effects(kernel_);
  bool found = false;
  walk(const_cast<Region*>(body), [&](Inst* inst) {
    found |= inst->is(Op::call);
    if (!inst->is(Op::store) && !(inst->is(Op::atomic) && inst->atomic() != AtomicOp::load)) return;
    const bool is_other = inst->binding() == part.binding && inst->component() != part.component;
    found |= !is_other && effects.may_overlap(inst->binding(), part.binding);
  });
  return found;
}

void LeafHalo::add(Array& array, const Read& read) const {
  array.reads.push_back(read);
  std::vector<Direction> cells = {{}};
  for (uint32_t axis = 0; axis < rank_; axis++) {
    const int64_t offset = read.offset[axis];
    if (offset == 0) continue;
    array.before[axis] = std::max(array.before[axis], -offset);
    array.behind[axis] = std::max(array.behind[axis], offset);
    const bool stays = std::abs(offset) < extent_[axis];
    for (size_t k = cells.size(); k-- > 0;) {
      if (stays) cells.push_back(cells[k]);
      cells[k][axis] = offset < 0 ? -1 : 1;
    }
  }
  array.cells.insert(cells.begin(), cells.end());
}

bool LeafHalo::measure(Array& array) const {
  array.size = 1;
  for (uint32_t axis = rank_; axis-- > 0;) {
    array.stride[axis] = int64_t(array.size);
    array.size *= uint64_t(array.before[axis] + extent_[axis] + array.behind[axis]);
  }
  return array.size <= most_around * leaf_.children;
}

void LeafHalo::choose(std::vector<Array> found) {
  uint64_t bytes = 0;
  std::set<Direction> cells;
  for (Array& array : found) {
    std::set<Direction> all = cells;
    all.insert(array.cells.begin(), array.cells.end());
    const uint64_t own = array.size * byte_size(array.elem);
    if (bytes + own > most_bytes || all.size() > most_cells) continue;
    bytes += own;
    cells = std::move(all);
    arrays_.push_back(std::move(array));
  }
}

std::vector<std::pair<Part, Type>> LeafHalo::parts() const {
  std::vector<std::pair<Part, Type>> all;
  for (const Array& array : arrays_) all.emplace_back(array.part, array.elem);
  return all;
}

// ---- code

void LeafHalo::declare() {
  for (Array& array : arrays_) array.slot = b_.slot(array.elem, array.size);
}

void LeafHalo::fill(Value* slot, std::span<Value* const> places) {
  std::map<Direction, Value*> slots = {{Direction{}, slot}};
  for (const Array& array : arrays_)
    for (const Direction& cell : array.cells) {
      Value*& found = slots[cell];
      if (!found) found = slot_of(cell, places);
    }
  Value* size = b_.integer(Type::i64, leaf_.children);
  for (const Array& array : arrays_)
    for (const Direction& cell : array.cells)
      copy(array, cell, b_.mul(b_.convert(slots[cell], Type::i64), size));
}

/// The cell that lies there; that of the background where there is none, as outside of the tree.
Value* LeafHalo::slot_of(const Direction& cell, std::span<Value* const> places) {
  Value* inside = nullptr;
  std::vector<Value*> positions(places.begin(), places.end());
  for (uint32_t axis = 0; axis < rank_; axis++) {
    if (cell[axis] == 0) continue;
    const Type type = places[axis]->type;
    const int64_t distance = cell[axis] * extent_[axis];
    Value* there = b_.add(places[axis], b_.integer(type, distance));
    positions[axis] = there;
    if (cell[axis] > 0 && is_endless_) continue;  // nothing is behind the end, and nothing found
    Value* bound = b_.integer(type, cell[axis] < 0 ? extent_[axis] : whole_[axis] - distance);
    Value* is_there = b_.binary(cell[axis] < 0 ? Op::ge : Op::lt, places[axis], bound);
    positions[axis] = b_.select(is_there, there, places[axis]);
    inside = inside ? b_.binary(Op::bit_and, inside, is_there) : is_there;
  }
  Descent descent(kernel_, parts_, field_, b_);
  Value* found = descent.cell(descent.path_at(positions), racing_);
  return inside ? b_.select(inside, found, b_.integer(Type::u32, tree::no_cell)) : found;
}

/// What the array has of the cell, whose elements begin at number `first`.
void LeafHalo::copy(const Array& array, const Direction& cell, Value* first) {
  std::vector<Value*> from;
  copy_row(array, cell, first, 0, from, nullptr);
}

void LeafHalo::copy_row(const Array& array, const Direction& cell, Value* first, uint32_t axis,
                        std::vector<Value*>& from, Value* to) {
  if (axis == rank_) {
    Value* number = b_.add(first, child_at(from));
    Value* v = b_.load(parts_.elements(array.part.binding), array.part.component, array.elem,
                       {&number, 1});
    b_.put(array.slot, to, v);
    return;
  }
  const auto integer = [&](int64_t v) { return b_.integer(Type::i64, v); };
  const int64_t extent = extent_[axis], before = array.before[axis];
  const int64_t begin = cell[axis] < 0 ? extent - before : 0;
  const int64_t count = cell[axis] == 0 ? extent : cell[axis] < 0 ? before : array.behind[axis];
  const int64_t start = cell[axis] == 0 ? before : cell[axis] < 0 ? 0 : before + extent;
  const auto next = [&](Value* k) {
    from.push_back(k ? b_.add(k, integer(begin)) : integer(begin));
    Value* at = k ? b_.add(k, integer(start)) : integer(start);
    at = b_.mul(at, integer(array.stride[axis]));
    copy_row(array, cell, first, axis + 1, from, to ? b_.add(to, at) : at);
    from.pop_back();
  };
  if (count == 1) return next(nullptr);
  Inst* loop = b_.loop(integer(0), integer(count), integer(1));
  // Neighbours in the cell are neighbours in the array.
  if (axis + 1 == rank_ && leaf_.levels.back().stride[axis] == 1) loop->kind = parallel_walk;
  fill_loop(b_, loop, next);
}

/// The number, in a cell, of the child that lies so far along each axis.
Value* LeafHalo::child_at(std::span<Value* const> from) {
  Value* total = nullptr;
  for (uint32_t axis = 0; axis < rank_; axis++) {
    if (extent_[axis] == 1) continue;
    int64_t left = extent_[axis];
    Value* rest = from[axis];
    for (size_t k = leaf_.levels.size(); k-- > 0;) {
      const Placement::Level& level = leaf_.levels[k];
      if (level.extent[axis] == 1) continue;
      left /= level.extent[axis];
      Value* digit = rest;
      if (left > 1) {
        std::tie(rest, digit) = divide(b_, b_.convert(rest, Type::u64), level.extent[axis]);
        digit = b_.convert(digit, Type::i64);
      }
      Value* part = b_.mul(b_.convert(digit, Type::i64), b_.integer(Type::i64, level.stride[axis]));
      total = total ? b_.add(total, part) : part;
    }
  }
  return total ? total : b_.integer(Type::i64, 0);
}

void LeafHalo::replace(std::span<Value* const> along) {
  for (const Array& array : arrays_)
    for (const Read& read : array.reads) {
      b_.before(read.inst).at(read.inst->loc);
      Value* at = nullptr;
      int64_t constant = 0;
      for (uint32_t axis = 0; axis < rank_; axis++) {
        const int64_t stride = array.stride[axis];
        constant += (array.before[axis] + read.offset[axis]) * stride;
        if (!along[axis]) continue;
        Value* part = b_.mul(along[axis], b_.integer(Type::i64, stride));
        at = at ? b_.add(at, part) : part;
      }
      Value* shift = b_.integer(Type::i64, constant);
      read.inst->result()->replace_with(b_.get(array.slot, at ? b_.add(at, shift) : shift));
      read.inst->erase();
    }
}

}  // namespace quern::ir
