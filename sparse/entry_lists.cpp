// The list of a hashed root's children. They are sorted by their coordinates, as entries stand where
// hashes and races put them: word by word, the last one first, by a stable sort.
#include "dsl/recording.h"
#include "quern/algorithms.h"
#include "sparse/lists.h"

namespace quern::detail {

namespace {

using namespace lang;
namespace words = ir::tree;

/// Entries that have a cell, in any order.
void gather(const TreeData& tree, const Words& entries, Loc loc) {
  const Words found = temporary<uint32_t>(entries.object(), 1, loc);
  found.fill(0u, loc);
  kernel_of([](bool) {
    return Kernel{[](Words table, Words to, Words count) {
                    for (auto e : range(int(words::first_entry), table.dim(0))) {
                      If(table[e] >= uint32_t(words::first_slot)) {
                        U32 at = atomic_add(count[0], 1u);
                        If(at < cast<uint32_t>(to.dim(0))) { to[at] = cast<uint32_t>(e); }
                      }
                    }
                  },
                  modes("listing entries")};
  })(words_of(tree.parts[0].table), entries, found, loc);
}

void sort_by_word(const TreeData& tree, const Words& entries, int word, Loc loc) {
  const Words keys = temporary<uint32_t>(entries.object(), entries.size(loc), loc);
  kernel_of([](bool) {
    return Kernel{[](Words of, Words all, Words to, I32 in_key, I32 which) {
                    for (auto i : to) to[i] = all[cast<int64_t>(of[i]) * in_key + which];
                  },
                  modes("listing entries")};
  })(entries, words_of(tree.keys), keys, int(tree.pools[0].key_words()), word, loc);
  sort_by_key(keys, entries, Order::ascending, loc);
}

/// Along an axis, whose words of a key begin at the `first`-th.
template <class T>
void write_places(const TreeData& tree, const Words& entries, uint32_t axis, int first, Loc loc) {
  const auto places = tree.parts[1].places->part(axis, {sizeof(T), {0}}, loc);
  kernel_of([](bool) {
    return Kernel{
        [](Words of, Words all, Field<T> to, I32 in_key, I32 from, I32 count, Val<T> elements) {
          for (auto i : of) {
            Var<int64_t> coordinate = 0;
            for (auto w : range(count)) {
              U32 word = all[cast<int64_t>(of[i]) * in_key + from + w];
              coordinate = (coordinate << 31) + cast<int64_t>(word - 1u);
            }
            to[i] = cast<T>(coordinate) * elements;
          }
        },
        modes("listing entries")};
  })(entries, words_of(tree.keys), field_of<T>(places), int(tree.pools[0].key_words()), first,
     int(tree.pools[0].key[axis]), T(size_of_child(tree, 0)[axis]), loc);
}

template <class T>
void write_list(const TreeData& tree, const Words& entries, Loc loc) {
  int first = 0;
  for (uint32_t axis = 0; axis < uint32_t(tree.rank); axis++) {
    write_places<T>(tree, entries, axis, first, loc);
    first += tree.pools[0].key[axis];
  }
  kernel_of([](bool) {
    return Kernel{[](Words of, Words table, Words to) {
                    for (auto i : of) to[i] = table[of[i]];
                  },
                  modes("listing entries")};
  })(entries, words_of(tree.parts[0].table), words_of(tree.parts[1].list), loc);
}

}  // namespace

void list_entries(TreeData& tree, Loc loc) {
  std::vector<uint32_t> state = read_state(tree);
  if (!state[words::changed]) return;
  uint32_t* cells = state.data() + words::words_of_pool;
  cells[words::count] = live_cells(tree.pools[1], cells);
  if (tree.last() == 1) {  // of other last lists the kernels say themselves that they are made
    state[words::changed] = 0;
    state[words::made]++;
    tree.state->write(&state[words::changed], words::changed, 2, loc);
  }
  tree.state->write(&cells[words::count], words::words_of_pool + words::count, 1, loc);
  if (!cells[words::count]) return;
  const Words entries =
      temporary<uint32_t>(words_of(tree.state).object(), cells[words::count], loc);
  gather(tree, entries, loc);
  for (int word = int(tree.pools[0].key_words()); word-- > 0;)
    sort_by_word(tree, entries, word, loc);
  tree.wide ? write_list<int64_t>(tree, entries, loc) : write_list<int>(tree, entries, loc);
}

}  // namespace quern::detail
