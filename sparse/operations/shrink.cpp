// Memory of cells that are free, given back: the live ones move to the front of new pools, in the
// order of the lists, and what names their slots is told the new ones. Direct pools stay, as their
// slots are their numbers.
#include "quern/algorithms.h"
#include "quern/ir/trees.h"
#include "sparse/operations/topology.h"

namespace quern::detail {

namespace {

using namespace lang;
namespace words = ir::tree;

/// The slot that a cell had, by its new one: slots 0 and 1 stay, the others follow the list.
I64 old_slot(const Words& list, const I64& slot) {
  return cast<int64_t>(list[max(slot - int64_t(words::first_slot), 0)]) *
             cast<int64_t>(slot >= int64_t(words::first_slot)) +
         slot * cast<int64_t>(slot < int64_t(words::first_slot));
}

/// By the old slot, the new one.
void number_slots(const Words& list, const Words& moved, int64_t cells, Loc loc) {
  kernel_of([](bool) {
    return Kernel{[](Words from, Words to, I64 count) {
                    for (auto slot : range(count)) to[old_slot(from, slot)] = cast<uint32_t>(slot);
                  },
                  modes("numbering cells")};
  })(list, moved, cells, loc);
}

/// What the cells have, `children` of each, behind one another.
template <class T>
void move_cells(const std::shared_ptr<Storage>& from, const std::shared_ptr<Storage>& to,
                const Words& list, int64_t cells, int64_t children, Loc loc) {
  kernel_of([](bool) {
    return Kernel{[](Field<T> old, Field<T> now, Words slots, I64 count, I64 each) {
                    for (auto [slot, e] : grid(count, each))
                      now[slot * each + e] = old[old_slot(slots, slot) * each + e];
                  },
                  modes("moving cells")};
  })(field_of<T>(from), field_of<T>(to), list, cells, children, loc);
}

void move_bits(const Words& from, const Words& to, const Words& list, int64_t cells, int64_t units,
               Loc loc) {
  kernel_of([](bool) {
    return Kernel{[](Words old, Words now, Words slots, I64 count, I64 each) {
                    for (auto [slot, u] : grid(count, each)) {
                      I64 bit = old_slot(slots, slot) * each + u, place = slot * each + u;
                      If((old[bit / 32] >> cast<uint32_t>(bit % 32) & 1u) != 0u) {
                        now[place / 32] |= U32(1u) << cast<uint32_t>(place % 32);
                      }
                    }
                  },
                  modes("moving cells")};
  })(from, to, list, cells, units, loc);
}

/// The children's slots in the tables of the cells of a list become the new ones.
void rename_children(const Words& table, const Words& moved, const Words& list, int64_t cells,
                     int64_t children, Loc loc) {
  kernel_of([](bool) {
    return Kernel{[](Words slots, Words renamed, Words parents, I64 count, I64 each) {
                    for (auto [k, e] : grid(count, each)) {
                      I64 number = cast<int64_t>(parents[k]) * each + e;
                      slots[number] = renamed[slots[number]];
                    }
                  },
                  modes("renaming cells")};
  })(table, moved, list, cells, children, loc);
}

/// All entries of a table that is new.
void rename_all(const std::shared_ptr<Storage>& table, const Words& moved, Loc loc) {
  kernel_of([](bool) {
    return Kernel{[](Words slots, Words renamed) {
                    for (auto k : slots.wide()) slots[k] = renamed[slots[k]];
                  },
                  modes("renaming cells")};
  })(words_of(table), moved, loc);
}

/// Owners are numbers of children, which say their cells' slots.
void rename_owners(const std::shared_ptr<Storage>& owners, const Words& moved, int64_t cells,
                   int64_t children, Loc loc) {
  kernel_of([](bool) {
    return Kernel{[](Field<int64_t> of, Words renamed, I64 count, I64 each) {
                    for (auto slot : range(int64_t(words::first_slot), count)) {
                      I64 parent = of[slot] / each;
                      of[slot] = cast<int64_t>(renamed[parent]) * each + of[slot] % each;
                    }
                  },
                  modes("renaming cells")};
  })(field_of<int64_t>(owners), moved, cells, children, loc);
}

/// What a pool becomes.
struct Smaller {
  int64_t cells = 0;
  std::shared_ptr<Storage> moved;  ///< new slots, by the old ones
  std::shared_ptr<Storage> table, ring, owners, list, places, mask, listed, ending;
  struct Moved {
    std::shared_ptr<Storage> old, now;
    int64_t children = 1;  ///< elements of a cell
  };
  std::vector<Moved> fields;
};

class Shrinking {
 public:
  Shrinking(TreeData& tree, Loc loc) : tree_(tree), loc_(loc), state_(read_state(tree)) {
    // Below a pool that is not direct none is.
    while (first_ < tree.pools.size() && tree.pools[first_].direct) first_++;
  }

  /// Are there free cells?
  bool is_needed() const {
    for (size_t p = first_; p < tree_.pools.size(); p++)
      if (live(p) < tree_.parts[p].cells) return true;
    return false;
  }

