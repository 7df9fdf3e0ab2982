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
    : kernel_(kernel), parts_(parts), b_(b), racing_(racing), reads_(kernel, parts, b, field) {
  collect(body);
}

// ---- which reads

void LeafHalo::collect(const Region* body) {
  std::map<Part, Array> found;
  for (const Read& read : reads_.around(body)) {
    Array& array = found[read.inst->part];
    array.part = read.inst->part;
    array.elem = read.inst->elem;
    add(array, read);
  }
  std::vector<Array> possible;
  for (auto& [part, array] : found)
    if (measure(array) && !is_written(body, part)) possible.push_back(std::move(array));
  choose(std::move(possible));
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
  for (uint32_t axis = 0; axis < reads_.rank; axis++) {
    array.before[axis] = std::max(array.before[axis], -read.offset[axis]);
    array.behind[axis] = std::max(array.behind[axis], read.offset[axis]);
  }
  array.cells.merge(reads_.cells_of(read.offset));
}

bool LeafHalo::measure(Array& array) const {
  array.size = 1;
  for (uint32_t axis = reads_.rank; axis-- > 0;) {
    array.stride[axis] = int64_t(array.size);
    array.size *= uint64_t(array.before[axis] + reads_.extent[axis] + array.behind[axis]);
  }
  return array.size <= most_around * reads_.leaf.children;
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
      if (!found) found = reads_.slot_of(cell, places, racing_);
    }
  Value* size = b_.integer(Type::i64, reads_.leaf.children);
  for (const Array& array : arrays_)
    for (const Direction& cell : array.cells)
      copy(array, cell, b_.mul(b_.convert(slots[cell], Type::i64), size));
}

/// What the array has of the cell, whose elements begin at number `first`.
void LeafHalo::copy(const Array& array, const Direction& cell, Value* first) {
  std::vector<Value*> from;
  copy_row(array, cell, first, 0, from, nullptr);
}

void LeafHalo::copy_row(const Array& array, const Direction& cell, Value* first, uint32_t axis,
                        std::vector<Value*>& from, Value* to) {
  if (axis == reads_.rank) {
    Value* number = b_.add(first, reads_.child_at(from));
    Value* v = b_.load(parts_.elements(array.part.binding), array.part.component, array.elem,
                       {&number, 1});
    b_.put(array.slot, to, v);
    return;
  }
  const auto integer = [&](int64_t v) { return b_.integer(Type::i64, v); };
  const int64_t extent = reads_.extent[axis], before = array.before[axis];
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
  if (axis + 1 == reads_.rank && reads_.leaf.levels.back().stride[axis] == 1)
    loop->kind = parallel_walk;
  fill_loop(b_, loop, next);
}

void LeafHalo::replace(std::span<Value* const> along) {
  for (const Array& array : arrays_)
    for (const Read& read : array.reads) {
      b_.before(read.inst).at(read.inst->loc);
      Value* at = nullptr;
      int64_t constant = 0;
      for (uint32_t axis = 0; axis < reads_.rank; axis++) {
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
