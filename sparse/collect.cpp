// The end of what kernels have deactivated: its elements become the background again, cells that
// nothing active is left in go back to the rings, from the last pool to the first.
#include <cstring>

#include "quern/algorithms.h"
#include "quern/ir/trees.h"
#include "quern/runtime/observer.h"
#include "sparse/parts.h"

namespace quern::detail {

namespace {

using namespace lang;
namespace words = ir::tree;

constexpr int place_of(size_t pool, words::Word word) {
  return int(pool * words::words_of_pool + word);
}

/// How many cells a list has; as many as there is room for at most.
I32 length_of_list(const Words& state, const I32& place, const Words& list) {
  return min(cast<int>(state[place]), list.dim(0));
}

B1 bit_at(const Words& bits, const I64& number) {
  return (bits[number / 32] >> cast<uint32_t>(number % 32) & 1u) != 0u;
}
void clear_bit(const Words& bits, const I64& number) {
  bits[number / 32] &= ~(U32(1u) << cast<uint32_t>(number % 32));
}

/// Of a component of a field: what ends becomes the background.
template <class T>
void reset(const TreeData& tree, const std::shared_ptr<Storage>& component, T background, Loc loc) {
  const TreeData::Parts& leaf = tree.parts.back();
  kernel_of([](bool) {
    return Kernel{[](Field<T> elements, Words ending, Words state, Words list, Val<T> none,
                     I32 count, I32 children, I32 unit) {
                    for (auto [c, e] : grid(length_of_list(state, count, list), children)) {
                      I64 number = cast<int64_t>(list[c]) * children + e;
                      If(bit_at(ending, number / unit)) { elements[number] = none; }
                    }
                  },
                  modes("resetting elements")};
  })(field_of<T>(component), words_of(tree.ending), words_of(tree.state), words_of(leaf.list),
     background, place_of(tree.last(), words::count), int(tree.pools.back().children),
     int(tree.pools.back().unit), loc);
}

template <class T>
T value_at(const std::byte* from) {
  T v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

void reset(const TreeData& tree, const TreeData::Elements& field, Loc loc) {
  const std::shared_ptr<Storage> elements = field.storage.lock();
  if (!elements || elements->released()) return;
  for (uint32_t c = 0; c < elements->components().size(); c++) {
    const ir::Type type = elements->components()[c].type;
    const uint32_t bytes = ir::byte_size(ir::storage_type(type));
    const auto one = elements->part(c, {bytes, {0}}, loc);
    const std::byte* none = field.background.data() + field.offsets[c];
    const auto as = [&]<class T>(T) { reset<T>(tree, one, value_at<T>(none), loc); };
    switch (type) {
      case ir::Type::b1: as(bool()); break;
      case ir::Type::i8: as(int8_t()); break;
      case ir::Type::u8: as(uint8_t()); break;
      case ir::Type::i16: as(int16_t()); break;
      case ir::Type::u16: as(uint16_t()); break;
      case ir::Type::i32: as(int32_t()); break;
      case ir::Type::u32: as(uint32_t()); break;
      case ir::Type::i64: as(int64_t()); break;
      case ir::Type::u64: as(uint64_t()); break;
      case ir::Type::f16: as(half()); break;
      case ir::Type::f32: as(float()); break;
      default: as(double()); break;
    }
  }
}

/// The bits of what ends go, in the mask too where there is one.
void clear_bits(const TreeData& tree, Loc loc) {
  const TreeData::Parts& leaf = tree.parts.back();
  const ir::Placement::Pool& pool = tree.pools.back();
  kernel_of([](bool) {
    return Kernel{[](Words mask, Words ending, Words state, Words list, I32 count, I32 units) {
                    for (auto [c, u] : grid(length_of_list(state, count, list), units)) {
                      I64 number = cast<int64_t>(list[c]) * units + u;
                      If(bit_at(ending, number)) {
                        clear_bit(mask, number);
                        clear_bit(ending, number);
                      }
                    }
                  },
                  modes("ending elements")};
  })(words_of(tree.mask), words_of(tree.ending), words_of(tree.state), words_of(leaf.list),
     place_of(tree.last(), words::count), int(pool.children / pool.unit), loc);
}

/// What a cell goes by to stay.
enum class Stays { by_bits, unless_ending, by_children };

template <Stays stays>
void free_cells(const TreeData& tree, size_t p, const std::shared_ptr<Storage>& asked, int count,
                Loc loc) {
  const TreeData::Parts &own = tree.parts[p], &parent = tree.parts[p - 1];
  const bool direct = tree.pools[p].direct;
  kernel_of(
      [](bool is_direct) {
        return Kernel{[is_direct](Words state, Words list, Words asked_, Field<int64_t> owners,
                                  Words table, Words ring, I32 length, I32 given, I32 children) {
                        for (auto c : range(length_of_list(state, length, list))) {
                          I64 slot = cast<int64_t>(list[c]);
                          Var<bool> used = false;
                          if constexpr (stays == Stays::unless_ending) {
                            used = !bit_at(asked_, slot);
                            clear_bit(asked_, slot);
                          } else {
                            for (auto k : range(children)) {
                              I64 number = slot * children + k;
                              used = used || (stays == Stays::by_bits
                                                  ? bit_at(asked_, number)
                                                  : asked_[number] >= words::first_slot);
                            }
                          }
                          If(!used) {
                            table[owners[slot]] = uint32_t(words::no_cell);
                            U32 end = atomic_add(state[given], 1u);
                            if (!is_direct)
                              ring[cast<int>(end & (cast<uint32_t>(ring.dim(0)) - 1u))] = list[c];
                          }
                        }
                        state[int(words::changed)] = 1u;
                      },
                      modes("freeing cells")};
      },
      direct)(words_of(tree.state), words_of(own.list), words_of(asked),
              field_of<int64_t>(own.owners), words_of(parent.table),
              words_of(direct ? own.list : own.ring), place_of(p, words::count),
              place_of(p, words::given), count, loc);
}

void free_cells(const TreeData& tree, size_t p, Loc loc) {
  const ir::Placement::Pool& pool = tree.pools[p];
  if (p < tree.last())
    free_cells<Stays::by_children>(tree, p, tree.parts[p].table, int(pool.children), loc);
  else if (!pool.has_mask())
    free_cells<Stays::unless_ending>(tree, p, tree.ending, 1, loc);
  else
    free_cells<Stays::by_bits>(tree, p, tree.mask, int(pool.children / pool.unit), loc);
}

}  // namespace

void TreeData::collect(Loc at) {
  refresh(at);
  const runtime::LaunchCall call(runtime::LaunchCall::upkeep);
  std::lock_guard lock(mutex);
  begin_algorithm("deactivating elements of a tree", words_of(state).object(), at);
  for (const Elements& field : fields) reset(*this, field, at);
  if (pools.back().has_mask()) clear_bits(*this, at);
  for (size_t p = pools.size(); p-- > 1;) free_cells(*this, p, at);
  // Where all is one cell, it stays.
  if (pools.size() == 1 && !pools[0].has_mask()) {
    const uint32_t none = 0;
    ending->fill(&none, at);
  }
  may_have_changed = true;
}

}  // namespace quern::detail
