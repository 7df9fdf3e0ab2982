#include "ir/passes/trees/tree_loop.h"

#include <algorithm>
#include <array>

#include "ir/passes/atomics/counted.h"
#include "ir/passes/checks/guarded_access.h"
#include "ir/passes/trees/descent.h"
#include "ir/passes/trees/leaf_halo.h"
#include "quern/ir/abi.h"

namespace quern::ir {

namespace {
constexpr uint32_t largest_cell = 4096;
constexpr int64_t word_bits = 32;
/// Of memory: a line, how many of a cell are named ahead, and about how many are on the way at a time,
/// which a second cache has room for.
constexpr int64_t line_bytes = 64, most_lines = 160, lines_ahead = 1024;
constexpr int64_t most_cells_ahead = 16;
}  // namespace

// ---- what both have

void TreeLoop::load_cell(Value* cell) {
  slot_ = b_.load(parts_.list(field_), 0, Type::u32, {&cell, 1});
  Value* size = b_.integer(Type::i64, leaf_.children);
  first_ = b_.mul(b_.convert(slot_, Type::i64), size);
  const uint32_t rank = kernel_.bindings[field_].rank;
  places_.clear();
  const Placement layout = kernel_.bindings[field_].layout;
  const Type type = tree::place_type(layout);
  for (uint32_t axis = 0; axis < rank; axis++) {
    Value* place = b_.load(parts_.places(field_), axis, type, {&cell, 1});
    if (layout.is_of_cells())
      place = b_.convert(divide(b_, b_.convert(place, Type::u64), layout.cell[axis]).first, type);
    places_.push_back(place);
  }
}

/// The body's arguments become the indices of the element at these positions. Comes back: whether
/// it is active and among the field's indices; null: it is.
Value* TreeLoop::take_indices(Region* old, std::span<Value* const> positions, Value* active) {
  const Binding binding = kernel_.bindings[field_];
  for (uint32_t axis = 0; axis < binding.rank; axis++) {
    const Type type = old->arg(axis)->type;
    Value* index = b_.convert(positions[axis], type);
    if (binding.layout.shifted) index = b_.sub(index, b_.origin(field_, axis, type));
    if (binding.layout.cut) {
      Value* from_first = b_.convert(index, Type::i64);
      if (!binding.zero_based) from_first = b_.sub(from_first, b_.first(field_, axis, Type::i64));
      Value* inside = in_range(b_, from_first, b_.extent(field_, axis, Type::i64));
      active = active ? b_.binary(Op::bit_and, active, inside) : inside;
    }
    own_.indices.push_back(index);
    old->arg(axis)->replace_with(index);
  }
  return active;
}

/// Puts the old body at the builder's point, and ends the region.
void TreeLoop::run_where(Value* active, Region* old) {
  if (!active) {
    splice(b_, old);
    b_.yield();
    return;
  }
  Inst* branch = b_.if_(active);
  b_.yield();
  b_.at_end(branch->region(0));
  splice(b_, old);
  b_.yield();
  b_.at_end(branch->region(1)).yield();
}

// ---- element by element

Region* TreeLoop::of_elements(Region* old, bool racing) {
  if (!racing) neighbours_.emplace(kernel_, parts_, b_, field_, old);
  Region* region = b_.make_region({Type::i32, Type::i32});
  const Loc loc = b_.loc();
  b_.at_end(region).at(loc);
  Value *cell = b_.convert(region->arg(0), Type::i64), *child = region->arg(1);
  load_cell(cell);
  own_.field = field_;
  Descent descent(kernel_, parts_, field_, b_);
  own_.element = descent.child(slot_, child);
  Value* active = descent.is_listed(own_.element);
  std::vector<Value*> along, positions;
  for (uint32_t axis = 0; axis < places_.size(); axis++) {
    along.push_back(offset_of(child, axis));
    positions.push_back(b_.add(places_[axis], b_.convert(along[axis], places_[axis]->type)));
  }
  run_where(take_indices(old, positions, active), old);
  if (neighbours_) neighbours_->replace(cell, along);
  return region;
}

Region* TreeLoop::before_elements() {
  if (!neighbours_ || !neighbours_->is_needed()) return nullptr;
  Region* region = b_.make_region({Type::i32});
  b_.at_end(region);
  Value* cell = b_.convert(region->arg(0), Type::i64);
  load_cell(cell);
  neighbours_->fill(cell, slot_, places_);
  b_.yield();
  return region;
}

/// How far along the axis a child lies from the first one of its cell.
Value* TreeLoop::offset_of(Value* child, uint32_t axis) {
  Value* total = b_.integer(Type::i32, 0);
  int64_t size = 1;
  for (size_t k = leaf_.levels.size(); k-- > 0;) {
    const Placement::Level& level = leaf_.levels[k];
    if (level.extent[axis] == 1) continue;
    Value* above = divide(b_, b_.convert(child, Type::u32), level.stride[axis]).first;
    Value* digit = divide(b_, above, level.extent[axis]).second;
    Value* steps = b_.convert(digit, Type::i32);
    total = b_.add(total, b_.mul(steps, b_.integer(Type::i32, size)));
    size *= level.extent[axis];
  }
  return total;
}

// ---- cell by cell

bool TreeLoop::can_take_cells(const Task& task) const {
  const bool ordered = task.options.deterministic || kernel_.modes.strict;
  if (ordered && !task.reductions.empty() && abi::chunk_iterations % leaf_.children != 0)
    return false;
  const bool has_cells = kernel_.bindings[field_].layout.pools.size() > 1 && !leaf_.has_lists();
  return has_cells && leaf_.children <= largest_cell;
}

/// From the outside inwards; of whole words of bits, where the innermost loop would be longer than one.
std::vector<TreeLoop::Rounds> TreeLoop::rounds() const {
  std::vector<Rounds> all;
  for (uint32_t axis = 0; axis < kernel_.bindings[field_].rank; axis++) {
    int64_t step = 1;
    for (size_t k = leaf_.levels.size(); k-- > 0;) {
      const int64_t count = leaf_.levels[k].extent[axis];
      if (count > 1) all.push_back({axis, count, leaf_.levels[k].stride[axis], step});
      step *= count;
    }
  }
  std::ranges::sort(all, std::ranges::greater(), &Rounds::stride);
  if (all.empty()) all.push_back({});
  Rounds& last = all.back();
  if (leaf_.has_mask() && leaf_.unit == 1 && last.count > word_bits &&
      last.count % word_bits == 0) {
    const Rounds words = {last.axis, last.count / word_bits, word_bits, word_bits};
    last.count = word_bits;
    all.insert(all.end() - 1, words);
  }
  return all;
}

/// The loops over a cell's children.
class TreeLoop::Nest {
 public:
  Nest(TreeLoop& loop, LeafHalo& halo, Region* old)
      : loop_(loop), b_(loop.b_), halo_(halo), old_(old), rounds_(loop.rounds()) {}

