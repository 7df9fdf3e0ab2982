// What a tree holds and takes, in numbers and as text.
#include "quern/algorithms.h"
#include "quern/ir/trees.h"
#include "sparse/operations/topology.h"

namespace quern::detail {

namespace {

template <class I, int N>
int64_t count_active(TreeData& tree, Loc loc) {
  return kernel_of([](bool) {
           return Kernel{[](Topology<N> x) -> Val<int64_t> {
                           Var<int64_t> count = 0;
                           for ([[maybe_unused]] auto i : x.template indices<I>()) count += 1;
                           return count;
                         },
                         modes("counting active elements")};
         })(topology<N>(tree), loc)
      .value(loc);
}

std::string text_of(const TreeLevel& level) {
  std::string text = std::string(name_of(level.kind)) + "(";
  if (level.kind == TreeLevel::dynamic)
    return text + std::to_string(level.n[level.count - 1]) + ", " + std::to_string(level.chunk) +
           ")";
  for (int k = 0; k < level.count; k++) text += (k ? ", " : "") + std::to_string(level.n[k]);
  return text + ")";
}

int64_t bytes_of(std::initializer_list<const Storage*> parts) {
  int64_t bytes = 0;
  for (const Storage* part : parts)
    if (part) bytes += int64_t(part->bytes());
  return bytes;
}

/// Of a pool: its tables and lists, and what the elements of fields take that are in its cells.
int64_t bytes_of(const TreeData& tree, size_t pool) {
  const TreeData::Parts& p = tree.parts[pool];
  int64_t bytes =
      bytes_of({p.table.get(), p.ring.get(), p.owners.get(), p.list.get(), p.places.get()});
  if (pool == 0) bytes += bytes_of({tree.keys.get()});
  if (pool == tree.last())
    bytes += bytes_of(
        {tree.mask.get(), tree.listed.get(), tree.ending.get(), tree.made_neighbours.get()});
  for (const TreeData::Elements& field : tree.fields)
    if (const auto elements = field.storage.lock();
        field.pool == pool && elements && !elements->released())
      bytes += int64_t(elements->bytes());
  return bytes;
}

/// 1536 as "1.5 KiB".
std::string bytes_text(int64_t bytes) {
  constexpr const char* units[] = {" bytes", " KiB", " MiB", " GiB", " TiB"};
  int unit = 0;
  double size = double(bytes);
  for (; size >= 1024 && unit < 4; unit++) size /= 1024;
  if (unit == 0) return std::to_string(bytes) + units[0];
  const auto tenths = int64_t(size * 10 + 0.5);
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + units[unit];
}

}  // namespace

int64_t active_count(TreeData& tree, Loc loc) {
  const Operation operation("active_count", tree, loc);
  return with_indices(tree, tree,
                      [&]<int N, class I>(Rank<N>, I) { return count_active<I, N>(tree, loc); });
}

TreeStats stats(TreeData& tree, Loc loc) {
  TreeStats out;
  out.active = active_count(tree, loc);
  const std::vector<uint32_t> state = read_state(tree);
  out.lists_made = state[ir::tree::made];
  std::lock_guard lock(tree.mutex);
  out.bytes = bytes_of({tree.state.get(), tree.counts.get()});
  size_t level = 0;
  int64_t bytes_above = 0;
  for (size_t p = 0; p < tree.pools.size(); p++) {
    const uint32_t* word = state.data() + p * ir::tree::words_of_pool;
    int64_t live = p > 0 ? live_cells(tree.pools[p], word) : 1;
    int64_t room = p > 0 ? int64_t(word[ir::tree::cells]) - ir::tree::first_slot : 1;
    if (tree.pools[p].is_hashed()) out.levels.push_back({text_of(tree.levels[level++]), 1, 1, 0});
    for (const ir::Placement::Level& one : tree.pools[p].levels) {
      // Of lists those chunks are cells that are there.
      const bool numbers_chunks = tree.pools.back().has_lists() && p + 1 == tree.last() &&
                                  &one == &tree.pools[p].levels.back();
      if (!numbers_chunks) out.levels.push_back({text_of(tree.levels[level++]), live, room, 0});
      for (int axis = 0; axis < tree.rank; axis++)
        live *= one.extent[axis], room *= one.extent[axis];
    }
    // Below a pointer that is the last level there are elements, and no level; above the chunks of
    // what is one list there is none.
    (out.levels.empty() ? bytes_above : out.levels.back().bytes) += bytes_of(tree, p);
    out.bytes += bytes_of(tree, p);
  }
  out.levels[0].bytes += bytes_above;
  return out;
}

std::string describe(TreeData& tree, Loc loc) {
  const TreeStats all = stats(tree, loc);
  std::string text;
  for (const TreeStats::Level& level : all.levels)
    text += level.name + ": " + std::to_string(level.cells) + " of " + std::to_string(level.room) +
            (level.room == 1 ? " cell, " : " cells, ") + bytes_text(level.bytes) + "\n";
  return text + std::to_string(all.active) + " active elements, " + bytes_text(all.bytes) + "\n";
}

}  // namespace quern::detail
