#pragma once
// What a tree keeps on the host.
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "quern/runtime/tree.h"
#include "quern/sparse.h"

namespace quern::detail {

using runtime::Storage;

/// A tree's parts, and what is known of them without asking the device.
struct TreeData final : runtime::Tree, std::enable_shared_from_this<TreeData> {
  std::shared_ptr<Storage> part(const std::string& name) const override;
  void read(const std::shared_ptr<Storage>& field, void* elements, int64_t first,
            int64_t count) override;
  void write(const std::shared_ptr<Storage>& field, const void* elements, int64_t first,
             int64_t count, Loc loc) override;
  void refresh(Loc loc) override;
  void collect(Loc loc) override;
  bool has_room(uint64_t takes, Loc loc) override;
  bool has_all(Loc loc) override;
  void make_room(uint64_t takes, Loc loc) override;
  void begin_change() override { may_have_changed = true; }

  size_t last() const { return pools.size() - 1; }

  std::shared_ptr<runtime::Device> device;
  int rank = 0;
  std::vector<TreeLevel> levels;  ///< as declared, with an extent for each axis
  std::vector<ir::Placement::Pool> pools;
  bool cut = false;
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
  std::shared_ptr<Storage> state, counts, mask, listed, ending;
  /// The elements of a field on the tree, and what they are where there are none.
  struct Elements {
    std::weak_ptr<Storage> storage;
    std::vector<std::byte> background;
    std::vector<uint32_t> offsets;  ///< of its components on the host
  };
  std::mutex mutex;  ///< guards what follows, and growing
  std::vector<Elements> fields;
  std::atomic<bool> may_have_changed{true};  ///< since the lists were made
};

/// Cells of a pool that exist, by the words of its state.
uint32_t live_cells(const ir::Placement::Pool& pool, const uint32_t* words);
/// How long a mask of so many bits is, and a ring for so many cells.
int64_t mask_words(int64_t bits);
int64_t ring_length(int64_t cells);

/// All words of the tree's state. Waits.
std::vector<uint32_t> read_state(const TreeData& tree);
/// The pool gets room for so many cells. Throws Error where there is no memory.
void grow(TreeData& tree, size_t pool, int64_t cells, Loc loc);

/// Puts into the current stream what makes the lists of cells anew. In lists.cpp.
void make_lists(TreeData& tree, Loc loc);

}  // namespace quern::detail
