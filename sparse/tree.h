#pragma once
// What a tree keeps on the host.
#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "quern/runtime/tree.h"
#include "quern/sparse.h"

namespace quern::detail {

using runtime::Storage;

/// A tree's parts, and what is known of them without asking the device.
struct TreeData final : runtime::Tree, std::enable_shared_from_this<TreeData> {
  std::shared_ptr<Storage> part(const std::string& name) const override;
  std::shared_ptr<Storage> like(const Storage& field, std::vector<ir::Storage> components,
                                const runtime::Element& element, const Layout& layout,
                                Loc loc) override;
  std::shared_ptr<runtime::Tree> snapshot(Loc loc) override;
  uint64_t kept_bytes() const override;
  bool has(const runtime::Tree* snapshot) const override;
  uint64_t moves() const override { return moved; }
  void read(const std::shared_ptr<Storage>& field, void* elements, std::vector<int64_t> first,
            int64_t count) override;
  void write(const std::shared_ptr<Storage>& field, const void* elements,
             std::vector<int64_t> first, int64_t count, Loc loc) override;
  void refresh(Loc loc) override;
  void collect(Loc loc) override;
  bool has_room(uint64_t takes, Loc loc) override;
  bool has_all(Loc loc) override;
  void make_room(uint64_t takes, Loc loc) override;
  void begin_change() override { may_have_changed = true; }

  std::shared_ptr<Storage> neighbours() const;
  size_t last() const { return pools.size() - 1; }
  /// Where its fields' elements lie.
  struct Elementwise {
    ir::Placement layout;
    std::vector<int64_t> shape, firsts;
  };
  Elementwise elements() const;

  std::shared_ptr<runtime::Device> device;
  int rank = 0;
  std::vector<TreeLevel> levels;  ///< as declared, with an extent for each axis
  std::vector<ir::Placement::Pool> pools;
  bool cut = false, wide = false;  ///< see ir::Placement
  std::vector<int64_t> shape, firsts;
  Loc loc;

  /// Of each pool.
  struct Parts {
    int64_t cells = 1;     ///< there is room for, those included that stand for none
    int64_t possible = 1;  ///< that the tree can have
    int64_t free = 0;      ///< so many are free at least; guarded by `mutex`
    std::shared_ptr<Storage> table, ring, owners, list, places;
  };
  std::vector<Parts> parts;
  std::shared_ptr<Storage> state, counts, keys, mask, listed, ending;
  /// The elements of a field on the tree, and what they are where there are none.
  struct Elements {
    std::weak_ptr<Storage> storage;
    std::vector<std::byte> background;
    std::vector<uint32_t> offsets;  ///< of its components on the host
    size_t pool = 0;                ///< whose cells hold them, so many each
    uint32_t children = 1;
    uint32_t unit = 1;             ///< that are active together
    bool ends_with_cells = false;  ///< they are active where their cell is, whatever else in it is
    Elementwise of;
  };
  mutable std::mutex mutex;                          ///< guards what follows, and growing
  mutable std::shared_ptr<Storage> made_neighbours;  ///< where kernels have asked for them
  std::vector<Elements> fields;
  std::mutex
      listing;  ///< held until what makes the lists is in a stream, for others to wait behind
  std::atomic<bool> may_have_changed{true};  ///< since the lists were made
  std::atomic<uint64_t> moved = 0;           ///< how often elements ended or cells moved

  /// All parts that there are.
  std::vector<std::shared_ptr<Storage>*> all_parts();
  std::vector<const Storage*> all_parts() const;
  std::vector<uint64_t> part_versions() const;
  std::weak_ptr<TreeData> taken;   ///< the last snapshot
  std::vector<uint64_t> versions;  ///< of all parts when it was taken
};

/// The tree of these levels. `shape` and `firsts` may be empty, as in TreeOptions.
std::shared_ptr<TreeData> make_tree(std::shared_ptr<runtime::Device> device, int rank,
                                    std::span<const TreeLevel> levels, std::vector<int64_t> shape,
                                    std::vector<int64_t> firsts, int64_t cells, Loc loc);

/// A field on the tree, whose elements are `background`, as on the host, where they are not active:
/// `of` is the tree's elements, or a level's cells.
std::shared_ptr<Storage> make_storage(const std::shared_ptr<TreeData>& tree,
                                      const TreeData::Elementwise& of,
                                      std::vector<ir::Storage> components,
                                      const runtime::Element& element, const Layout& layout,
                                      const void* background, Loc loc);

/// Kernels that list cells count them in so many chunks, and add these up in so many groups.
inline constexpr int list_chunks = 1024, list_groups = 32;
/// Slots are numbers of 31 bits.
inline constexpr int64_t most_cells = int64_t(1) << 31;

inline ir::Type place_type(const TreeData& tree) {
  return tree.wide ? ir::Type::i64 : ir::Type::i32;
}

// ---- in levels.cpp
const char* name_of(TreeLevel::Kind kind);
/// Levels and pools of the tree, and its shape and first indices where none are set. Throws Error for
/// what does not fit.
void set_levels(TreeData& tree, std::span<const TreeLevel> levels);
/// The cells of a level as elements. Throws Error where nothing says which of them are there.
TreeData::Elementwise cells_of_level(const TreeData& tree, int level, Loc loc);

/// How long a mask of so many bits is.
inline int64_t mask_words(int64_t bits) { return (bits + 31) / 32; }

// ---- in room.cpp
/// Cells of a pool that exist, by the words of its state.
uint32_t live_cells(const ir::Placement::Pool& pool, const uint32_t* words);
/// How long a ring for so many cells is, what says which elements are active, and a table, less the
/// entries that stand for none, in which so many children have entries.
int64_t ring_length(int64_t cells);
int64_t activity_words(const TreeData& tree);
/// The same where a pool has so many cells; 0: that says nothing of it.
int64_t activity_words(const TreeData& tree, size_t pool, int64_t cells);
int64_t entries_for(int64_t children);

/// All words of the tree's state. Waits.
std::vector<uint32_t> read_state(const TreeData& tree);
/// The pool gets room for so many cells. Throws Error where there is no memory.
void grow(TreeData& tree, size_t pool, int64_t cells, Loc loc);
/// A hashed root gets a new table, with entries for its children and so many more; it is not shorter
/// than it was. Throws Error where there is no memory.
void grow_entries(TreeData& tree, int64_t children, Loc loc);
/// The same, with entries for its children alone.
void shrink_entries(TreeData& tree, Loc loc);

/// Puts into the current stream what makes the lists of cells anew. In lists.cpp.
void make_lists(TreeData& tree, Loc loc);

}  // namespace quern::detail
