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

/// So many children a level has room for in the beginning, unless that makes very few cells or many.
constexpr int64_t usual = 1 << 20;

std::vector<int64_t> numbers(std::initializer_list<Extent> given, const char* what, int rank,
                             Loc loc) {
  if (given.size() != 0 && int(given.size()) != rank)
    throw Error(loc, std::string("a tree of ") + std::to_string(rank) + " axes is given " +
                         std::to_string(given.size()) + " " + what);
  std::vector<int64_t> out;
  for (const Extent& e : given) out.push_back(e.n);
  return out;
}

std::shared_ptr<Storage> array(const TreeData& tree, int64_t size, size_t components = 1,
                               ir::Type type = ir::Type::u32) {
  return std::make_shared<Storage>(tree.device, std::vector<ir::Storage>(components, {type, type}),
                                   std::vector<int64_t>{size}, tree.loc);
}

/// How long the table is that a hashed root has for so many children in the beginning.
int64_t make_entries(TreeData& tree, int64_t children) {
  const int64_t entries = entries_for(children) + words::first_entry;
  tree.keys = array(tree, entries * tree.pools[0].key_words());
  return entries;
}

void make_parts(TreeData& tree, int64_t wanted) {
  tree.parts.resize(tree.pools.size());
  tree.state = array(tree, int64_t(tree.pools.size() * words::words_of_pool));
  std::vector<uint32_t> state(tree.pools.size() * words::words_of_pool, 0);
  const uint32_t lost = words::lost_cell;
  int64_t possible = 1;
  for (size_t p = 0; p < tree.pools.size(); p++) {
    TreeData::Parts& parts = tree.parts[p];
    Placement::Pool& pool = tree.pools[p];
    parts.possible = possible;
    const int64_t room = wanted ? wanted : std::clamp<int64_t>(usual / pool.children, 16, 4096);
    if (p > 0) {
      parts.cells = std::min(possible, room) + words::first_slot;
      pool.direct = possible <= room && tree.pools[p - 1].direct && !tree.pools[p - 1].is_hashed();
    }
    const int64_t children =
        pool.is_hashed() ? make_entries(tree, room) : parts.cells * int64_t(pool.children);

    parts.list = array(tree, parts.cells);
    parts.places = array(tree, parts.cells, size_t(tree.rank), place_type(tree));
    uint32_t* word = state.data() + p * words::words_of_pool;
    word[words::cells] = uint32_t(parts.cells);
    if (p < tree.last()) parts.table = array(tree, children);
    if (pool.is_hashed()) parts.table->write(&lost, words::lost_entry, 1, tree.loc);
    if (p > 0) parts.owners = array(tree, parts.cells, 1, ir::Type::i64);
    if (p > 0 && !pool.direct) {
      std::vector<uint32_t> free(size_t(parts.cells) - words::first_slot);
      std::iota(free.begin(), free.end(), words::first_slot);
      parts.ring = array(tree, ring_length(parts.cells));
      parts.ring->write(free.data(), 0, int64_t(free.size()), tree.loc);
      word[words::given] = word[words::limit] = uint32_t(free.size());
      parts.free = int64_t(free.size());
      // Whatever is below the lost cell is lost.
      const std::vector<uint32_t> all_lost(pool.children, lost);
      if (parts.table) parts.table->write(all_lost.data(), pool.children, pool.children, tree.loc);
    }
    possible =
        pool.is_hashed() ? most_cells : std::min<int64_t>(possible * pool.children, most_cells);
  }
  const int64_t units = activity_words(tree);
  tree.mask = array(tree, units);
  tree.listed = array(tree, units);
  tree.ending = array(tree, units);
  state[words::count] = 1;  // the root
  state[words::changed] = 1;
  tree.state->write(state.data(), 0, int64_t(state.size()), tree.loc);
  tree.counts = array(tree, list_chunks + list_groups);
}

}  // namespace