  void make(size_t depth = 0) {
    if (depth + 1 == rounds_.size()) return walk();
    counted(b_, rounds_[depth].count, [&](Value* k) {
      enter(rounds_[depth], k);
      if (depth == 0) loop_.round_ = {b_.region()->last, child_, rounds_[0].stride};
      make(depth + 1);
    });
  }

 private:
  Value* integer(int64_t v) { return b_.integer(Type::i64, v); }
  Value* sum(Value* a, Value* b) { return a ? b_.add(a, b) : b; }

  void enter(const Rounds& rounds, Value* k) {
    child_ = sum(child_, b_.mul(k, integer(rounds.stride)));
    Value*& along = along_[rounds.axis];
    along = sum(along, b_.mul(k, integer(rounds.step)));
  }

  void walk() {
    const Rounds& last = rounds_.back();
    Value* first = sum(child_, loop_.first_);
    const Activity activity = activity_from(first, last.count);
    if (!activity.shared) return inner(last, first, activity);
    Inst* branch = b_.if_(activity.shared);
    Region* around = b_.region();
    Inst* point = b_.point();
    b_.at_end(branch->region(0));
    inner(last, first, activity);
    b_.yield();
    b_.at_end(branch->region(1)).yield();
    point ? b_.before(point) : b_.at_end(around);
  }

  /// Of the rounds of the innermost loop: one answer for all, or a word of bits, u32 or u64, that of
  /// the first round lowest. Neither: each asks for itself.
  struct Activity {
    Value *shared = nullptr, *word = nullptr;
  };

  Activity activity_from(Value* first, int64_t count) {
    const Placement::Pool& leaf = loop_.leaf_;
    if (!leaf.has_mask()) return {};
    if (leaf.unit % count == 0)
      return {Descent(loop_.kernel_, loop_.parts_, loop_.field_, b_).is_listed({first}), nullptr};
    if (leaf.unit > 1 || count > word_bits) return {};
    const uint32_t listed = loop_.parts_.listed(loop_.field_);
    const auto word_of = [&](Value* element) {
      auto [at, bit] = divide(b_, b_.convert(element, Type::u64), word_bits);
      at = b_.convert(at, Type::i64);
      return std::pair(b_.load(listed, 0, Type::u32, {&at, 1}), bit);
    };
    auto [low, bit] = word_of(first);
    if (word_bits % count == 0 && leaf.children % count == 0)
      return {nullptr, b_.binary(Op::shr, low, b_.convert(bit, Type::u32))};
    Value* high = word_of(b_.add(first, integer(count - 1))).first;
    Value* width = b_.integer(Type::u64, word_bits);
    high = b_.binary(Op::shl, b_.convert(high, Type::u64), width);
    Value* both = b_.binary(Op::bit_or, high, b_.convert(low, Type::u64));
    return {nullptr, b_.binary(Op::shr, both, bit)};
  }

