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

/// How lists lie in cells.
struct Chunks {
  explicit Chunks(const TreeData& tree)
      : count(int(tree.pools.back().chunks)), size(int(tree.pools.back().children)) {}
  int count, size;
};

/// Of the lists in the cells of the last pool: what is behind their ends becomes the background.
template <class T>
void reset_lists(const TreeData& tree, const std::shared_ptr<Storage>& component, T background,
                 Loc loc) {
  const TreeData::Parts& leaf = tree.parts.back();
  const Chunks chunks(tree);
  kernel_of([](bool) {
    return Kernel{[](Field<T> elements, Words ending, Field<int64_t> owners, Words state,
                     Words list, Val<T> none, I32 count, I32 in_list, I32 size) {
                    for (auto [c, e] : grid(length_of_list(state, count, list), size)) {
                      I64 slot = cast<int64_t>(list[c]), chunk = owners[slot];
                      U32 place = cast<uint32_t>(chunk % in_list * size + e);
                      If(place >= ~ending[chunk / in_list]) { elements[slot * size + e] = none; }
                    }
                  },
                  modes("resetting elements")};
  })(field_of<T>(component), words_of(tree.ending), field_of<int64_t>(leaf.owners),
     words_of(tree.state), words_of(leaf.list), background, place_of(tree.last(), words::count),
     chunks.count, chunks.size, loc);
}

/// Of a component of a field: what was in cells that are gone becomes the background.
template <class T>
void reset_cells(const TreeData& tree, const TreeData::Elements& field,
                 const std::shared_ptr<Storage>& component, T background, Loc loc) {
  const TreeData::Parts &own = tree.parts[field.pool], &parent = tree.parts[field.pool - 1];
  kernel_of([](bool) {
    return Kernel{[](Field<T> elements, Words table, Field<int64_t> owners, Words state, Words list,
                     Val<T> none, I32 count, I32 children) {
                    for (auto [c, e] : grid(length_of_list(state, count, list), children)) {
                      I64 slot = cast<int64_t>(list[c]);
                      If(table[owners[slot]] != list[c]) { elements[slot * children + e] = none; }
                    }
                  },
                  modes("resetting elements")};
  })(field_of<T>(component), words_of(parent.table), field_of<int64_t>(own.owners),
     words_of(tree.state), words_of(own.list), background, place_of(field.pool, words::count),
     int(field.children), loc);
}

/// Of a component of a field: what ends becomes the background.
template <class T>
void reset(const TreeData& tree, const TreeData::Elements& field,
           const std::shared_ptr<Storage>& component, T background, Loc loc) {
  if (field.ends_with_cells) return reset_cells<T>(tree, field, component, background, loc);
  if (tree.pools.back().has_lists()) return reset_lists<T>(tree, component, background, loc);
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
     background, place_of(tree.last(), words::count), int(field.children), int(field.unit), loc);
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
    for_type(type, [&]<class T>(T) { reset<T>(tree, field, one, value_at<T>(none), loc); });
  }
}

/// The bits of what ends go in the mask.
void clear_mask(const TreeData& tree, Loc loc) {
  const TreeData::Parts& leaf = tree.parts.back();
  const ir::Placement::Pool& pool = tree.pools.back();
  kernel_of([](bool) {
    return Kernel{[](Words mask, Words ending, Words state, Words list, I32 count, I32 units) {
                    for (auto [c, u] : grid(length_of_list(state, count, list), units)) {
                      I64 number = cast<int64_t>(list[c]) * units + u;
                      If(bit_at(ending, number)) { clear_bit(mask, number); }
                    }
                  },
                  modes("ending elements")};
  })(words_of(tree.mask), words_of(tree.ending), words_of(tree.state), words_of(leaf.list),
     place_of(tree.last(), words::count), int(pool.children / pool.unit), loc);
}

