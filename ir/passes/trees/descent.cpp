#include "ir/passes/trees/descent.h"

#include <algorithm>

namespace quern::ir {

// ---- numbers

Value* Descent::position(uint32_t axis, Value* index) {
  const Placement& layout = kernel_.bindings[field_].layout;
  if (layout.wide) index = b_.convert(index, Type::i64);
  return layout.shifted ? b_.add(index, b_.origin(field_, axis, index->type)) : index;
}

std::vector<Value*> Descent::positions(std::span<Value* const> indices) {
  std::vector<Value*> out;
  for (uint32_t axis = 0; axis < indices.size(); axis++)
    out.push_back(position(axis, indices[axis]));
  return out;
}

Value* Descent::digit(uint32_t axis, Value* index) {
  uint32_t extent = 1;
  for (const Placement::Level& level : pools_.back().levels) extent *= level.extent[axis];
  return divide(b_, unsigned_position(position(axis, index)), extent).second;
}

/// A position is never negative. Divisions of 32 bits are several times faster.
Value* Descent::unsigned_position(Value* position) {
  return b_.convert(position, bit_width(position->type) <= 32 ? Type::u32 : Type::u64);
}

Descent::Path Descent::path_at(std::span<Value* const> positions) {
  std::vector<Value*> sums(pools_.size(), nullptr), left;
  for (uint32_t axis = 0; axis < positions.size(); axis++) {
    Value* rest = unsigned_position(positions[axis]);
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
    left.push_back(rest);
  }
  for (Value*& sum : sums)
    if (!sum) sum = b_.integer(Type::i64, 0);
  Path out{{}, std::move(sums)};
  if (pools_[0].is_hashed()) out.key = entries_.key(left);
  return out;
}

/// Number of a child of the cell in `slot`; null: the root.
Value* Descent::below(Value* slot, size_t pool, Value* child) {
  if (!slot) return child;
  Value* size = b_.integer(Type::i64, pools_[pool].children);
  return b_.add(b_.mul(b_.convert(slot, Type::i64), size), child);
}

/// `root` yields the number of the root's child, `step` the slot of the cell of child `number` of a
/// pool.
template <class Root, class Step>
Descent::End Descent::descend(const Path& path, Root&& root, Step&& step) {
  End out;
  for (size_t p = 0; p < pools_.size(); p++) {
    out.element.number = p == 0 ? root() : below(out.slot, p, path.children[p]);
    if (p + 1 == pools_.size()) break;
    if (pools_.back().has_lists() && p + 2 == pools_.size())
      tell_list(out.element, out.element.number, path.children.back());
    out.slot = step(p, out.element);
  }
  return out;
}

/// `slots`: to which those of all its cells but the root are added.
Descent::End Descent::descend(const Path& path, bool racing, std::vector<Value*>* slots) {
  return descend(
      path,
      [&] { return pools_[0].is_hashed() ? entries_.find(path.key, racing) : path.children[0]; },
      [&](size_t p, const Element& e) {
        Value* slot = load(parts_.table(field_, p), e.number, racing);
        if (slots) slots->push_back(slot);
        return slot;
      });
}

/// Of a child of the cell that is child `chunk` of the last pool but one.
void Descent::tell_list(Element& element, Value* chunk, Value* child) {
  const auto [list, number] = divide(b_, b_.convert(chunk, Type::u64), pools_.back().chunks);
  element.list = b_.convert(list, Type::i64);
  Value* size = u32(pools_.back().children);
  Value* before = b_.mul(b_.convert(number, Type::u32), size);
  element.place = b_.add(before, b_.convert(child, Type::u32));
}

// ---- what is there

Descent::Element Descent::find(const Path& path, bool racing) {
  return descend(path, racing).element;
}

Value* Descent::is_active(const Path& path, bool racing) {
  return is_active(descend(path, racing), racing);
}

Value* Descent::is_active(const End& end, bool racing) {
  const auto& [element, slot] = end;
  Value* active = nullptr;
  if (pools_.back().has_lists()) active = is_short(parts_.mask(field_), element, racing);
  if (pools_.back().has_mask()) active = is_set(parts_.mask(field_), element.number, racing);
  if (!slot) return active ? active : b_.boolean(true);
  Value* exists = b_.binary(Op::ge, slot, u32(tree::first_slot));
  return active ? b_.binary(Op::bit_and, active, exists) : exists;
}

/// Of what is active or not as a whole, from the outside inwards: the cells that are children of each
/// pool, and the last one's units; along an axis, in elements. An extent of more than 2^30 is that of
/// what lies within.
std::vector<int64_t> Descent::extents(uint32_t axis) const {
  constexpr int64_t most = int64_t(1) << 30;
  const Placement::Pool& leaf = pools_.back();
  const uint32_t unit = leaf.has_lists() ? 1 : leaf.unit;
  int64_t size = 1;
  uint32_t elements = 1;
  for (size_t k = leaf.levels.size(); k-- > 0 && elements < unit;) {
    size *= leaf.levels[k].extent[axis];
    for (const uint32_t extent : leaf.levels[k].extent) elements *= extent;
  }
  std::vector<int64_t> out = {size};
  size = 1;
  for (size_t p = pools_.size(); p-- > 1;) {
    for (const Placement::Level& level : pools_[p].levels) size *= level.extent[axis];
    out.push_back(size <= most ? size : out.back());
    size = std::min(size, most + 1);
  }
  std::ranges::reverse(out);
  return out;
}

Descent::Box Descent::empty_box(std::span<Value* const> indices, bool racing) {
  const std::vector<Value*> places = positions(indices);
  std::vector<Value*> known;  // from the outside inwards: is it there?
  const End end = descend(path_at(places), racing, &known);
  for (Value*& slot : known) slot = b_.binary(Op::ge, slot, u32(tree::first_slot));
  Box box{is_active(end, racing), {}};
  known.push_back(box.active);
  const auto integer = [&](int64_t v) { return b_.integer(Type::i32, v); };
  for (uint32_t axis = 0; axis < places.size(); axis++) {
    const Type type = bit_width(places[axis]->type) <= 32 ? Type::u32 : Type::u64;
    Value* place = b_.convert(places[axis], type);
    const std::vector<int64_t> sizes = extents(axis);
    Value *before = integer(0), *last = integer(0);
    for (size_t k = known.size(); k-- > 0;) {
      Value* within = integer(0);
      if (sizes[k] > 1)
        within = b_.convert(divide(b_, place, uint32_t(sizes[k])).second, Type::i32);
      before = b_.select(known[k], before, within);
      last = b_.select(known[k], last, integer(sizes[k] - 1));
    }
    box.axes.push_back({before, b_.sub(last, before)});
  }
  return box;
}

Value* Descent::length(const Path& path, bool racing) {
  return load(parts_.mask(field_), descend(path, racing).element.list, racing);
}

Descent::Element Descent::child(Value* slot, Value* number) {
  Element out;
  out.number = below(slot, pools_.size() - 1, b_.convert(number, Type::i64));
  if (!pools_.back().has_lists()) return out;
  Value* at = b_.convert(slot, Type::i64);
  const uint32_t owners = parts_.owners(field_, pools_.size() - 1);
  tell_list(out, b_.load(owners, 0, Type::i64, {&at, 1}), number);
  return out;
}

Value* Descent::is_listed(const Element& element) {
  if (pools_.back().has_lists()) return is_short(parts_.listed(field_), element, false);
  return pools_.back().has_mask() ? is_set(parts_.listed(field_), element.number, false) : nullptr;
}

/// The word in which an element's bit stands, and the bit.
std::pair<Value*, Value*> Descent::bit(Value* element) {
  Value* at = b_.convert(element, Type::u64);
  if (pools_.back().unit > 1) at = divide(b_, at, pools_.back().unit).first;
  auto [word, rest] = divide(b_, at, 32);
  Value *place = b_.convert(word, Type::i64), *shift = b_.convert(rest, Type::u32);
  return {place, b_.binary(Op::shl, u32(1), shift)};
}

Value* Descent::is_set(uint32_t bits, Value* element, bool racing) {
  auto [at, own] = bit(element);
  Value* set = b_.binary(Op::bit_and, load(bits, at, racing), own);
  return b_.binary(Op::ne, set, u32(0));
}

/// Is the place one of its list's?
Value* Descent::is_short(uint32_t lengths, const Element& element, bool racing) {
  return b_.lt(element.place, load(lengths, element.list, racing));
}

// ---- what becomes active, and ends

Descent::End Descent::descend_claiming(const Path& path) {
  const auto root = [&] {
    return pools_[0].is_hashed() ? entries_.claim(path.key) : path.children[0];
  };
  return descend(path, root, [&](size_t p, const Element& e) {
    if (e.list) lengthen(e);
    return claim_cell(p, e.number);
  });
}

Descent::Element Descent::claim(const Path& path) {
  const Element out = descend_claiming(path).element;
  mark_active(out.number);
  return out;
}

void Descent::mark_active(Value* number) {
  if (pools_.back().has_mask()) unmask(number);
}

Value* Descent::is_found(Value* number) {
  if (pools_.back().direct) return nullptr;
  const int64_t first = int64_t(tree::first_slot) * pools_.back().children;
  return b_.binary(Op::ge, number, b_.integer(Type::i64, first));
}

void Descent::expect_cell(Value* there, std::span<Value* const> indices) {
  std::string at;
  std::vector<Value*> told;
  for (Value* index : indices) {
    at += at.empty() ? "{}" : ", {}";
    told.push_back(b_.convert(index, Type::i64));
  }
  check(there,
        kernel_.bindings[field_].name + " is written at (" + at + "), where its tree has no cell",
        told);
}

/// The list has the element's place, and cells for all up to it.
void Descent::lengthen(const Element& element) {
  const uint32_t lengths = parts_.mask(field_);
  Value* missing = b_.binary(Op::le, load(lengths, element.list, true), element.place);
  const auto extend = [&] {
    Value* wanted = b_.add(element.place, u32(1));
    return atomic(AtomicOp::max, lengths, element.list, {wanted});
  };
  if (!reports_) {  // a list that is long enough may lack cells that were not to be had before
    where(missing, extend);
    return claim_chunks(element, u32(0));
  }
  where(missing, [&] {
    Value* was = extend();
    where(b_.binary(Op::le, was, element.place), [&] { claim_chunks(element, was); });
  });
}

/// Cells for the places of the element's list from `first` on, up to the element's own, which it does
/// not claim.
void Descent::claim_chunks(const Element& element, Value* first) {
  const Placement::Pool& leaf = pools_.back();
  Value* start = b_.mul(element.list, b_.integer(Type::i64, leaf.chunks));
  const auto chunk_of = [&](Value* place) {
    return b_.add(start, b_.convert(divide(b_, place, leaf.children).first, Type::i64));
  };
  Value *from = chunk_of(first), *to = chunk_of(element.place);
  Inst* chunks = b_.loop(from, to, b_.integer(Type::i64, 1), {});
  inside(chunks->region(0), [&] {
    claim_cell(pools_.size() - 2, chunks->region(0)->arg(0));
    b_.yield();
  });
}

Descent::Appended Descent::append(const Path& path, Value* end) {
  Appended out;
  const auto root = [&] {
    return pools_[0].is_hashed() ? entries_.claim(path.key) : path.children[0];
  };
  const Placement::Pool& leaf = pools_.back();
  const uint32_t lengths = parts_.mask(field_);
  Value *has_place = nullptr, *child = nullptr;
  const End found = descend(path, root, [&](size_t p, const Element& e) {
    if (!e.list) return claim_cell(p, e.number);
    Value* was = atomic(AtomicOp::add, lengths, e.list, {u32(1)});
    has_place = b_.lt(was, end);
    where(b_.unary(Op::bit_not, has_place),
          [&] { atomic(AtomicOp::add, lengths, e.list, {u32(0xffffffff)}); });
    check(has_place, "a list of " + kernel_.bindings[field_].name + " is full: it has {} elements",
          {end});
    // Where the list is full, its first cell is there.
    Value* own = b_.select(has_place, was, u32(0));
    Value* first = b_.mul(e.list, b_.integer(Type::i64, leaf.chunks));
    const auto [chunk, rest] = divide(b_, own, leaf.children);
    out.place = b_.select(has_place, was, u32(tree::no_place));
    child = b_.convert(rest, Type::i64);
    return claim_cell(p, b_.add(first, b_.convert(chunk, Type::i64)));
  });
  Value* slot = b_.select(has_place, found.slot, u32(tree::lost_cell));
  out.number = below(slot, pools_.size() - 1, child);
  return out;
}

void Descent::unmask(Value* element) {
  const uint32_t mask = parts_.mask(field_);
  auto [at, own] = bit(element);
  Value* set = b_.binary(Op::bit_and, load(mask, at, true), own);
  where(b_.binary(Op::eq, set, u32(0)), [&] { atomic(AtomicOp::bit_or, mask, at, {own}); });
}

void Descent::end(const Element& element) {
  const uint32_t ending = parts_.ending(field_);
  if (element.list) {
    Value* until = b_.unary(Op::bit_not, element.place);
    where(b_.lt(load(ending, element.list, true), until),
          [&] { atomic(AtomicOp::max, ending, element.list, {until}); });
  } else {
    auto [at, own] = bit(element.number);
    mark(ending, at, own);
  }
}

/// The slot of the child, whose cell is taken where it has none.
Value* Descent::claim_cell(size_t pool, Value* number) {
  Value* known = load(parts_.table(field_, pool), number, true);
  const Type types[] = {Type::u32};
  Value* missing = b_.lt(known, u32(tree::first_slot));
  // What is below a lost cell, or entry, is lost.
  if (!pools_[pool].direct || pools_[pool].is_hashed()) {
    const int64_t children = pools_[pool].is_hashed() ? 1 : pools_[pool].children;
    Value* first = b_.integer(Type::i64, int64_t(tree::first_slot) * children);
    missing = b_.binary(Op::bit_and, missing, b_.binary(Op::ge, number, first));
  }
  Inst* branch = b_.if_(missing, types);
  inside(branch->region(0), [&] {
    b_.yield(
        {pools_[pool + 1].direct ? take_own_cell(pool, number) : take_cell(pool, number, known)});
  });
  inside(branch->region(1), [&] { b_.yield({known}); });
  return branch->result();
}

/// The only one that the child can have.
Value* Descent::take_own_cell(size_t pool, Value* number) {
  const int64_t skipped = pool > 0 ? tree::first_slot * int64_t(pools_[pool].children) : 0;
  Value* apart = b_.integer(Type::i64, tree::first_slot - skipped);
  Value* own = b_.convert(b_.add(number, apart), Type::u32);
  Value* before =
      atomic(AtomicOp::cas, parts_.table(field_, pool), number, {u32(tree::no_cell), own});
  where(b_.binary(Op::eq, before, u32(tree::no_cell)), [&] {
    atomic(AtomicOp::add, parts_.state(field_), word(pool + 1, tree::taken), {u32(1)});
    own_cell(pool, own, number);
  });
  return own;
}

void Descent::own_cell(size_t pool, Value* own, Value* number) {
  Value* slot = b_.convert(own, Type::i64);
  b_.store(parts_.owners(field_, pool + 1), 0, {&slot, 1}, number);
  mark_changed();
}

Value* Descent::take_cell(size_t pool, Value* number, Value* known) {
  const uint32_t table = parts_.table(field_, pool), state = parts_.state(field_);
  const uint32_t ring = parts_.ring(field_, pool + 1);
  const Type types[] = {Type::u32};
  Value* limit = load(state, word(pool + 1, tree::limit), false);
  const auto is_below_limit = [&](Value* count) {
    Value* left = b_.bitcast(b_.sub(limit, count), Type::i32);
    return b_.binary(Op::gt, left, b_.integer(Type::i32, 0));
  };
  // Where none is left, many ask: a read is cheaper than an atomic.
  Value* seen = load(state, word(pool + 1, tree::taken), true);
  Inst* ask = b_.if_(is_below_limit(seen), types);
  inside(ask->region(0),
         [&] { b_.yield({atomic(AtomicOp::add, state, word(pool + 1, tree::taken), {u32(1)})}); });
  inside(ask->region(1), [&] { b_.yield({seen}); });
  Value* mine = ask->result();
  Inst* branch = b_.if_(is_below_limit(mine), types);
  inside(branch->region(0),
         [&] { b_.yield({taken_cell(table, ring, number, known, pool, mine)}); });
  inside(branch->region(1), [&] { b_.yield({lose_cell(pool, number, known)}); });
  return branch->result();
}

/// No cell is left for the child: the lost one is to be its own, unless it has one meanwhile.
Value* Descent::lose_cell(size_t pool, Value* number, Value* known) {
  const uint32_t table = parts_.table(field_, pool), state = parts_.state(field_);
  const Type types[] = {Type::u32};
  Inst* is_first = b_.if_(b_.binary(Op::eq, known, u32(tree::no_cell)), types);
  inside(is_first->region(0), [&] {
    Value* was = atomic(AtomicOp::cas, table, number, {known, u32(tree::lost_cell)});
    Value* counts = b_.binary(Op::eq, was, u32(tree::no_cell));
    atomic(AtomicOp::add, state, word(pool + 1, tree::need), {b_.convert(counts, Type::u32)});
    b_.yield({was});
  });
  inside(is_first->region(1), [&] { b_.yield({load(table, number, true)}); });
  mark(state, word(pool + 1, tree::short_of), u32(1));
  Value* slot = b_.binary(Op::max, is_first->result(), u32(tree::lost_cell));
  if (reports_) {
    Value* level = u32(int64_t(pool + 1));
    Value* cells = load(state, word(pool + 1, tree::cells), false);
    Value* all = b_.sub(cells, u32(tree::first_slot));
    check(b_.binary(Op::ne, slot, u32(tree::lost_cell)),
          "no cell is left where an element of " + kernel_.bindings[field_].name +
              " becomes active: level {} of its tree has {}",
          {level, all});
  }
  return slot;
}

/// The cell at position `mine` of the ring becomes the child's, unless another has come first.
Value* Descent::taken_cell(uint32_t table, uint32_t ring, Value* number, Value* known, size_t pool,
                           Value* mine) {
  Value* last = b_.sub(b_.extent(ring, 0, Type::u32), u32(1));
  const auto position = [&](Value* count) {
    return b_.convert(b_.binary(Op::bit_and, count, last), Type::i64);
  };
  Value* own = load(ring, position(mine), false);
  Value* before = atomic(AtomicOp::cas, table, number, {known, own});
  Value* won = b_.binary(Op::eq, before, known);
  Inst* outcome = b_.if_(won);
  inside(outcome->region(0), [&] {
    own_cell(pool, own, number);
    b_.yield();
  });
  inside(outcome->region(1), [&] {
    Value* count =
        atomic(AtomicOp::add, parts_.state(field_), word(pool + 1, tree::given), {u32(1)});
    Value* end = position(count);
    b_.store(ring, 0, {&end, 1}, own);
    b_.yield();
  });
  return b_.select(won, own, before);
}

}  // namespace quern::ir
