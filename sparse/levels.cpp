// What the levels of a tree come to: how far it reaches, and its pools.
#include <algorithm>
#include <climits>

#include "sparse/tree.h"

namespace quern::detail {

namespace {

using ir::Placement;

constexpr int64_t most_children = 1 << 24;
/// Where the root is hashed: so far an axis reaches, and where no shape says how far.
constexpr int64_t farthest = int64_t(1) << 62, usual_extent = INT_MAX,
                  usual_first = -(int64_t(1) << 30);

[[noreturn]] void refuse(const TreeLevel& level, const std::string& why, Loc loc) {
  throw Error(loc, name_of(level.kind) + (" " + why));
}

/// The level with an extent for each axis; a hash level has none. Of one that has them, itself.
TreeLevel spread(TreeLevel level, int rank, Loc loc) {
  if (level.kind == TreeLevel::hash) return level;
  if (level.kind == TreeLevel::dynamic) {
    if (level.count == 1) {
      const int most = std::exchange(level.n[0], 1);
      std::fill_n(level.n, rank, 1);
      level.n[rank - 1] = most;
      level.count = rank;
    }
    for (int k = 0; k + 1 < rank; k++)
      if (level.n[k] != 1)
        refuse(level,
               "has the extent " + std::to_string(level.n[k]) + " along axis " + std::to_string(k) +
                   "; lists are along the last axis alone",
               loc);
    if (level.chunk < 1 || level.chunk > most_children)
      refuse(level,
             "has chunks of " + std::to_string(level.chunk) + " elements; they have 1 to 2^24",
             loc);
  }
  if (level.count != 1 && level.count != rank)
    refuse(level,
           "is given " + std::to_string(level.count) + " extents, on a tree of " +
               std::to_string(rank) + (rank == 1 ? " axis" : " axes"),
           loc);
  for (int k = level.count; k < rank; k++) level.n[k] = level.n[0];
  level.count = rank;
  int64_t children = 1;
  for (int k = 0; k < rank; k++) {
    if (level.n[k] < 1)
      refuse(level,
             "has the extent " + std::to_string(level.n[k]) + " along axis " + std::to_string(k) +
                 "; it is 1 or more",
             loc);
    children *= level.n[k];
    if (children > most_children && level.kind != TreeLevel::dynamic)
      refuse(level, "has cells of more than 2^24 children; split it into two levels", loc);
  }
  return level;
}

void expect_place(const std::vector<TreeLevel>& levels, size_t at, int rank, Loc loc) {
  const TreeLevel& level = levels[at];
  if (level.kind == TreeLevel::hash && at != 0)
    refuse(level, "is the outermost level of a tree, and stands below another here", loc);
  if (level.kind == TreeLevel::hash && levels.size() == 1)
    refuse(level, "has no level below it that holds the elements", loc);
  if (level.kind != TreeLevel::dynamic) return;
  if (at + 1 != levels.size())
    refuse(level, "is the innermost level of a tree, and stands above another here", loc);
  for (size_t k = 0; k < at; k++)
    if (levels[k].kind != TreeLevel::hash && levels[k].n[rank - 1] != 1)
      refuse(level,
             std::string("has the last axis for its lists: the extent of ") +
                 name_of(levels[k].kind) + " along it is to be 1, and is " +
                 std::to_string(levels[k].n[rank - 1]),
             loc);
}

int chunks_of(const TreeLevel& lists, int rank) {
  return (lists.n[rank - 1] - 1) / lists.chunk + 1;
}

/// Lists are cells for their chunks, made as they grow.
std::vector<TreeLevel> in_cells(std::vector<TreeLevel> levels, int rank) {
  if (levels.back().kind != TreeLevel::dynamic) return levels;
  TreeLevel chunks = levels.back();
  chunks.kind = TreeLevel::pointer;
  chunks.n[rank - 1] = chunks_of(levels.back(), rank);
  levels.back().kind = TreeLevel::dense;
  levels.back().n[rank - 1] = levels.back().chunk;
  levels.insert(levels.end() - 1, chunks);
  return levels;
}

Placement::Level digits_of(const TreeLevel& level, uint32_t& children) {
  Placement::Level out;
  for (int axis = level.count; axis-- > 0;) {
    out.extent[axis] = uint32_t(level.n[axis]);
    out.stride[axis] = children;
    children *= uint32_t(level.n[axis]);
  }
  return out;
}

/// What lies between one level of cells and the next, level by level; a hash has no extents.
std::vector<std::vector<TreeLevel>> groups_of(std::span<const TreeLevel> levels) {
  std::vector<std::vector<TreeLevel>> groups(1);
  for (const TreeLevel& level : levels) {
    if (level.kind != TreeLevel::hash) groups.back().push_back(level);
    if (level.kind == TreeLevel::pointer || level.kind == TreeLevel::hash) groups.emplace_back();
  }
  return groups;
}

/// A pool for each.
std::vector<Placement::Pool> pools_of(const std::vector<TreeLevel>& levels, Loc loc) {
  const std::vector<std::vector<TreeLevel>> groups = groups_of(levels);
  std::vector<Placement::Pool> pools(groups.size());
  for (size_t p = 0; p < groups.size(); p++) {
    bool has_mask = p + 1 < groups.size();  // of a pool but the last the table says what exists
    uint64_t children = 1;
    for (const TreeLevel& level : groups[p])
      for (int k = 0; k < level.count; k++) children *= uint64_t(level.n[k]);
    if (children > uint64_t(most_children))
      throw Error(loc, "levels without a pointer between them have " + std::to_string(children) +
                           " children together; at most 2^24");
    uint32_t& count = pools[p].children;
    for (size_t k = groups[p].size(); k-- > 0;) {
      if (groups[p][k].kind == TreeLevel::bitmasked && !has_mask) {
        has_mask = true;
        pools[p].unit = count;
      }
      pools[p].levels.insert(pools[p].levels.begin(), digits_of(groups[p][k], count));
    }
    if (!has_mask || p + 1 < groups.size()) pools[p].unit = count;
  }
  return pools;
}

/// Elements of all levels but a hash along each axis.
std::vector<int64_t> reach(const std::vector<TreeLevel>& levels, int rank, Loc loc) {
  std::vector<int64_t> out(size_t(rank), 1);
  for (int axis = 0; axis < rank; axis++)
    for (const TreeLevel& level : levels)
      if (level.kind != TreeLevel::hash && (out[size_t(axis)] *= level.n[axis]) > INT_MAX)
        throw Error(loc, "the levels of the tree have more than 2^31 elements along axis " +
                             std::to_string(axis));
  return out;
}

/// Throws where the indices of an axis are more, or start elsewhere, than the levels allow.
void expect_within(const TreeData& tree, size_t axis, int64_t most) {
  const bool endless = tree.pools[0].is_hashed();
  if (tree.shape[axis] < 0 || tree.shape[axis] > most)
    throw Error(tree.loc, "a tree of shape " + runtime::shape_text(tree.shape) +
                              ", whose levels have room for " + std::to_string(most) +
                              " elements along axis " + std::to_string(axis));
  const int64_t limit = endless ? farthest : int64_t(1) << 30;
  if (tree.firsts[axis] > limit || tree.firsts[axis] < -limit)
    throw Error(tree.loc, "an offset of " + std::to_string(tree.firsts[axis]) +
                              "; indices start within ±2^" + (endless ? "62" : "30"));
  if (endless && tree.firsts[axis] > limit - tree.shape[axis])
    throw Error(tree.loc, "a tree of shape " + runtime::shape_text(tree.shape) + " from index " +
                              runtime::shape_text(tree.firsts) +
                              " on; indices are below 2^62 along axis " + std::to_string(axis));
}

/// What tree.shape and tree.firsts say; either may be empty.
void measure(TreeData& tree) {
  const size_t rank = size_t(tree.rank);
  const std::vector<int64_t> named = reach(tree.levels, tree.rank, tree.loc);
  const std::vector<int64_t> whole = reach(in_cells(tree.levels, tree.rank), tree.rank, tree.loc);
  const bool endless = tree.levels[0].kind == TreeLevel::hash;
  const bool has_lists = tree.levels.back().kind == TreeLevel::dynamic;
  const auto ends = [&](size_t axis) { return !endless || (has_lists && axis + 1 == rank); };
  if (tree.firsts.empty()) {
    const bool from_middle = endless && tree.shape.empty();
    for (size_t k = 0; k < rank; k++)
      tree.firsts.push_back(from_middle && !ends(k) ? usual_first : 0);
  }
  if (tree.shape.empty())
    for (size_t k = 0; k < rank; k++) tree.shape.push_back(ends(k) ? named[k] : usual_extent);
  for (size_t k = 0; k < rank; k++) {
    if (endless) {
      const int64_t cells = tree.shape[k] / whole[k] + (tree.shape[k] % whole[k] != 0);
      tree.pools[0].key[k] = ends(k) ? 0 : cells > int64_t(1) << 31 ? 2 : 1;
    }
    expect_within(tree, k, ends(k) ? named[k] : farthest);
    tree.cut |= tree.shape[k] != whole[k];
    tree.wide |= tree.shape[k] > INT_MAX || std::abs(tree.firsts[k]) > 1 << 30;
  }
  if (endless && !tree.pools[0].is_hashed())
    throw Error(tree.loc, "a tree whose only axis is that of its lists has none for hash");
}

}  // namespace

const char* name_of(TreeLevel::Kind kind) {
  constexpr const char* names[] = {"dense", "bitmasked", "pointer", "hash", "dynamic"};
  return names[kind];
}

void set_levels(TreeData& tree, std::span<const TreeLevel> levels) {
  if (levels.empty()) throw Error(tree.loc, "a tree without levels");
  for (const TreeLevel& level : levels) tree.levels.push_back(spread(level, tree.rank, tree.loc));
  for (size_t k = 0; k < levels.size(); k++) expect_place(tree.levels, k, tree.rank, tree.loc);
  tree.pools = pools_of(in_cells(tree.levels, tree.rank), tree.loc);
  if (tree.levels.back().kind == TreeLevel::dynamic)
    tree.pools.back().chunks = uint32_t(chunks_of(tree.levels.back(), tree.rank));
  tree.pools[0].direct = true;  // the root is its own slot
  measure(tree);
}

TreeData::Elementwise cells_of_level(const TreeData& tree, int level, Loc loc) {
  const int count = int(tree.levels.size());
  if (level < 1 || level >= count)
    throw Error(loc, "level " + std::to_string(level) + " of a tree of " + std::to_string(count) +
                         (count == 1 ? " level: its cells are its elements"
                                     : " levels: those with cells inside of the tree are 1 to " +
                                           std::to_string(count - 1)));
  const std::vector<TreeLevel> levels = in_cells(tree.levels, tree.rank);
  const auto groups = groups_of(std::span(levels).first(size_t(level)));
  const size_t pool = groups.size() - 1, kept = groups.back().size();
  TreeData::Elementwise out = tree.elements();
  out.layout.pools.resize(pool + 1);
  Placement::Pool& own = out.layout.pools.back();
  const uint32_t unit = own.unit;
  const bool has_mask = own.has_mask();
  for (size_t k = kept; k < own.levels.size(); k++)
    for (uint32_t n : std::span(own.levels[k].extent, size_t(tree.rank))) own.children /= n;
  const uint32_t inside = tree.pools[pool].children / own.children;
  own.levels.resize(kept);
  for (Placement::Level& digits : own.levels)
    for (uint32_t& stride : digits.stride) stride /= inside;
  own.unit = has_mask && kept > 0 ? unit / inside : own.children;
  if (kept > 0 && (pool != tree.last() || (has_mask && inside > unit)))
    throw Error(loc, "nothing says which cells of level " + std::to_string(level) +
                         " have active elements: all children of the " +
                         name_of(tree.levels[size_t(level) - 1].kind) +
                         " level around them are there with it; make that one pointer");
  for (size_t axis = 0; axis < size_t(tree.rank); axis++) {
    int64_t size = 1;
    for (size_t k = size_t(level); k < levels.size(); k++) size *= levels[k].n[axis];
    const int64_t first = out.firsts[axis];
    out.layout.cell[axis] = uint32_t(size);
    out.shape[axis] = out.shape[axis] / size + (out.shape[axis] % size != 0);
    out.firsts[axis] = first / size - (first % size < 0);
  }
  return out;
}

}  // namespace quern::detail