/// Lists become as long as they are to be.
void cut_lists(const TreeData& tree, Loc loc) {
  const size_t above = tree.last() - 1;
  kernel_of([](bool) {
    return Kernel{[](Words lengths, Words ending, Words state, Words list, I32 count, I32 lists) {
                    for (auto [c, n] : grid(length_of_list(state, count, list), lists)) {
                      I64 number = cast<int64_t>(list[c]) * lists + n;
                      lengths[number] = min(lengths[number], ~ending[number]);
                    }
                  },
                  modes("ending elements")};
  })(words_of(tree.mask), words_of(tree.ending), words_of(tree.state),
     words_of(tree.parts[above].list), place_of(above, words::count),
     int(tree.pools[above].children / tree.pools.back().chunks), loc);
}

/// What a cell goes by to stay.
enum class Stays { by_bits, unless_ending, by_children, by_length };

/// `count`: how many words or bits of `asked` a cell goes by; of lists, how many cells make one, and
/// `size`, how many elements a cell.
template <Stays stays>
void free_cells(const TreeData& tree, size_t p, const std::shared_ptr<Storage>& asked, int count,
                int size, Loc loc) {
  const TreeData::Parts &own = tree.parts[p], &parent = tree.parts[p - 1];
  const bool direct = tree.pools[p].direct;
  kernel_of(
      [](bool is_direct) {
        return Kernel{
            [is_direct](Words state, Words list, Words asked_, Field<int64_t> owners, Words table,
                        Words ring, I32 length, I32 given, I32 children, I32 elements) {
              for (auto c : range(length_of_list(state, length, list))) {
                I64 slot = cast<int64_t>(list[c]);
                Var<bool> used = false;
                if constexpr (stays == Stays::unless_ending) {
                  used = !bit_at(asked_, slot);
                } else if constexpr (stays == Stays::by_length) {
                  I64 chunk = owners[slot];
                  used = chunk % children * elements < cast<int64_t>(asked_[chunk / children]);
                } else {
                  for (auto k : range(children)) {
                    I64 number = slot * children + k;
                    used = used || (stays == Stays::by_bits ? bit_at(asked_, number)
                                                            : asked_[number] >= words::first_slot);
                  }
                }
                If(!used) {
                  table[owners[slot]] = uint32_t(words::no_cell);
                  U32 end = atomic_add(state[given], 1u);
                  if (!is_direct)
                    ring[cast<int>(end & (cast<uint32_t>(ring.dim(0)) - 1u))] = list[c];
                  If(atomic_load(state[int(words::changed)]) == 0u) {
                    atomic_max(state[int(words::changed)], 1u);
                  }
                }
              }
            },
            modes("freeing cells")};
      },
      direct)(words_of(tree.state), words_of(own.list), words_of(asked),
              field_of<int64_t>(own.owners), words_of(parent.table),
              words_of(direct ? own.list : own.ring), place_of(p, words::count),
              place_of(p, words::given), count, size, loc);
}

void free_cells(const TreeData& tree, size_t p, Loc loc) {
  const ir::Placement::Pool& pool = tree.pools[p];
  if (p < tree.last())
    free_cells<Stays::by_children>(tree, p, tree.parts[p].table, int(pool.children), 0, loc);
  else if (pool.has_lists())
    free_cells<Stays::by_length>(tree, p, tree.mask, int(pool.chunks), int(pool.children), loc);
  else if (!pool.has_mask())
    free_cells<Stays::unless_ending>(tree, p, tree.ending, 1, 0, loc);
  else
    free_cells<Stays::by_bits>(tree, p, tree.mask, int(pool.children / pool.unit), 0, loc);
}

}  // namespace

void TreeData::collect(Loc at) {
  refresh(at);
  const runtime::LaunchCall call(runtime::LaunchCall::upkeep);
  std::lock_guard lock(mutex);
  begin_algorithm("deactivating elements of a tree", words_of(state).object(), at);
  for (const Elements& field : fields)
    if (!field.ends_with_cells) reset(*this, field, at);
  if (pools.back().has_mask()) clear_mask(*this, at);
  if (pools.back().has_lists()) cut_lists(*this, at);
  for (size_t p = pools.size(); p-- > 1;) free_cells(*this, p, at);
  for (const Elements& field : fields)
    if (field.ends_with_cells && field.pool > 0) reset(*this, field, at);
  const uint32_t none = 0;
  ending->fill(&none, at);
  may_have_changed = true;
  moved++;
}

}  // namespace quern::detail