  void inner(const Rounds& last, Value* first, const Activity& activity) {
    Inst* loop = b_.loop(integer(0), integer(last.count), integer(1));
    loop->kind = parallel_walk;
    Region* around = b_.region();
    Inst* point = b_.point();
    b_.at_end(loop->region(0));
    Value* k = loop->region(0)->arg(0);
    enter(last, k);
    loop_.rounds_body_ = loop->region(0);
    loop_.child_ = child_;
    loop_.own_.element = {b_.add(first, k)};
    Value* active = nullptr;
    if (activity.word) {
      const Type type = activity.word->type;
      Value* bit = b_.binary(Op::shr, activity.word, b_.convert(k, type));
      bit = b_.binary(Op::bit_and, bit, b_.integer(type, 1));
      active = b_.binary(Op::ne, bit, b_.integer(type, 0));
    } else if (!activity.shared) {
      Descent descent(loop_.kernel_, loop_.parts_, loop_.field_, b_);
      active = descent.is_listed(loop_.own_.element);
    }
    std::vector<Value*> positions;
    for (uint32_t axis = 0; axis < loop_.places_.size(); axis++) {
      Value* place = loop_.places_[axis];
      positions.push_back(along_[axis] ? b_.add(place, b_.convert(along_[axis], place->type))
                                       : place);
    }
    active = loop_.take_indices(old_, positions, active);
    loop_.run_where(active, old_);
    halo_.replace(std::span(along_).first(loop_.places_.size()));
    b_.at_end(around);
    if (point) b_.before(point);
  }

