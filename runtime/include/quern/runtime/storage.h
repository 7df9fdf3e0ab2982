#pragma once
#include <array>
#include <map>
#include <shared_mutex>
#include <vector>

#include "quern/layout.h"
#include "quern/runtime/device.h"

namespace quern::runtime {

class Tree;

/// How the host has an element in memory: its size, and where each scalar component lies in it.
struct Element {
  uint32_t bytes = 0;
  std::vector<uint32_t> offsets;
};

/// A field's elements on a device, or a view of some of them: shape, layout and where they lie.
/// Views name the memory of the field they were made from: they see what is written through it, its
/// swap and its release. Extents may be 0; sizes are counted in 64 bits. What the host reads is
/// behind all that was submitted to the stream that wrote the memory last; what it writes is put into
/// the current stream, behind all uses of the memory. Errors carry the Loc given.
class Storage {
 public:
  /// Zeroed memory. `element` says what host copies look like and how `Layout::aos` lays elements
  /// out; the default is a C struct of the components. Throws Error for a negative extent, more
  /// than 8 axes, sizes past 2^63 bytes, no memory, and a layout that does not fit the shape.
  Storage(std::shared_ptr<Device> device, std::vector<ir::Storage> components,
          std::vector<int64_t> shape, Loc loc, const Layout& layout = {}, Element element = {});
  /// The caller's memory, read and written in place; it must outlive the storage and its views, the
  /// last of which waits for the launches submitted, then calls `done`. The layout keeps all
  /// components in one array (aos, aosoa, or one component) and fills whole blocks. Throws Error
  /// for a null or misaligned pointer, and one that the device does not see: on the CPU it is the
  /// host's, on a GPU of CUDA or ROCm the device's.
  static std::shared_ptr<Storage> wrap(std::shared_ptr<Device> device,
                                       std::vector<ir::Storage> components,
                                       std::vector<int64_t> shape, void* memory, Loc loc,
                                       const Layout& layout = {}, Element element = {},
                                       std::function<void()> done = {});
  /// Memory whose contents are any.
  static std::shared_ptr<Storage> unset(std::shared_ptr<Device> device,
                                        std::vector<ir::Storage> components,
                                        std::vector<int64_t> shape, const std::string& what,
                                        Loc loc, const Layout& layout = {}, Element element = {});
  /// A field on a tree, of the tree's shape and first indices, whose elements lie in `elements`, a
  /// field of one axis: numbered as quern/ir/trees.h says. `layout` tells of the tree alone.
  static std::shared_ptr<Storage> on_tree(std::shared_ptr<Tree> tree,
                                          std::shared_ptr<Storage> elements,
                                          const ir::Placement& layout,
                                          std::span<const int64_t> shape,
                                          std::span<const int64_t> firsts, Loc loc);
  ~Storage();
  Storage& operator=(const Storage&) = delete;

  // ---- views: each is a storage of its own on the same memory
  /// Every step-th index from lo to below hi along an axis, numbered from 0. An axis with blocks
  /// takes steps of 1 only.
  std::shared_ptr<Storage> slice(uint32_t axis, int64_t lo, int64_t hi, int64_t step,
                                 Loc loc) const;
  /// The elements of one index along an axis, without that axis.
  std::shared_ptr<Storage> select(uint32_t axis, int64_t index, Loc loc) const;
  /// Axis k of the view is axis order[k].
  std::shared_ptr<Storage> transposed(std::span<const int64_t> order, Loc loc) const;
  /// The last index of an axis first; not for an axis with blocks.
  std::shared_ptr<Storage> flipped(uint32_t axis, Loc loc) const;
  /// The same elements with other first indices.
  std::shared_ptr<Storage> rebased(std::span<const int64_t> firsts, Loc loc) const;
  /// Components [from, from + element.offsets.size()) alone.
  std::shared_ptr<Storage> part(uint32_t from, Element element, Loc loc) const;

  /// Another field that goes with this one under a name, as its adjoint does: of the same shape,
  /// layout, first indices and components, f16 as f32 (sums are kept in it). Made as zeros when it
  /// is first asked for; that of a field on a tree is on the same tree, where what is not active is
  /// 0. A view's companion is the same view of the field's; swap exchanges the
  /// companions of both fields, release gives them back. Throws Error for a snapshot, unless the
  /// name begins with `scratch`, and where there is no memory.
  std::shared_ptr<Storage> companion(const std::string& name, Loc loc) const;
  /// Companions of this name, with a number, hold what a launch keeps for itself.
  static constexpr const char* scratch = "parts ";
  /// The whole field's under that name, if it has been asked for; else null.
  std::shared_ptr<Storage> known_companion(const std::string& name) const;
  /// Of a field on a tree: its elements, and the tree's parts, by their names in quern/ir/trees.h.
  std::shared_ptr<Storage> tree_part(const std::string& name, Loc loc) const;
  /// Gives a field of one axis more elements, those behind the old ones as `element` on the host; its
  /// memory is another one then. Throws Error where there is none.
  void grow(int64_t extent, const void* element, Loc loc);
  /// Another field of one axis, of the same types and layout and of this extent, whose elements are
  /// any. Throws Error where there is no memory.
  std::shared_ptr<Storage> resized(int64_t extent, Loc loc) const;
  /// Exchanges memory and extent with another field of one axis, of the same types and layout.
  void exchange(Storage& other);
  /// The elements become those of another field of the same size and types.
  void copy_from(const Storage& other, Loc loc);
  /// That the field is on; null for others.
  Tree* tree() const { return tree_.get(); }

