#pragma once
// A tree as a launch sees it. What makes and changes one is above (sparse/).
#include <memory>
#include <string>

#include "quern/runtime/storage.h"

namespace quern::runtime {

/// What the fields on a tree share: which cells there are. Its parts are fields of one axis that
/// kernels' code reads and writes (quern/ir/trees.h); they may be other ones after each call.
class Tree {
 public:
  virtual ~Tree() = default;
  /// Null: there is none of this name.
  virtual std::shared_ptr<Storage> part(const std::string& name) const = 0;
  /// Another field on the tree with the elements that `field` has, or is a view of, but of these
  /// components, each 0 where it is not active. Throws Error where there is no memory.
  virtual std::shared_ptr<Storage> like(const Storage& field, std::vector<ir::Storage> components,
                                        const Element& element, const Layout& layout, Loc loc) = 0;
  /// The tree as it is now, to be read only; of one that has not changed since, the same. Cells that
  /// it has keep their slots in the tree itself until moves() changes. Throws Error where there is
  /// no memory.
  virtual std::shared_ptr<Tree> snapshot(Loc loc) = 0;
  /// Of a snapshot: that the memory takes which is held for it alone, as Storage::Contents::bytes.
  virtual uint64_t kept_bytes() const = 0;
  /// Is `snapshot` what snapshot() would yield?
  virtual bool has(const Tree* snapshot) const = 0;
  /// Another number once elements have ended or cells have moved.
  virtual uint64_t moves() const = 0;
  // ---- what the host does with elements of a field on the tree: `count` in row-major order, from the
  // one that lies so far from the field's first one along each axis
  virtual void read(const std::shared_ptr<Storage>& field, void* elements,
                    std::vector<int64_t> first, int64_t count) = 0;
  /// They are active then.
  virtual void write(const std::shared_ptr<Storage>& field, const void* elements,
                     std::vector<int64_t> first, int64_t count, Loc loc) = 0;

  // ---- what a launch asks for
  /// Puts into the current stream what makes the lists of cells anew, where cells may have come or
  /// gone since they were made.
  virtual void refresh(Loc loc) = 0;
  /// Puts into the current stream what ends the elements that were deactivated.
  virtual void collect(Loc loc) = 0;
  /// Is there room for a task that takes so many cells of each level at most? Waits where that is not
  /// known.
  virtual bool has_room(uint64_t takes, Loc loc) = 0;
  /// Behind what has tried to take the cells that a task wants: is there one for each? Else levels
  /// that were short of cells have more now, and it is to be tried again. Throws Error where there is
  /// no memory. Waits.
  virtual bool has_all(Loc loc) = 0;
  /// Room for a task that nobody can run in advance, and that takes so many cells at most; 0: that is
  /// not known. It may still run out of them. Throws Error where there is no memory. Waits.
  virtual void make_room(uint64_t takes, Loc loc) = 0;
  /// The task that is submitted next may make elements active.
  virtual void begin_change() = 0;
};

}  // namespace quern::runtime
