// The lists of a tree's cells: which there are, in an order that follows from where they lie, and never
// from the slots that they happen to have. A pool's list is made of its parent's: each parent's
// children that exist, one parent after another, in Morton order where a level is a cube of a power
// of two, else in row-major order. Counting, summing up and writing are kernels of a fixed number of
// chunks, so that nobody waits for the number of cells, and where no cell came or went they do nothing.
#include <bit>
#include <map>
#include <mutex>

#include "dsl/recording.h"
#include "quern/algorithms.h"
#include "quern/ir/trees.h"
#include "sparse/lists.h"

namespace quern::detail {

namespace {

using namespace lang;
namespace words = ir::tree;

/// A pool's levels, and how far apart its children lie along each axis.
struct Children {
  std::vector<ir::Placement::Level> levels;  ///< outside in
  std::vector<std::vector<int64_t>> steps;   ///< elements between neighbours, by level and axis
  uint32_t count = 1;
};

Children children_of(const TreeData& tree, size_t pool) {
  Children out{tree.pools[pool].levels, {}, tree.pools[pool].children};
  std::vector<int64_t> size = size_of_child(tree, pool);
  for (size_t k = out.levels.size(); k-- > 0;) {
    out.steps.insert(out.steps.begin(), size);
    for (size_t axis = 0; axis < size.size(); axis++) size[axis] *= out.levels[k].extent[axis];
  }
  return out;
}

/// The digits of the child that comes as the `number`-th of a level's cell.
std::vector<I64> digits_at(const ir::Placement::Level& level, int rank, const I64& number) {
  const uint32_t n = level.extent[0];
  bool is_cube = std::has_single_bit(n);
  for (int axis = 1; axis < rank; axis++) is_cube &= level.extent[axis] == n;
  std::vector<I64> out;
  for (int axis = 0; axis < rank; axis++) {
    if (is_cube) {
      Var<int64_t> digit = 0;
      for (int bit = 0; (1u << bit) < n; bit++)
        digit |= ((number >> (bit * rank + rank - 1 - axis)) & 1) << bit;
      out.push_back(digit);
    } else {
      out.push_back(number / level.stride[axis] % level.extent[axis]);
    }
  }
  return out;
}

/// Where the child that comes as the `number`-th of a pool's cell stands: in the cell, and along the
/// axes.
template <class T, int N>
struct Child {
  Child(const Children& all, const I64& number) : index(0) {
    for (int axis = 0; axis < N; axis++) offset.emplace_back(0);
    uint32_t below = all.count;
    for (size_t k = 0; k < all.levels.size(); k++) {
      ir::Placement::Level level = all.levels[k];
      const uint32_t above = below;
      for (int axis = 0; axis < N; axis++) below /= level.extent[axis];
      for (int axis = 0; axis < N; axis++) level.stride[axis] /= below;
      const std::vector<I64> digits = digits_at(level, N, number % above / below);
      for (int axis = 0; axis < N; axis++) {
        index += digits[size_t(axis)] * all.levels[k].stride[axis];
        offset[size_t(axis)] += cast<T>(digits[size_t(axis)] * all.steps[k][size_t(axis)]);
      }
    }
  }
  Var<int64_t> index;
  std::vector<Var<T>> offset;
};

struct Entries {
  I64 lo, hi;
};
/// What a chunk has of the children of all cells that a list has.
Entries entries_of(const Words& state, int parent, uint32_t children, const I32& chunk) {
  I64 all = cast<int64_t>(state[parent * int(words::words_of_pool) + int(words::count)]) * children;
  I64 size = (all + (list_chunks - 1)) / list_chunks;
  return {min(chunk * size, all), min((chunk + 1) * size, all)};
}

/// The chunks' counts are added up in groups, whose sums stand behind them.
constexpr int group_size = list_chunks / list_groups;

/// How many cells the chunks before this one have.
U32 cells_before(const Words& counts, const I32& chunk) {
  Var<uint32_t> before = 0u;
  I32 group = chunk / group_size;
  for (auto g : range(group)) before += counts[list_chunks + g];
  for (auto c : range(group * group_size, chunk)) before += counts[c];
  return before;
}

/// The slot of child `index` of the cell in `slot`.
U32 child_of(const Children& all, const Words& table, const U32& slot, const I64& index) {
  return table[cast<int64_t>(slot) * all.count + index];
}

template <class T, int N>
struct ListKernels {
  using Places = Field<Place<T, N>>;
  Kernel<void(Words, Words, Words, Words)> count;
  Kernel<void(Words, Words)> sum;
  Kernel<void(Words, Words, Places, Words, Words, Words, Places)> write;