  // ---- what the memory holds
  /// Names the contents: the same number, the same contents; of other code's writes it knows
  /// nothing. Whatever may write the memory gives it another one, through views too.
  uint64_t version() const;
  /// No lower than the version of any memory of the process, nor as high as those that come later;
  /// of what another thread is about to write meanwhile neither is certain.
  static uint64_t last_version();
  /// Is about to be written, by a launch or the host: gives the memory another version, and the
  /// snapshot that shares it memory of its own. Throws Error for a snapshot, and where there is no
  /// memory for that.
  void begin_write(Loc loc) { begin_write(loc, new_versions(1)); }
  /// The same, of a field whose contents become the version of this number, which nobody else has.
  void begin_write(Loc loc, uint64_t version);
  /// The first of so many numbers that follow each other: one step for all that a launch writes.
  static uint64_t new_versions(uint64_t count);
  /// Where it was last, for messages: of writes by several threads at once perhaps none of them. No
  /// line: nowhere, or it is not known.
  Loc written_at() const;
  /// The same elements as they are now, to be read only. It shares the memory until that is next
  /// written, released or shown to other code; it lives on behind a release. Memory that other code
  /// may write is copied at once.
  std::shared_ptr<Storage> snapshot(Loc loc) const;
  bool is_snapshot() const;
  class Contents;
  /// What snapshot() holds now. It costs less than a storage.
  Contents contents(Loc loc) const;
  class Versions;
  /// Are those what contents() would yield, without taking anything?
  bool has(const Contents& contents) const;
  /// A snapshot that holds nothing, not even memory, until show() is called.
  std::shared_ptr<Storage> empty_snapshot(Loc loc) const;
  /// This snapshot becomes one of other contents, of the same storage or of one that lies like it. No
  /// other thread may use it meanwhile.
  void show(const Contents& contents);
  class Copies;
  /// The contents become those of a snapshot of this storage, or of one of the same shape, types
  /// and layout. Throws Error otherwise, and for views.
  void restore(const Storage& snapshot, Loc loc);
  /// The memory of a field, or of the one that this is a view of, holds what it held when contents()
  /// of it were taken. Not for fields on trees. Throws Error where memory is short.
  void restore(const Contents& contents, Loc loc);
  /// While it lives, addresses stay as they are: a snapshot keeps those that it shares.
  std::shared_lock<std::shared_mutex> hold() const;
  /// Does it show what lies in a block of Versions, where addresses stay without that?
  bool is_in_block() const;
  /// Are addresses others as soon as the field is written that it is a snapshot of?
  bool may_move() const;

  Device& device() const { return *device_; }
  const std::shared_ptr<Device>& shared_device() const { return device_; }
  const std::vector<ir::Component>& components() const { return components_; }
  const std::vector<int64_t>& shape() const { return shape_; }
  int64_t first(uint32_t axis) const { return axes_[axis].first; }
  int64_t size() const { return size_; }  ///< 2^63 - 1: as many or more, on a tree
  /// That the memory takes which the field has now; a view's is the whole field's.
  uint64_t bytes() const;
  uint32_t element_bytes() const { return element_.bytes; }  ///< on the host
  Loc loc() const { return loc_; }

