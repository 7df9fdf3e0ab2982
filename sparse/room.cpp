// Room on a tree: how many cells its levels have, how many of them are free, and how they get more.
#include <algorithm>
#include <bit>
#include <numeric>

#include "quern/ir/trees.h"
#include "quern/runtime/observer.h"
#include "sparse/parts.h"

namespace quern::detail {

namespace words = ir::tree;

namespace {

/// Room is made for so many cells that a task may take, unless it is known that it wants them.
constexpr uint64_t most_at_once = 1 << 22;
/// Of a task of which nobody knows that, for so many at least, and as many as there is room for already.
constexpr int64_t least_of_unknown = 1024;

const uint32_t* words_of(const std::vector<uint32_t>& state, size_t pool) {
  return state.data() + pool * words::words_of_pool;
}

/// Who found no free slot has counted on.
uint32_t free_cells(const uint32_t* word) {
  const uint32_t over = word[words::taken] - word[words::limit];
  const uint32_t taken = int32_t(over) > 0 ? word[words::limit] : word[words::taken];
  return word[words::given] - taken;
}

/// Entries of a hashed root's table, of which half are to be in use at most.
int64_t entries_of(const TreeData& tree) {
  return tree.parts[0].table->size() - words::first_entry;
}

/// Learns what a wait has shown.
void note(TreeData& tree, const std::vector<uint32_t>& state) {
  if (tree.pools[0].is_hashed())
    tree.parts[0].free = entries_of(tree) / 2 - int64_t(words_of(state, 0)[words::taken]);
  for (size_t p = 1; p < tree.parts.size(); p++)
    tree.parts[p].free = free_cells(words_of(state, p));
}

/// Can the pool run short, of cells or, the root, of entries?
bool is_limited(const ir::Placement::Pool& pool) { return !pool.direct || pool.is_hashed(); }

bool take(TreeData& tree, uint64_t takes) {
  for (size_t p = 0; p < tree.parts.size(); p++)
    if (is_limited(tree.pools[p]) &&
        (tree.parts[p].free < 0 || uint64_t(tree.parts[p].free) < takes))
      return false;
  for (TreeData::Parts& p : tree.parts) p.free -= int64_t(takes);
  return true;
}

void set_word(TreeData& tree, size_t pool, uint32_t word, uint32_t value, Loc loc) {
  tree.state->write(&value, int64_t(pool * words::words_of_pool + word), 1, loc);
}

}  // namespace

uint32_t live_cells(const ir::Placement::Pool& pool, const uint32_t* word) {
  if (pool.direct) return word[words::taken] - word[words::given];
  return word[words::cells] - words::first_slot - free_cells(word);
}

int64_t activity_words(const TreeData& tree, size_t pool, int64_t cells) {
  const ir::Placement::Pool& leaf = tree.pools.back();
  if (pool != tree.last() - (leaf.has_lists() ? 1 : 0)) return 0;
  if (leaf.has_lists()) return cells * int64_t(tree.pools[pool].children / leaf.chunks);
  return mask_words(cells * int64_t(leaf.children / leaf.unit));
}

int64_t activity_words(const TreeData& tree) {
  const size_t pool = tree.last() - (tree.pools.back().has_lists() ? 1 : 0);
  return activity_words(tree, pool, tree.parts[pool].cells);
}

int64_t ring_length(int64_t cells) {
  return std::max(int64_t(std::bit_ceil(uint64_t(2 * cells))), int64_t(2));
}

int64_t entries_for(int64_t children) { return std::max(ring_length(children), int64_t(32)); }

std::vector<uint32_t> read_state(const TreeData& tree) {
  std::vector<uint32_t> state(tree.pools.size() * words::words_of_pool);
  tree.state->read(state.data(), 0, int64_t(state.size()));
  return state;
}

bool TreeData::has_room(uint64_t takes, Loc) {
  std::lock_guard lock(mutex);
  if (std::ranges::none_of(pools, is_limited) || take(*this, takes)) return true;
  note(*this, read_state(*this));
  return take(*this, takes);
}

bool TreeData::has_all(Loc at) {
  std::lock_guard lock(mutex);
  const std::vector<uint32_t> now = read_state(*this);
  bool all = true;
  for (size_t p = 0; p < parts.size(); p++) {
    const uint32_t* word = words_of(now, p);
    // A table that is too full is slow.
    if (pools[p].is_hashed() && int64_t(word[words::taken]) > entries_of(*this) / 2)
      grow_entries(*this, live_cells(pools[1], words_of(now, 1)) + word[words::need], at);
    if (!word[words::short_of]) continue;
    all = false;
    // Some slots may be free again that others took in vain.
    if (p > 0 && (word[words::need] > free_cells(word) || free_cells(word) == 0))
      grow(*this, p, std::max(2 * parts[p].cells, parts[p].cells + word[words::need]), at);
    set_word(*this, p, words::need, 0, at);
    set_word(*this, p, words::short_of, 0, at);
  }
  note(*this, all ? now : read_state(*this));
  return all;
}

void TreeData::make_room(uint64_t takes, Loc at) {
  std::lock_guard lock(mutex);
  note(*this, read_state(*this));
  for (size_t p = 0; p < parts.size(); p++) {
    // As many as are taken in vain, too; no more than each cell there can be, and another in vain.
    const int64_t most = takes ? int64_t(std::min<uint64_t>(takes, most_at_once))
                               : std::max(parts[p].cells, least_of_unknown);
    const int64_t wanted = std::min(most, 2 * parts[p].possible + least_of_unknown);
    if (pools[p].is_hashed() && parts[p].free < wanted) grow_entries(*this, wanted, at);
    if (!pools[p].direct && parts[p].free < wanted)
      grow(*this, p, parts[p].cells + wanted - parts[p].free, at);
  }
  // How many of them the task takes, nobody knows: the next one asks.
  for (Parts& p : parts) p.free = 0;
}

void grow(TreeData& tree, size_t pool, int64_t cells, Loc loc) {
  TreeData::Parts& parts = tree.parts[pool];
  if (cells > most_cells) {
    if (parts.cells >= most_cells)
      throw Error(loc, "level " + std::to_string(pool) + " of the tree made at " +
                           std::string(tree.loc.file) + ":" + std::to_string(tree.loc.line) +
                           " has 2^31 cells, and more become active here");
    cells = most_cells;
  }
  const runtime::LaunchCall call(runtime::LaunchCall::upkeep);
  const ir::Placement::Pool& shape = tree.pools[pool];
  const int64_t children = cells * int64_t(shape.children);
  const std::byte none[32] = {};
  if (parts.table) parts.table->grow(children, none, loc);
  parts.owners->grow(cells, none, loc);
  parts.list->grow(cells, none, loc);
  parts.places->grow(cells, none, loc);
  for (const TreeData::Elements& field : tree.fields)
    if (const std::shared_ptr<Storage> elements = field.storage.lock())
      if (field.pool == pool && !elements->released())
        elements->grow(cells * int64_t(field.children), field.background.data(), loc);

  // The ring: what was free, and the new slots.
  std::vector<uint32_t> state = read_state(tree);
  uint32_t* word = state.data() + pool * words::words_of_pool;
  std::vector<uint32_t> ring(size_t(parts.ring->size())), free;
  parts.ring->read(ring.data(), 0, parts.ring->size());
  const uint32_t count = free_cells(word);
  for (uint32_t k = word[words::given] - count; k != word[words::given]; k++)
    free.push_back(ring[k & (ring.size() - 1)]);
  for (int64_t slot = parts.cells; slot < cells; slot++) free.push_back(uint32_t(slot));
  if (ring_length(cells) > parts.ring->size()) parts.ring->grow(ring_length(cells), none, loc);
  parts.ring->write(free.data(), 0, int64_t(free.size()), loc);
  word[words::taken] = 0;
  word[words::given] = word[words::limit] = uint32_t(free.size());
  word[words::cells] = uint32_t(cells);
  parts.cells = cells;
  parts.free = int64_t(free.size());
  if (const int64_t length = activity_words(tree); length > tree.mask->size())
    for (Storage* of : {tree.mask.get(), tree.listed.get(), tree.ending.get()})
      of->grow(length, none, loc);
  tree.state->write(state.data(), 0, int64_t(state.size()), loc);
}

namespace {

/// A new table with entries for the root's children and so many more, `least` words long at least.
void renew_entries(TreeData& tree, int64_t children, int64_t least, Loc loc) {
  const runtime::LaunchCall call(runtime::LaunchCall::upkeep);
  TreeData::Parts &root = tree.parts[0], &cells = tree.parts[1];
  const size_t key_words = tree.pools[0].key_words();
  std::vector<uint32_t> keys(size_t(tree.keys->size())), table(size_t(root.table -> size()));
  tree.keys->read(keys.data(), 0, tree.keys->size());
  root.table->read(table.data(), 0, root.table->size());
  std::vector<int64_t> owners(size_t(cells.cells));
  cells.owners->read(owners.data(), 0, cells.cells);

  // Entries whose cells are gone, go.
  std::vector<size_t> live;
  for (size_t e = words::first_entry; e < table.size(); e++)
    if (table[e] != words::no_cell) live.push_back(e);
  const int64_t length =
      std::max(entries_for(int64_t(live.size()) + children) + words::first_entry, least);
  if (length > most_cells)
    throw Error(loc, "the hash level of the tree made at " + std::string(tree.loc.file) + ":" +
                         std::to_string(tree.loc.line) +
                         " has 2^31 entries, and more become active here");
  std::vector<uint32_t> new_keys(size_t(length) * key_words, 0), new_table(size_t(length), 0);
  new_table[words::lost_entry] = words::lost_cell;
  for (size_t e : live) {
    const std::vector<uint32_t> key(&keys[e * key_words], &keys[e * key_words] + key_words);
    const int64_t at = entry_of(length, key, [&](int64_t k) { return new_keys[size_t(k)]; });
    std::ranges::copy(key, &new_keys[size_t(at) * key_words]);
    new_table[size_t(at)] = table[e];
    if (table[e] >= words::first_slot) owners[table[e]] = at;
  }
  if (length != root.table->size()) {
    auto longer = root.table->resized(length, loc);
    tree.keys = tree.keys->resized(length * int64_t(key_words), loc);
    root.table = std::move(longer);
  }
  root.table->write(new_table.data(), 0, length, loc);
  tree.keys->write(new_keys.data(), 0, length * int64_t(key_words), loc);
  cells.owners->write(owners.data(), 0, cells.cells, loc);
  set_word(tree, 0, words::taken, uint32_t(live.size()), loc);
  root.free = (length - words::first_entry) / 2 - int64_t(live.size());
}

}  // namespace

void grow_entries(TreeData& tree, int64_t children, Loc loc) {
  renew_entries(tree, children, tree.parts[0].table->size(), loc);
}

void shrink_entries(TreeData& tree, Loc loc) { renew_entries(tree, 0, 0, loc); }

}  // namespace quern::detail
