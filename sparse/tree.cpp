// Making trees and fields on them.
#include "sparse/tree.h"

#include <algorithm>
#include <numeric>

#include "dsl/recording.h"
#include "quern/ir/trees.h"
#include "quern/runtime/observer.h"

namespace quern::detail {

namespace {

using ir::Placement;
namespace words = ir::tree;

constexpr int64_t most_children = 1 << 24;
/// So many children a level has room for in the beginning, unless that makes very few cells or many.
constexpr int64_t usual = 1 << 20;

const char* name_of(TreeLevel::Kind kind) {
  constexpr const char* names[] = {"dense", "bitmasked", "pointer"};
  return names[kind];
}

/// The level with an extent for each axis.
TreeLevel spread(TreeLevel level, int rank, Loc loc) {
  if (level.count != 1 && level.count != rank)
    throw Error(loc, std::string(name_of(level.kind)) + " is given " + std::to_string(level.count) +
                         " extents, on a tree of " + std::to_string(rank) +
                         (rank == 1 ? " axis" : " axes"));
  for (int k = level.count; k < rank; k++) level.n[k] = level.n[0];
  level.count = rank;
  int64_t children = 1;
  for (int k = 0; k < rank; k++) {
    if (level.n[k] < 1)
      throw Error(loc, std::string(name_of(level.kind)) + " has the extent " +
                           std::to_string(level.n[k]) + " along axis " + std::to_string(k) +
                           "; it is 1 or more");
    children *= level.n[k];
    if (children > most_children)
      throw Error(loc, std::string(name_of(level.kind)) +
                           " has cells of more than 2^24 children; split it into two levels");
  }
  return level;
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

/// A pool for what lies between one pointer level and the next.
std::vector<Placement::Pool> pools_of(const std::vector<TreeLevel>& levels, Loc loc) {
  std::vector<Placement::Pool> pools(1);
  std::vector<std::vector<TreeLevel>> groups(1);
  for (const TreeLevel& level : levels) {
    groups.back().push_back(level);
    if (level.kind == TreeLevel::pointer) groups.emplace_back();
  }
  pools.resize(groups.size());
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

std::vector<int64_t> numbers(std::initializer_list<Extent> given, const char* what, int rank,
                             Loc loc) {
  if (given.size() != 0 && int(given.size()) != rank)
    throw Error(loc, std::string("a tree of ") + std::to_string(rank) + " axes is given " +
                         std::to_string(given.size()) + " " + what);
  std::vector<int64_t> out;
  for (const Extent& e : given) out.push_back(e.n);
  return out;
}

void measure(TreeData& tree, const TreeOptions& options) {
  tree.shape = numbers(options.shape, "extents", tree.rank, tree.loc);
  tree.firsts = numbers(options.offset, "first indices", tree.rank, tree.loc);
  if (tree.firsts.empty()) tree.firsts.assign(size_t(tree.rank), 0);
  std::vector<int64_t> whole(size_t(tree.rank), 1);
  for (int axis = 0; axis < tree.rank; axis++)
    for (const TreeLevel& level : tree.levels)
      if ((whole[size_t(axis)] *= level.n[axis]) > INT32_MAX)
        throw Error(tree.loc, "the levels of the tree have more than 2^31 elements along axis " +
                                  std::to_string(axis));
  if (tree.shape.empty()) tree.shape = whole;
  for (size_t axis = 0; axis < whole.size(); axis++) {
    if (tree.shape[axis] < 0 || tree.shape[axis] > whole[axis])
      throw Error(tree.loc, "a tree of shape " + runtime::shape_text(tree.shape) +
                                ", whose levels have room for " + runtime::shape_text(whole));
    if (std::abs(tree.firsts[axis]) > 1 << 30)
      throw Error(tree.loc, "an offset of " + std::to_string(tree.firsts[axis]) +
                                "; indices start within ±2^30");
    tree.cut |= tree.shape[axis] != whole[axis];
  }
}

std::shared_ptr<Storage> array(const TreeData& tree, int64_t size, size_t components = 1,
                               ir::Type type = ir::Type::u32) {
  return std::make_shared<Storage>(tree.device, std::vector<ir::Storage>(components, {type, type}),
                                   std::vector<int64_t>{size}, tree.loc);
}

void make_parts(TreeData& tree, int64_t wanted) {
  tree.parts.resize(tree.pools.size());
  tree.state = array(tree, int64_t(tree.pools.size() * words::words_of_pool));
  std::vector<uint32_t> state(tree.pools.size() * words::words_of_pool, 0);
  int64_t possible = 1;
  for (size_t p = 0; p < tree.pools.size(); p++) {
    TreeData::Parts& parts = tree.parts[p];
    Placement::Pool& pool = tree.pools[p];
    parts.possible = possible;
    if (p > 0) {
      const int64_t room = wanted ? wanted : std::clamp<int64_t>(usual / pool.children, 16, 4096);
      parts.cells = std::min(possible, room) + words::first_slot;
      pool.direct = possible <= room && (p == 1 || tree.pools[p - 1].direct);
    }
    const int64_t children = parts.cells * int64_t(pool.children);

    parts.list = array(tree, parts.cells);
    parts.places = array(tree, parts.cells, size_t(tree.rank), ir::Type::i32);
    uint32_t* word = state.data() + p * words::words_of_pool;
    word[words::cells] = uint32_t(parts.cells);
    if (p < tree.last()) parts.table = array(tree, children);
    if (p > 0) parts.owners = array(tree, parts.cells, 1, ir::Type::i64);
    if (p > 0 && !pool.direct) {
      std::vector<uint32_t> free(size_t(parts.cells) - words::first_slot);
      std::iota(free.begin(), free.end(), words::first_slot);
      parts.ring = array(tree, ring_length(parts.cells));
      parts.ring->write(free.data(), 0, int64_t(free.size()), tree.loc);
      word[words::given] = word[words::limit] = uint32_t(free.size());
      parts.free = int64_t(free.size());
      // Whatever is below the lost cell is lost.
      std::vector<uint32_t> lost(pool.children, words::lost_cell);
      if (parts.table) parts.table->write(lost.data(), pool.children, pool.children, tree.loc);
    }
    possible = std::min<int64_t>(possible * pool.children, int64_t(1) << 31);
  }
  const int64_t units = mask_words(tree.parts.back().cells *
                                   int64_t(tree.pools.back().children / tree.pools.back().unit));
  tree.mask = array(tree, units);
  tree.listed = array(tree, units);
  tree.ending = array(tree, units);
  state[words::count] = 1;  // the root
  state[words::changed] = 1;
  tree.state->write(state.data(), 0, int64_t(state.size()), tree.loc);
  tree.counts = array(tree, 1024);
}

}  // namespace

std::shared_ptr<Storage> TreeData::part(const std::string& name) const {
  if (name == words::state) return state;
  if (name == words::list) return parts.back().list;
  if (name == words::mask) return mask;
  if (name == words::listed) return listed;
  if (name == words::ending) return ending;
  if (name == words::places) return parts.back().places;
  for (size_t p = 0; p < pools.size(); p++) {
    if (name == words::table(p)) return parts[p].table;
    if (name == words::ring(p)) return parts[p].ring;
    if (name == words::owners(p)) return parts[p].owners;
  }
  return nullptr;
}

void TreeData::refresh(Loc at) {
  if (!may_have_changed.exchange(false)) return;
  const runtime::LaunchCall call(runtime::LaunchCall::upkeep);
  make_lists(*this, at);
  if (pools.back().has_mask()) listed->copy_from(*mask, at);
}

std::shared_ptr<TreeData> make_tree(DeviceObject* device, int rank, const TreeLevel* levels,
                                    size_t count, const TreeOptions& options, Loc loc) {
  expect_no_recording("making a tree", loc);
  auto tree = std::make_shared<TreeData>();
  tree->device = device ? device->device : runtime::Device::standard(loc);
  tree->rank = rank;
  tree->loc = loc;
  if (count == 0) throw Error(loc, "a tree without levels");
  for (size_t k = 0; k < count; k++) tree->levels.push_back(spread(levels[k], rank, loc));
  tree->pools = pools_of(tree->levels, loc);
  measure(*tree, options);
  if (options.cells < 0)
    throw Error(loc, "a tree with room for " + std::to_string(options.cells) + " cells");
  tree->pools[0].direct = true;  // the root is its own slot
  make_parts(*tree, options.cells);
  return tree;
}

FieldObject* make_tree_field(const std::shared_ptr<TreeData>& tree, FieldType type,
                             const Layout& layout, const void* background, Loc loc) {
  expect_no_recording("making a field on a tree", loc);
  if (layout.level_count != 0 || layout.axes.count != 0 || layout.firsts.count != 0)
    throw Error(loc,
                "the elements of a field on a tree lie as the tree's levels say; its layout says "
                "only whether components lie apart or together (aos)");
  const ElementType& e = type.element;
  const int64_t size = tree->parts.back().cells * int64_t(tree->pools.back().children);
  auto elements = std::make_shared<Storage>(
      tree->device, stored(type), std::vector<int64_t>{size}, loc, layout,
      runtime::Element{uint32_t(e.bytes), std::vector<uint32_t>(e.offsets, e.offsets + e.count)});
  elements->fill(background, loc);
  {
    std::lock_guard lock(tree->mutex);
    std::erase_if(tree->fields, [](const auto& f) { return f.storage.expired(); });
    const auto* bytes = static_cast<const std::byte*>(background);
    tree->fields.push_back({elements, {bytes, bytes + e.bytes}, {e.offsets, e.offsets + e.count}});
  }
  auto field = std::make_unique<FieldObject>();
  field->type = type;
  field->loc = loc;
  field->storage = Storage::on_tree(tree, std::move(elements), tree->pools, tree->cut, tree->shape,
                                    tree->firsts, loc);
  return field.release();
}

std::string describe(TreeData& tree) {
  const std::vector<uint32_t> state = read_state(tree);
  std::string text;
  size_t p = 0;
  for (const TreeLevel& level : tree.levels) {
    text += std::string(name_of(level.kind)) + "(";
    for (int k = 0; k < level.count; k++) text += (k ? ", " : "") + std::to_string(level.n[k]);
    text += ")";
    if (level.kind == TreeLevel::pointer) {
      const uint32_t* word = state.data() + ++p * words::words_of_pool;
      text += ": " + std::to_string(live_cells(tree.pools[p], word)) + " of " +
              std::to_string(word[words::cells] - words::first_slot) + " cells";
    }
    text += "\n";
  }
  return text;
}

}  // namespace quern::detail