  // ---- what a launch needs
  /// No other storage of the process has it, nor this one with another shape.
  uint64_t number() const { return number_.value; }
  /// What code is specialised for: contiguous, zero_based, layout, encodings.
  const ir::Signature::Field& facts() const { return facts_; }
  /// The same number, the same facts(), of any storages of the process; from 1 on.
  uint32_t facts_number() const { return facts_number_; }
  /// Binding::alignment of the memory that the field has now.
  uint32_t alignment() const;
  /// The entries of quern/ir/abi.h.
  Address base(uint32_t component) const;
  /// Those of all components are put there, as the argument block has them.
  void put_bases(ir::abi::Writer& to, size_t binding) const;
  int64_t stride(uint32_t component, uint32_t axis) const;
  /// Along all axes, and zeros behind them.
  std::span<const int64_t> strides(uint32_t component) const { return places_[component].strides; }
  int64_t origin(uint32_t axis) const;
  /// Who uses the memory that the field has now.
  Uses& uses() const;
  /// Names that memory, which swap and exchange move to another field; memory made later has another
  /// number.
  uint64_t memory_number() const;
  /// The same, but that it stays where a field on a tree gets more memory.
  uint64_t identity() const;
  /// May an element of one be an element of the other?
  bool overlaps(const Storage& other) const;
  /// Of a field and its views one. Where owners differ and neither is wrapped, nothing overlaps.
  const void* owner() const { return memory_.get(); }
  bool is_wrapped() const;
  bool is_view() const { return is_view_; }
  /// Another number as soon as memory of any storage of the process is swapped, given back, or shown
  /// in place of another. While it stays, owner(), memory_number(), may_move() and released() of each
  /// storage do, but for memory_number() of snapshots, and may_move() of those that hold nothing.
  static uint64_t moves();

  /// Where the elements lie, for other code: each as on the host, `strides` bytes apart along the
  /// axes. Throws Error for a layout that has blocks or keeps components apart.
  struct Array {
    Address address = 0;  ///< of the first element; 0 where there is none
    std::vector<int64_t> strides;
  };
  Array array(Loc loc) const;

  // ---- host access, in row-major order of the indices
  /// `count` elements from the first-th on, from and to an array of host elements.
  void write(const void* elements, int64_t first, int64_t count, Loc loc = {});
  void read(void* elements, int64_t first, int64_t count) const;
  /// One element, so far from the first one along each axis.
  void write_at(std::span<const int64_t> position, const void* element, Loc loc);
  void read_at(std::span<const int64_t> position, void* element) const;
  /// Every element becomes the host element given.
  void fill(const void* element, Loc loc = {});
  /// Every element becomes 0.
  void clear(Loc loc);

  /// Exchanges memory in O(1); both keep their identity. Throws Error unless shape, types, layout
  /// and device agree, and for views.
  void swap(Storage& other, Loc loc);
  /// Gives the memory back at once (wrapped memory: forgets it); using it afterwards, through views
  /// too, is an error that names `loc`. Throws Error for a view and where it is released already.
  void release(Loc loc);
  bool released() const;
  /// Throws Error naming both places where the memory was released.
  void expect_alive(Loc loc) const;

 private:
  struct Declared;
  struct Memory;
  struct Number {
    uint64_t value = next();
    Number() = default;
    Number(const Number&) {}  // a view is another storage
    static uint64_t next();
  };
  /// Throws Error that says why a field on a tree cannot be used so.
  void expect_no_tree(std::string_view why, Loc loc) const;
  std::shared_ptr<Storage> companion_of_whole(const std::string& name, Loc loc) const;
  std::shared_ptr<Storage> view_of_companion(const Storage& whole, Loc loc) const;
  /// Exchanges the contents of each companion that either has.
  void swap_companions(Storage& other, Loc loc);
  void settle_on_tree();
  bool lies_like(const Storage& other) const;
  std::vector<int64_t> position_of(int64_t number) const;
  struct Axis {
    int64_t extent = 0;
    int64_t first = 0;
    int64_t stride = 0;       ///< elements between neighbouring outermost digits
    int64_t origin = 0;       ///< the position of the first index; 0 where the axis is linear
    int64_t tree_origin = 0;  ///< on a tree: the position of its index 0
  };
  struct Component {
    uint32_t allocation = 0;
    int64_t offset = 0;  ///< bytes from the allocation to the first element
    int64_t origin = 0;  ///< to the element whose indices are 0 along linear axes
    std::array<int64_t, ir::Placement::max_axes> strides = {};  ///< bytes
  };
  /// What is copied as one: a component, or a whole element that lies as on the host.
  struct Piece {
    uint32_t allocation = 0, width = 0, host_offset = 0;
    int64_t offset = 0;
  };
  /// Elements that follow each other on the host and are `stride` elements apart on the device; the
  /// first is `outer` (whole groups) plus `inner` elements behind the field's first.
  struct Run {
    int64_t host = 0, outer = 0, inner = 0, count = 0, stride = 0;
  };
  struct Range {
    int64_t from = 0, to = 0;
  };
  enum class Direction { to_device, to_host };
  struct Unallocated {};

  Storage(Unallocated, std::shared_ptr<Device>, std::vector<ir::Storage>, std::vector<int64_t>, Loc,
          const Layout&, Element);
  Storage(const Storage&) = default;  // for views
  void check_shape(const Layout& layout) const;
  std::vector<uint32_t> axes_by_speed(const Layout& layout) const;
  int64_t place_elements(const Layout& layout);
  /// Yields the bytes of each allocation.
  std::vector<uint64_t> place_components(const Layout& layout, int64_t total);
  std::shared_ptr<Storage> view(Loc loc) const;
  void expect_axis(uint32_t axis, Loc loc) const;
  void move_start(int64_t elements);
  void take_axes(std::span<const uint32_t> axes);
  void settle();
  void settle_types_and_shape();
  void settle_in_array();
  void settle_origins();