  TreeLoop& loop_;
  Builder& b_;
  LeafHalo& halo_;
  Region* const old_;
  const std::vector<Rounds> rounds_;
  Value* child_ = nullptr;  ///< the number of the child that the body is at, i64
  std::array<Value*, Placement::max_axes> along_ = {};  ///< from the cell's first element, i64
};

/// `begin` and `end` of the task's body, in elements.
void TreeLoop::count_elements(Task& task, const Inst* loop) {
  std::vector<Inst*> found;
  walk(task.body, [&](Inst* inst) {
    const bool counts = inst->is(Op::builtin) &&
                        (inst->builtin() == Builtin::begin || inst->builtin() == Builtin::end);
    if (counts && !encloses(loop->region(0), inst->parent)) found.push_back(inst);
  });
  for (Inst* inst : found) {
    b_.after(inst);
    Value* cells = b_.builtin(inst->builtin());
    Value* elements = b_.mul(cells, b_.integer(cells->type, leaf_.children));
    inst->result()->replace_with(elements);
    inst->erase();
  }
  if (task.grain != 0) task.grain /= leaf_.children;
  task.options.block = uint16_t((task.options.block + leaf_.children - 1) / leaf_.children);
}

/// Parts of fields on the tree that the loop reads or writes at its own indices.
std::set<TreeLoop::OwnPart> TreeLoop::own_parts(Region* old) const {
  std::set<OwnPart> parts;
  const Binding& loop = kernel_.bindings[field_];
  walk(old, [&](const Inst* inst) {
    if (!inst->is(Op::load) && !inst->is(Op::store)) return;
    const Binding& binding = kernel_.bindings[inst->binding()];
    bool is_own = share_elements(binding, loop);
    for (uint32_t axis = 0; axis < loop.rank && is_own; axis++)
      is_own = inst->operand(axis) == old->arg(axis);
    if (is_own) parts.insert({inst->part, inst->elem});
  });
  return parts;
}

/// What the loop touches of a cell, one number a line: elements from one to the next, and all of them.
struct TreeLoop::Lines {
  OwnPart of;
  int64_t step = 1, count = 0;
};

std::vector<TreeLoop::Lines> TreeLoop::touched_lines() const {
  std::vector<Lines> all;
  int64_t left = most_lines;
  for (const OwnPart& touched : touched_) {
    const auto& [part, elem] = touched;
    if (elem == Type::b1 || elem == Type::f16) continue;  // they have no atomics
    const Placement& layout = kernel_.bindings[part.binding].layout;
    const int64_t bytes = layout.step ? layout.step : int64_t(byte_size(elem));
    const int64_t step = std::max<int64_t>(1, line_bytes / bytes);
    const int64_t count = (int64_t(leaf_.children) + step - 1) / step;
    if (count > left) break;
    left -= count;
    all.push_back({touched, step, count});
  }
  return all;
}

/// Names the lines of memory that a later cell's elements lie in, while this one's are at hand: cells
/// lie anywhere, and no processor guesses where. An atomic load of which nothing is used is a hint to
/// CPUs (backends/llvm/memory.cpp). Each round of the outermost loop names those of its own children:
/// all at once are more than a processor fetches at a time, and what follows would wait for them.
void TreeLoop::look_ahead() {
  if (!filled_) return;
  const std::vector<Lines> lines = touched_lines();
  int64_t count = 0;
  for (const Lines& each : lines) count += each.count;
  if (count == 0) return;
  const int64_t ahead = std::clamp<int64_t>(lines_ahead / count, 1, most_cells_ahead);
  Value* cell = filled_->parent->arg(0);
  Value* cells = filled_->parent->parent->operand(1);
  b_.after(filled_).at(filled_->loc);
  Value* later = b_.add(cell, b_.integer(Type::i32, ahead));
  later = b_.convert(b_.select(b_.lt(later, cells), later, cell), Type::i64);
  Value* slot = b_.load(parts_.list(field_), 0, Type::u32, {&later, 1});
  Value* size = b_.integer(Type::i64, leaf_.children);
  Value* first = b_.mul(b_.convert(slot, Type::i64), size);
  for (const Lines& each : lines) {
    const Part part = each.of.first;
    const Type elem = each.of.second;
    const bool by_rounds = round_.start && round_.children % each.step == 0;
    b_.after(by_rounds ? round_.start : first->inst);
    Value* from = by_rounds ? b_.add(first, round_.first) : first;
    const uint32_t elements = parts_.elements(part.binding);
    counted(b_, by_rounds ? round_.children / each.step : each.count, [&](Value* k) {
      Value* number = b_.add(from, b_.mul(k, b_.integer(Type::i64, each.step)));
      b_.atomic(AtomicOp::load, elements, part.component, elem, {&number, 1}, {});
    });
  }
}

/// Of the element that the rounds of a cell are at, among those of all cells.
Value* TreeLoop::element_number() {
  Value* size = b_.integer(Type::i64, leaf_.children);
  Value* before = b_.mul(b_.builtin(Builtin::iteration), size);
  return child_ ? b_.add(before, child_) : before;
}

void TreeLoop::number_checks() {
  if (!rounds_body_) return;
  std::vector<Inst*> checks;
  walk(rounds_body_, [&](Inst* inst) {
    if (inst->is(Op::check)) checks.push_back(inst);
  });
  for (Inst* inst : checks) {
    b_.before(inst).at(inst->loc);
    std::vector<Value*> operands;
    for (const Use& use : inst->operands) operands.push_back(use.value);
    operands.push_back(element_number());
    b_.set_operands(inst, operands);
  }
}

/// Of an element's own, which lower_random would count through the cell.
void TreeLoop::count_calls(Region* old, const std::vector<Inst*>& calls) {
  if (calls.empty()) return;
  const Loc loc = b_.loc();
  Value* made = b_.before(old->first).slot(calls[0]->type());
  for (Inst* inst : calls) {
    b_.before(inst).at(inst->loc);
    Value* number = b_.get(made);
    b_.put(made, b_.add(number, b_.integer(number->type, 1)));
    inst->result()->replace_with(number);
    inst->erase();
  }
  b_.at(loc);
}

Region* TreeLoop::of_cells(Region* old, Task& task, Inst* loop, bool racing) {
  const Loc loc = b_.loc();
  std::vector<Inst*> numbers, calls;
  walk(old, [&](Inst* inst) {
    if (inst->is(Op::builtin) && inst->builtin() == Builtin::iteration) numbers.push_back(inst);
    if (inst->is(Op::call_number)) calls.push_back(inst);
  });
  count_calls(old, calls);
  LeafHalo halo(kernel_, parts_, b_, field_, old, racing);
  touched_ = own_parts(old);
  for (const auto& [part, elem] : halo.parts()) touched_.insert({part, elem});
  count_elements(task, loop);
  b_.before(loop).at(loc);
  halo.declare();
  Region* region = b_.make_region({Type::i32});
  b_.at_end(region).at(loc);
  load_cell(b_.convert(region->arg(0), Type::i64));
  halo.fill(slot_, places_);
  filled_ = region->last;
  own_.field = field_;
  Nest nest(*this, halo, old);
  nest.make();
  b_.yield();
  for (Inst* inst : numbers) {
    b_.before(inst);
    inst->result()->replace_with(element_number());
    inst->erase();
  }
  return region;
}

}  // namespace quern::ir
