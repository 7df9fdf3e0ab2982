#pragma once
// A tree's parts as fields, for the kernels that keep it.
#include "dsl/objects.h"
#include "quern/ir/trees.h"
#include "sparse/tree.h"

namespace quern::detail {

using Words = Field<uint32_t>;

template <class T>
Field<T> field_of(const std::shared_ptr<Storage>& storage) {
  auto object = std::make_unique<FieldObject>();
  object->type = Field<T>::type();
  object->storage = storage;
  return Field<T>(Ref<FieldObject>(object.release()));
}
inline Words words_of(const std::shared_ptr<Storage>& storage) {
  return field_of<uint32_t>(storage);
}

/// Calls `as` with a value of the type.
template <class F>
void for_type(ir::Type type, F&& as) {
  switch (type) {
    case ir::Type::b1: return as(bool());
    case ir::Type::i8: return as(int8_t());
    case ir::Type::u8: return as(uint8_t());
    case ir::Type::i16: return as(int16_t());
    case ir::Type::u16: return as(uint16_t());
    case ir::Type::i32: return as(int32_t());
    case ir::Type::u32: return as(uint32_t());
    case ir::Type::i64: return as(int64_t());
    case ir::Type::u64: return as(uint64_t());
    case ir::Type::f16: return as(half());
    case ir::Type::f32: return as(float());
    default: return as(double());
  }
}

/// The words by which a hashed root's child at these coordinates is found.
inline std::vector<uint32_t> key_of(const TreeData& tree, const std::vector<int64_t>& coordinates) {
  std::vector<uint32_t> words;
  for (size_t axis = 0; axis < coordinates.size(); axis++)
    for (uint32_t k = tree.pools[0].key[axis]; k-- > 0;)
      words.push_back(uint32_t(coordinates[axis] >> (31 * k) & 0x7fffffff) + 1);
  return words;
}

/// The number of the entry that has the key in a table of so many; where none has, of one that nobody
/// has. `word` yields a word of the keys.
template <class F>
int64_t entry_of(int64_t table, const std::vector<uint32_t>& key, F&& word) {
  uint32_t hash = 0;
  for (uint32_t part : key) hash = ir::tree::hash_step(hash, part);
  const int64_t count = table - ir::tree::first_entry;
  for (int64_t k = 0; k < count; k++) {
    const int64_t entry = ((hash + uint64_t(k)) & uint64_t(count - 1)) + ir::tree::first_entry;
    const int64_t at = entry * int64_t(key.size());
    bool same = true, empty = word(at) == 0;
    for (size_t w = 0; w < key.size() && same; w++) same = word(at + int64_t(w)) == key[w];
    if (same || empty) return entry;
  }
  return ir::tree::no_entry;
}

}  // namespace quern::detail