std::shared_ptr<Storage> TreeData::part(const std::string& name) const {
  if (name == words::state) return state;
  if (name == words::keys) return keys;
  if (name == words::neighbours) return neighbours();
  if (name == words::mask) return mask;
  if (name == words::listed) return listed;
  if (name == words::ending) return ending;
  for (size_t p = 0; p < pools.size(); p++) {
    if (name == words::table(p)) return parts[p].table;
    if (name == words::ring(p)) return parts[p].ring;
    if (name == words::owners(p)) return parts[p].owners;
    if (name == words::list(p)) return parts[p].list;
    if (name == words::places(p)) return parts[p].places;
  }
  return nullptr;
}

/// Made when a kernel first asks for it, and anew where there are more cells since. Nobody keeps what it
/// held: a task fills it before each that reads it.
std::shared_ptr<Storage> TreeData::neighbours() const {
  std::lock_guard lock(mutex);
  int64_t size = parts.back().cells;
  for (int axis = 0; axis < rank; axis++) size *= 3;
  if (!made_neighbours || made_neighbours->size() != size) made_neighbours = array(*this, size);
  return made_neighbours;
}

TreeData::Elementwise TreeData::elements() const {
  Elementwise out{{}, shape, firsts};
  out.layout.pools = pools;
  out.layout.cut = cut;
  out.layout.wide = wide;
  return out;
}

std::shared_ptr<Storage> TreeData::like(const Storage& field, std::vector<ir::Storage> components,
                                        const runtime::Element& element, const Layout& layout,
                                        Loc at) {
  const auto of = [&] {
    std::lock_guard lock(mutex);
    for (const Elements& known : fields)
      if (const auto elements = known.storage.lock();
          elements && elements->owner() == field.owner())
        return known.of;
    throw InternalError("a tree does not know a field that is on it");
  }();
  const std::vector<std::byte> zero(element.bytes);
  return make_storage(shared_from_this(), of, std::move(components), element, layout, zero.data(),
                      at);
}

std::vector<std::shared_ptr<Storage>*> TreeData::all_parts() {
  std::vector<std::shared_ptr<Storage>*> all = {&state, &keys, &mask, &listed, &ending};
  for (Parts& p : parts)
    for (auto* part : {&p.table, &p.ring, &p.owners, &p.list, &p.places}) all.push_back(part);
  std::erase_if(all, [](const auto* part) { return !*part; });
  return all;
}

std::vector<const Storage*> TreeData::all_parts() const {
  std::vector<const Storage*> all;
  for (const auto* part : const_cast<TreeData*>(this)->all_parts()) all.push_back(part->get());
  return all;
}

std::vector<uint64_t> TreeData::part_versions() const {
  std::vector<uint64_t> all;
  for (const Storage* part : all_parts()) all.push_back(part->version());
  return all;
}

uint64_t TreeData::kept_bytes() const {
  uint64_t bytes = 0;
  for (const Storage* part : all_parts())
    if (part->is_snapshot()) bytes += part->contents({}).bytes();
  return bytes;
}

bool TreeData::has(const runtime::Tree* snapshot) const {
  std::lock_guard lock(mutex);
  const auto known = taken.lock();
  return known && known.get() == snapshot && !may_have_changed && versions == part_versions();
}

std::shared_ptr<runtime::Tree> TreeData::snapshot(Loc at) {
  refresh(at);
  std::lock_guard lock(mutex);
  std::vector<uint64_t> now = part_versions();
  if (auto known = taken.lock(); known && versions == now) return known;
  auto made = std::make_shared<TreeData>();
  made->device = device;
  made->rank = rank;
  made->levels = levels;
  made->pools = pools;
  made->cut = cut;
  made->wide = wide;
  made->shape = shape;
  made->firsts = firsts;
  made->loc = loc;
  made->parts = parts;
  made->state = state;
  made->keys = keys;
  made->mask = mask;
  made->listed = listed;
  made->ending = ending;
  for (std::shared_ptr<Storage>* part : made->all_parts()) *part = (*part)->snapshot(at);
  made->may_have_changed = false;
  taken = made;
  versions = std::move(now);
  return made;
}

void TreeData::refresh(Loc at) {
  std::lock_guard lock(listing);
  if (!may_have_changed.exchange(false)) return;
  const runtime::LaunchCall call(runtime::LaunchCall::upkeep);
  make_lists(*this, at);
  if (pools.back().has_mask() || pools.back().has_lists()) listed->copy_from(*mask, at);
}