  uint32_t width(uint32_t component) const;
  bool is_linear(uint32_t axis) const { return facts_.layout.is_linear(axis); }
  int64_t block(uint32_t axis) const { return facts_.layout.block(axis); }
  Range range(uint32_t component) const;

  std::vector<Piece> pieces() const;
  Run run_at(int64_t first, int64_t count) const;
  void copy(Direction, Stream&, std::span<const Piece>, std::byte* host, int64_t host_step,
            int64_t first, int64_t count) const;
  void copy_runs(Direction, std::span<const Piece>, std::byte* device, int64_t origin,
                 std::byte* host, int64_t host_step, int64_t first, int64_t count) const;
  void fill_allocation(uint32_t allocation, std::span<const std::byte> unit);

  // What each launch looks at first.
  Number number_;
  std::shared_ptr<Memory> memory_;
  std::shared_ptr<Tree> tree_;
  uint32_t facts_number_ = 0;
  std::shared_ptr<Device> device_;
  std::vector<ir::Storage> stored_;
  std::vector<ir::Component> components_;
  Element element_;
  std::vector<int64_t> shape_;
  std::vector<Axis> axes_;
  int64_t size_ = 1;
  bool is_view_ = false, is_dense_ = false;
  // Of a view, in what it is a view of at last:
  int64_t start_ = 0;             ///< elements from its first (as Placement::bytes takes them)
  uint32_t first_component_ = 0;  ///< of its elements
  std::vector<Component> places_;
  std::shared_ptr<Storage> elements_;  ///< of a field on a tree: the same memory
  ir::Signature::Field facts_;
  uint64_t steps_ = 0;  ///< components side by side: offset and strides, joined by bitwise or
  Loc loc_;
};

/// A version of a storage's memory: kept as a snapshot keeps it.
class Storage::Contents {
 public:
  Contents() = default;
  explicit operator bool() const { return memory_ != nullptr; }
  /// Are they some of Versions?
  bool is_in_block() const { return place_.bytes > 0; }
  /// The same of all that hold this version.
  std::pair<const void*, uint64_t> number() const { return {memory_.get(), place_.first}; }
  /// That the memory takes which is held for this alone; 0 while it is still the field's.
  uint64_t bytes() const;
  /// Of a field on a tree: the tree's snapshot; else null.
  const Tree* tree() const { return on_tree_ ? on_tree_->tree.get() : nullptr; }

 private:
  friend class Storage;
  Contents(std::shared_ptr<Memory> memory, uint64_t version)
      : memory_(std::move(memory)), version_(version) {}
  /// Of Versions: where in the memory it lies.
  struct Place {
    uint32_t first = 0, bytes = 0;
  };
  /// Of a field on a tree.
  struct OnTree {
    std::shared_ptr<Tree> tree;  ///< which elements are active
    std::shared_ptr<Tree> of;    ///< the tree that this is a snapshot of
  };
  std::shared_ptr<Memory> memory_;
  uint64_t version_ = 0;  ///< of the memory that it is of
  Place place_;           ///< of no bytes: the memory is this version's
  std::shared_ptr<const OnTree> on_tree_;
};

/// Versions of the contents of one small memory, side by side in few allocations: each costs a
/// copy, which waits for those of other memories until one of these is written, and neither an
/// allocation nor what a snapshot takes on the host, nor a reference that is counted: it is there as
/// long as this is.
class Storage::Versions {
 public:
  /// Does a copy cost less than sharing the memory until it is written?
  static bool suit(const Storage& storage);
  /// What contents() would hold, of a storage with that memory. Throws Error where there is none
  /// for it.
  const Contents& of(const Storage& storage, Loc loc);

 private:
  const Contents& copied(const Storage& storage, Loc loc);
  void begin_block(const Storage& storage, uint64_t bytes, Loc loc);
  std::vector<std::shared_ptr<Memory>> blocks_;
  uint32_t used_ = 0;  ///< bytes of the last one
  Contents last_;
};

/// Copies of storages, to be written while those stay as they are: storages with the same memory get
/// copies with the same memory, each whole.
class Storage::Copies {
 public:
  /// Throws Error for a field on a tree, and where there is no memory.
  std::shared_ptr<Storage> of(const Storage& storage, Loc loc);

 private:
  /// By the memory, and where in a block of Versions.
  std::map<std::pair<const Memory*, Address>, std::shared_ptr<Memory>> made_;
};

std::string shape_text(std::span<const int64_t> shape);

}  // namespace quern::runtime