  ListKernels(const Children& all, int pool, bool is_last)
      : count(
            [&](Words state, Words parents, Words table, Words counts) {
              for (auto chunk : range(list_chunks)) {
                If(state[int(words::changed)] != 0u) {
                  auto [lo, hi] = entries_of(state, pool - 1, all.count, chunk);
                  Var<uint32_t> found = 0u;
                  for (auto k : range(lo, hi)) {
                    Child<T, N> child(all, k % all.count);
                    found += cast<uint32_t>(child_of(all, table, parents[k / all.count],
                                                     child.index) >= words::first_slot);
                  }
                  counts[chunk] = found;
                }
              }
            },
            modes("counting cells")),
        sum(
            [](Words state, Words counts) {
              for (auto group : range(list_groups)) {
                If(state[int(words::changed)] != 0u) {
                  Var<uint32_t> total = 0u;
                  for (auto k : range(group_size)) total += counts[group * group_size + k];
                  counts[list_chunks + group] = total;
                }
              }
            },
            modes("numbering cells")),
        write(
            [&](Words state, Words parents, Places places, Words table, Words counts, Words list,
                Places own_places) {
              for (auto chunk : range(list_chunks)) {
                If(state[int(words::changed)] != 0u) {
                  auto [lo, hi] = entries_of(state, pool - 1, all.count, chunk);
                  Var<uint32_t> at = cells_before(counts, chunk);
                  for (auto k : range(lo, hi)) {
                    Child<T, N> child(all, k % all.count);
                    U32 slot = child_of(all, table, parents[k / all.count], child.index);
                    If(slot >= words::first_slot) {
                      list[at] = slot;
                      Var<Place<T, N>> place = places[k / all.count];
                      if constexpr (N == 1)
                        place += child.offset[0];
                      else
                        for (int axis = 0; axis < N; axis++)
                          place[axis] += child.offset[size_t(axis)];
                      own_places[at] = place;
                      at += 1u;
                    }
                  }
                  If(chunk == list_chunks - 1) {
                    state[pool * int(words::words_of_pool) + int(words::count)] = at;
                  }
                }
              }
              if (is_last) {
                If(state[int(words::changed)] != 0u) {
                  state[int(words::made)] = state[int(words::made)] + 1u;
                  state[int(words::changed)] = 0u;
                }
              }
            },
            modes("listing cells")) {
    for (KernelObject* kernel : {count.object(), sum.object(), write.object()})
      keep_until_exit(kernel);
  }
};

std::string key_of(const Children& all, size_t pool, bool is_last) {
  std::string key = std::to_string(pool) + (is_last ? "!" : " ");
  for (size_t k = 0; k < all.levels.size(); k++)
    for (size_t axis = 0; axis < all.steps[k].size(); axis++)
      key += " " + std::to_string(all.levels[k].extent[axis]) + ":" +
             std::to_string(all.levels[k].stride[axis]) + ":" + std::to_string(all.steps[k][axis]);
  return key;
}

/// Recorded once for each kind of pool.
template <class T, int N>
const ListKernels<T, N>& kernels_for(const TreeData& tree, size_t pool) {
  static std::mutex mutex;
  static auto& known = *new std::map<std::string, const ListKernels<T, N>*>;
  const Children all = children_of(tree, pool - 1);
  const bool is_last = pool == tree.last();
  std::lock_guard lock(mutex);
  const ListKernels<T, N>*& kernels = known[key_of(all, pool, is_last)];
  if (!kernels) kernels = new ListKernels<T, N>(all, int(pool), is_last);
  return *kernels;
}

template <class T, int N>
void make_lists_of(TreeData& tree, Loc loc) {
  const Words state = field_of<uint32_t>(tree.state), counts = field_of<uint32_t>(tree.counts);
  begin_algorithm("a loop over a tree", state.object(), loc);
  for (size_t p = 1; p < tree.pools.size(); p++) {
    const TreeData::Parts &parent = tree.parts[p - 1], &own = tree.parts[p];
    if (tree.pools[p - 1].is_hashed()) {
      list_entries(tree, loc);
      continue;
    }
    const ListKernels<T, N>& kernels = kernels_for<T, N>(tree, p);
    const Words parents = field_of<uint32_t>(parent.list), table = field_of<uint32_t>(parent.table);
    kernels.count(state, parents, table, counts, loc);
    kernels.sum(state, counts, loc);
    kernels.write(state, parents, field_of<Place<T, N>>(parent.places), table, counts,
                  field_of<uint32_t>(own.list), field_of<Place<T, N>>(own.places), loc);
  }
}

template <class T>
void make_lists_of(TreeData& tree, Loc loc) {
  switch (tree.rank) {
    case 1: return make_lists_of<T, 1>(tree, loc);
    case 2: return make_lists_of<T, 2>(tree, loc);
    case 3: return make_lists_of<T, 3>(tree, loc);
    default: return make_lists_of<T, 4>(tree, loc);
  }
}

}  // namespace

std::vector<int64_t> size_of_child(const TreeData& tree, size_t pool) {
  std::vector<int64_t> size(size_t(tree.rank), 1);
  for (size_t p = pool + 1; p < tree.pools.size(); p++)
    for (const ir::Placement::Level& level : tree.pools[p].levels)
      for (size_t axis = 0; axis < size.size(); axis++) size[axis] *= level.extent[axis];
  return size;
}

void make_lists(TreeData& tree, Loc loc) {
  tree.wide ? make_lists_of<int64_t>(tree, loc) : make_lists_of<int>(tree, loc);
}

}  // namespace quern::detail