std::shared_ptr<TreeData> make_tree(std::shared_ptr<runtime::Device> device, int rank,
                                    std::span<const TreeLevel> levels, std::vector<int64_t> shape,
                                    std::vector<int64_t> firsts, int64_t cells, Loc loc) {
  expect_no_recording("making a tree", loc);
  auto tree = std::make_shared<TreeData>();
  tree->device = std::move(device);
  tree->rank = rank;
  tree->loc = loc;
  tree->shape = std::move(shape);
  tree->firsts = std::move(firsts);
  set_levels(*tree, levels);
  if (cells < 0) throw Error(loc, "a tree with room for " + std::to_string(cells) + " cells");
  make_parts(*tree, cells);
  return tree;
}

std::shared_ptr<TreeData> make_tree(DeviceObject* device, int rank, const TreeLevel* levels,
                                    size_t count, const TreeOptions& options, Loc loc) {
  return make_tree(device ? device->device : runtime::Device::standard(loc), rank, {levels, count},
                   numbers(options.shape, "extents", rank, loc),
                   numbers(options.offset, "first indices", rank, loc), options.cells, loc);
}

namespace {

FieldObject* make_field_of(const std::shared_ptr<TreeData>& tree, const TreeData::Elementwise& of,
                           FieldType type, const Layout& layout, const void* background, Loc loc) {
  expect_no_recording("making a field on a tree", loc);
  if (layout.level_count != 0 || layout.axes.count != 0 || layout.firsts.count != 0)
    throw Error(loc,
                "the elements of a field on a tree lie as the tree's levels say; its layout says "
                "only whether components lie apart or together (aos)");
  const ElementType& e = type.element;
  auto field = std::make_unique<FieldObject>();
  field->type = type;
  field->loc = loc;
  field->storage =
      make_storage(tree, of, stored(type),
                   {uint32_t(e.bytes), std::vector<uint32_t>(e.offsets, e.offsets + e.count)},
                   layout, background, loc);
  return field.release();
}

}  // namespace

FieldObject* make_tree_field(const std::shared_ptr<TreeData>& tree, FieldType type,
                             const Layout& layout, const void* background, Loc loc) {
  return make_field_of(tree, tree->elements(), type, layout, background, loc);
}

FieldObject* make_level_field(const std::shared_ptr<TreeData>& tree, int level, FieldType type,
                              const Layout& layout, const void* background, Loc loc) {
  return make_field_of(tree, cells_of_level(*tree, level, loc), type, layout, background, loc);
}

void expect_level(const TreeData& tree, int level, int64_t* extents, Loc loc) {
  const ir::Placement layout = cells_of_level(tree, level, loc).layout;
  for (int axis = 0; axis < tree.rank; axis++) extents[axis] = layout.cell[axis];
}

std::shared_ptr<Storage> make_storage(const std::shared_ptr<TreeData>& tree,
                                      const TreeData::Elementwise& of,
                                      std::vector<ir::Storage> components,
                                      const runtime::Element& element, const Layout& layout,
                                      const void* background, Loc loc) {
  const size_t pool = of.layout.pools.size() - 1;
  const Placement::Pool& own = of.layout.pools.back();
  // Growing would miss a field that it does not know yet.
  std::lock_guard lock(tree->mutex);
  const int64_t size = tree->parts[pool].cells * int64_t(own.children);
  auto elements = std::make_shared<Storage>(tree->device, std::move(components),
                                            std::vector<int64_t>{size}, loc, layout, element);
  elements->fill(background, loc);
  std::erase_if(tree->fields, [](const auto& f) { return f.storage.expired(); });
  const auto* bytes = static_cast<const std::byte*>(background);
  const bool ends_with_cells =
      pool < tree->last() || (tree->pools.back().has_mask() && !own.has_mask());
  tree->fields.push_back({elements,
                          {bytes, bytes + element.bytes},
                          element.offsets,
                          pool,
                          own.children,
                          own.unit,
                          ends_with_cells,
                          of});
  return Storage::on_tree(tree, std::move(elements), of.layout, of.shape, of.firsts, loc);
}

}  // namespace quern::detail