  /// All memory is made before anything changes.
  void run() {
    for (size_t p = first_; p < tree_.pools.size(); p++) pools_.push_back(made(p));
    for (size_t p = first_; p < tree_.pools.size(); p++) move(p, pools_[p - first_]);
    const Words top = words_of(tree_.parts[first_ - 1].table);
    if (tree_.pools[first_ - 1].is_hashed())
      rename_all(tree_.parts[first_ - 1].table, words_of(pools_[0].moved), loc_);
    else
      rename_children(top, words_of(pools_[0].moved), words_of(tree_.parts[first_ - 1].list),
                      word(first_ - 1, words::count), tree_.pools[first_ - 1].children, loc_);
    for (size_t p = first_; p < tree_.pools.size(); p++) take(p, pools_[p - first_]);
    state_[words::changed] = 1;
    tree_.state->write(state_.data(), 0, int64_t(state_.size()), loc_);
    tree_.may_have_changed = true;
  }

 private:
  uint32_t word(size_t pool, uint32_t which) const {
    return state_[pool * words::words_of_pool + which];
  }
  int64_t live(size_t pool) const { return word(pool, words::count) + words::first_slot; }

  Smaller made(size_t pool) const {
    const TreeData::Parts& now = tree_.parts[pool];
    Smaller s;
    s.cells = live(pool);
    const int64_t children = s.cells * int64_t(tree_.pools[pool].children);
    s.moved = now.list->resized(now.cells, loc_);
    // Who names a cell that is not listed is the lost cell, where writes go that nobody reads.
    s.moved->fill(&words::lost_cell, loc_);
    s.ring = zeros(*now.ring, ring_length(s.cells));
    s.owners = zeros(*now.owners, s.cells);
    s.list = zeros(*now.list, s.cells);
    s.places = zeros(*now.places, s.cells);
    if (now.table) s.table = zeros(*now.table, children);
    if (const int64_t length = activity_words(tree_, pool, s.cells)) {
      s.mask = zeros(*tree_.mask, length);
      s.listed = zeros(*tree_.listed, length);
      s.ending = zeros(*tree_.ending, length);
    }
    for (const TreeData::Elements& field : tree_.fields)
      if (auto elements = field.storage.lock();
          field.pool == pool && elements && !elements->released())
        s.fields.push_back({elements, elements->resized(s.cells * int64_t(field.children), loc_),
                            int64_t(field.children)});
    return s;
  }
  std::shared_ptr<Storage> zeros(const Storage& like, int64_t size) const {
    const auto made = like.resized(size, loc_);
    const std::byte none[32] = {};
    made->fill(none, loc_);
    return made;
  }

  void move(size_t pool, const Smaller& s) const {
    const TreeData::Parts& old = tree_.parts[pool];
    const Words list = words_of(old.list);
    const int64_t children = tree_.pools[pool].children;
    number_slots(list, words_of(s.moved), s.cells, loc_);
    move_cells<int64_t>(old.owners, s.owners, list, s.cells, 1, loc_);
    if (pool > first_) {
      const Smaller& above = pools_[pool - 1 - first_];
      rename_owners(s.owners, words_of(above.moved), s.cells, tree_.pools[pool - 1].children, loc_);
      rename_all(above.table, words_of(s.moved), loc_);
    }
    if (s.table) move_cells<uint32_t>(old.table, s.table, list, s.cells, children, loc_);
    if (s.mask && tree_.pools.back().has_lists())
      move_cells<uint32_t>(tree_.mask, s.mask, list, s.cells, children / tree_.pools.back().chunks,
                           loc_);
    else if (s.mask)
      move_bits(words_of(tree_.mask), words_of(s.mask), list, s.cells,
                children / int64_t(tree_.pools[pool].unit), loc_);
    for (const Smaller::Moved& field : s.fields) move_elements(field, list, s.cells);
  }

  void move_elements(const Smaller::Moved& field, const Words& list, int64_t cells) const {
    for (uint32_t c = 0; c < field.old->components().size(); c++) {
      const ir::Type type = field.old->components()[c].type;
      const runtime::Element one{ir::byte_size(ir::storage_type(type)), {0}};
      for_type(type, [&]<class T>(T) {
        move_cells<T>(field.old->part(c, one, loc_), field.now->part(c, one, loc_), list, cells,
                      field.children, loc_);
      });
    }
  }

  void take(size_t pool, Smaller& s) {
    TreeData::Parts& p = tree_.parts[pool];
    p.cells = s.cells;
    p.free = 0;
    p.table = s.table, p.ring = s.ring, p.owners = s.owners, p.list = s.list, p.places = s.places;
    if (s.mask) tree_.mask = s.mask, tree_.listed = s.listed, tree_.ending = s.ending;
    for (const Smaller::Moved& field : s.fields) field.old->exchange(*field.now);
    uint32_t* words_of_it = state_.data() + pool * words::words_of_pool;
    words_of_it[words::cells] = uint32_t(s.cells);
    words_of_it[words::taken] = words_of_it[words::given] = words_of_it[words::limit] = 0;
    words_of_it[words::need] = words_of_it[words::short_of] = 0;
  }

  TreeData& tree_;
  const Loc loc_;
  std::vector<uint32_t> state_;
  size_t first_ = 1;            ///< pool that is not direct
  std::vector<Smaller> pools_;  ///< from that on
};

}  // namespace

void shrink(TreeData& tree, Loc loc) {
  const Operation operation("shrink", tree, loc);
  tree.refresh(loc);
  std::lock_guard lock(tree.mutex);
  tree.moved++;
  if (tree.pools[0].is_hashed()) shrink_entries(tree, loc);
  if (Shrinking shrinking(tree, loc); shrinking.is_needed()) shrinking.run();
}

}  // namespace quern::detail
