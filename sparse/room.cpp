// Room on a tree: how many cells its levels have, how many of them are free, and how they get more.
#include <algorithm>
#include <numeric>

#include "quern/ir/trees.h"
#include "quern/runtime/observer.h"
#include "sparse/tree.h"

namespace quern::detail {

namespace words = ir::tree;

namespace {

/// Slots are numbers of 31 bits.
constexpr int64_t most_cells = int64_t(1) << 31;
/// Room is made for so many cells that a task may take, unless it is known that it wants them.
constexpr uint64_t most_at_once = 1 << 22;

const uint32_t* words_of(const std::vector<uint32_t>& state, size_t pool) {
  return state.data() + pool * words::words_of_pool;
}

/// Who found no free slot has counted on.
uint32_t free_cells(const uint32_t* word) {
  const uint32_t over = word[words::taken] - word[words::limit];
  const uint32_t taken = int32_t(over) > 0 ? word[words::limit] : word[words::taken];
  return word[words::given] - taken;
}

/// Learns what a wait has shown.
void note(TreeData& tree, const std::vector<uint32_t>& state) {
  for (size_t p = 1; p < tree.parts.size(); p++)
    tree.parts[p].free = free_cells(words_of(state, p));
}

bool take(TreeData& tree, uint64_t takes) {
  for (size_t p = 1; p < tree.parts.size(); p++)
    if (!tree.pools[p].direct && uint64_t(tree.parts[p].free) < takes) return false;
  for (size_t p = 1; p < tree.parts.size(); p++) tree.parts[p].free -= int64_t(takes);
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

int64_t mask_words(int64_t bits) { return (bits + 31) / 32; }

int64_t ring_length(int64_t cells) {
  int64_t n = 2;
  while (n < 2 * cells) n *= 2;
  return n;
}

std::vector<uint32_t> read_state(const TreeData& tree) {
  std::vector<uint32_t> state(tree.pools.size() * words::words_of_pool);
  tree.state->read(state.data(), 0, int64_t(state.size()));
  return state;
}

bool TreeData::has_room(uint64_t takes, Loc) {
  std::lock_guard lock(mutex);
  if (std::ranges::all_of(pools, &ir::Placement::Pool::direct) || take(*this, takes)) return true;
  note(*this, read_state(*this));
  return take(*this, takes);
}

bool TreeData::has_all(Loc at) {
  std::lock_guard lock(mutex);
  const std::vector<uint32_t> now = read_state(*this);
  bool all = true;
  for (size_t p = 1; p < parts.size(); p++) {
    const uint32_t* word = words_of(now, p);
    if (!word[words::short_of]) continue;
    all = false;
    // Some slots may be free again that others took in vain.
    if (word[words::need] > free_cells(word) || free_cells(word) == 0)
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
  for (size_t p = 1; p < parts.size(); p++) {
    // As many as are taken in vain, too.
    const auto wanted = int64_t(std::min<uint64_t>(takes, most_at_once));
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
  if (pool == tree.last())
    for (Storage* bits : {tree.mask.get(), tree.listed.get(), tree.ending.get()})
      bits->grow(mask_words(children / int64_t(shape.unit)), none, loc);
  parts.owners->grow(cells, none, loc);
  parts.list->grow(cells, none, loc);
  parts.places->grow(cells, none, loc);
  if (pool == tree.last())
    for (const TreeData::Elements& field : tree.fields)
      if (const std::shared_ptr<Storage> elements = field.storage.lock())
        if (!elements->released()) elements->grow(children, field.background.data(), loc);

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
  tree.state->write(state.data(), 0, int64_t(state.size()), loc);
}

}  // namespace quern::detail
