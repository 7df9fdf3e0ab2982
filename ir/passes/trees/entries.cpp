#include "ir/passes/trees/entries.h"

#include "ir/math/expr.h"

namespace quern::ir {

/// Of the table, a power of two.
Value* Entries::count() {
  Value* all = b_.extent(parts_.table(field_, 0), 0, Type::u32);
  return b_.sub(all, u32(tree::first_entry));
}

std::vector<Value*> Entries::key(std::span<Value* const> coordinates) {
  std::vector<Value*> words;
  for (size_t axis = 0; axis < coordinates.size(); axis++) {
    Value* rest = coordinates[axis];
    for (uint32_t k = pools_[0].key[axis]; k-- > 0;) {
      Value* word = rest;  // the highest first
      if (k > 0) std::tie(word, rest) = divide(b_, rest, 1u << 31);
      words.push_back(b_.add(b_.convert(word, Type::u32), u32(1)));
    }
  }
  return words;
}

/// Goes through the entries where the key may be. `compare`, given where an entry's first word stands,
/// yields what is known then: u32, 0 for another key's, 1 for the key's own, 2 for that nobody has it.
template <class Compare>
Value* Entries::probe(std::span<Value* const> key, Compare&& compare) {
  math::Writer writer{b_, 0};
  math::Expr hash{&writer, u32(0)};
  for (Value* word : key) hash = tree::hash_step(hash, math::Expr{&writer, word});
  Value* entries = count();
  Value* last = b_.sub(entries, u32(1));
  Value* init[] = {b_.binary(Op::bit_and, hash.v, last), u32(0), u32(0)};
  Inst* loop = b_.while_(init);
  inside(loop->region(0), [&] {
    Region* test = loop->region(0);
    Value *at = test->arg(0), *steps = test->arg(1), *known = test->arg(2);
    Value* open = b_.binary(Op::eq, known, u32(0));
    Value* goes_on = b_.binary(Op::bit_and, open, b_.lt(steps, entries));
    b_.yield({goes_on, at, steps, known});
  });
  inside(loop->region(1), [&] {
    Region* body = loop->region(1);
    Value *at = body->arg(0), *steps = body->arg(1);
    Value* before = b_.convert(at, Type::i64);
    Value* entry = b_.add(before, b_.integer(Type::i64, tree::first_entry));
    Value* known = compare(b_.mul(entry, b_.integer(Type::i64, int64_t(key.size()))));
    Value* next = b_.binary(Op::bit_and, b_.add(at, u32(1)), last);
    Value* stays = b_.binary(Op::ne, known, u32(0));
    b_.yield({b_.select(stays, at, next), b_.add(steps, u32(1)), known});
  });
  Value* found = b_.binary(Op::eq, loop->result(2), u32(1));
  Value* entry = b_.add(loop->result(0), u32(tree::first_entry));
  return b_.convert(b_.select(found, entry, u32(tree::no_entry)), Type::i64);
}

Value* Entries::find(std::span<Value* const> key, bool racing) {
  return probe(key, [&](Value* first) {
    Value *same = nullptr, *ends = nullptr;
    for (size_t k = 0; k < key.size(); k++) {
      Value* at = b_.add(first, b_.integer(Type::i64, int64_t(k)));
      Value* there = load(parts_.keys(field_), at, racing);
      Value* equal = b_.binary(Op::eq, there, key[k]);
      // A word that is not there yet: somebody claims the entry now, perhaps for this key.
      Value* missing = b_.binary(Op::eq, there, u32(0));
      if (same) missing = b_.binary(Op::bit_and, same, missing);
      ends = ends ? b_.binary(Op::bit_or, ends, missing) : missing;
      same = same ? b_.binary(Op::bit_and, same, equal) : equal;
    }
    Value *its = u32(1), *nobodys = u32(2), *anothers = u32(0);
    return b_.select(same, its, b_.select(ends, nobodys, anothers));
  });
}

/// Claims the words of an entry from the `from`-th on, where they are not another key's. Is it the
/// key's? u32.
Value* Entries::match(std::span<Value* const> key, size_t from, Value* first) {
  const uint32_t keys = parts_.keys(field_);
  Value* at = b_.add(first, b_.integer(Type::i64, int64_t(from)));
  Value* known = load(keys, at, true);
  const Type types[] = {Type::u32};
  Inst* empty = b_.if_(b_.binary(Op::eq, known, u32(0)), types);
  const bool is_last = from + 1 == key.size();
  inside(empty->region(0), [&] {
    Value* was = atomic(AtomicOp::cas, keys, at, {u32(0), key[from]});
    Value* won = b_.binary(Op::eq, was, u32(0));
    if (is_last)
      where(won,
            [&] { atomic(AtomicOp::add, parts_.state(field_), word(0, tree::taken), {u32(1)}); });
    b_.yield({b_.select(won, key[from], was)});
  });
  inside(empty->region(1), [&] { b_.yield({known}); });
  Value* own = b_.binary(Op::eq, empty->result(), key[from]);
  if (is_last) return b_.convert(own, Type::u32);
  Inst* more = b_.if_(own, types);
  inside(more->region(0), [&] { b_.yield({match(key, from + 1, first)}); });
  inside(more->region(1), [&] { b_.yield({u32(0)}); });
  return more->result();
}

Value* Entries::claim(std::span<Value* const> key) {
  Value* entry = probe(key, [&](Value* first) { return match(key, 0, first); });
  Value* found = b_.binary(Op::ne, entry, b_.integer(Type::i64, tree::no_entry));
  Value* entries = count();
  where(b_.unary(Op::bit_not, found), [&] {
    const uint32_t state = parts_.state(field_);
    atomic(AtomicOp::add, state, word(0, tree::need), {u32(1)});
    mark(state, word(0, tree::short_of), u32(1));
  });
  if (reports_)
    check(found,
          "no entry is left where an element of " + kernel_.bindings[field_].name +
              " becomes active: the hash level of its tree has {}",
          {entries});
  return b_.select(found, entry, b_.integer(Type::i64, tree::lost_entry));
}

}  // namespace quern::ir
