#pragma once
// Fields on trees: storage that is there only where something was written. What kernels do with such
// a field is written as for any other; quern.h has the operations on what is active.
#include <initializer_list>
#include <memory>
#include <string>

#include "quern/quern.h"

namespace quern {

/// A level of a tree, from the outside inwards: cells of one size along each axis.
struct TreeLevel {
  enum Kind : uint8_t {
    dense,      ///< all of its children are there with it
    bitmasked,  ///< so is their memory; a bit for each says whether it is active
    pointer,    ///< children are made when something in them becomes active
  };
  Kind kind = dense;
  int count = 0;  ///< of extents given: one for each axis, or one for all
  int n[4] = {};
};

template <std::integral... I>
constexpr TreeLevel dense(I... n) {
  return {TreeLevel::dense, int(sizeof...(I)), {int(n)...}};
}
template <std::integral... I>
constexpr TreeLevel bitmasked(I... n) {
  return {TreeLevel::bitmasked, int(sizeof...(I)), {int(n)...}};
}
template <std::integral... I>
constexpr TreeLevel pointer(I... n) {
  return {TreeLevel::pointer, int(sizeof...(I)), {int(n)...}};
}

struct TreeOptions {
  /// Extents of the fields; none: the products of the levels' extents.
  std::initializer_list<detail::Extent> shape = {};
  std::initializer_list<detail::Extent> offset = {};  ///< first indices; none: 0
  int64_t cells = 0;  ///< room for so many cells on each level in the beginning; 0: some
};

namespace detail {
struct TreeData;

std::shared_ptr<TreeData> make_tree(DeviceObject* device, int rank, const TreeLevel* levels,
                                    size_t count, const TreeOptions& options, Loc loc);
FieldObject* make_tree_field(const std::shared_ptr<TreeData>& tree, FieldType type,
                             const Layout& layout, const void* background, Loc loc);
std::string describe(TreeData& tree);
}  // namespace detail

/// What fields share that lie on one tree: which elements are active. A handle: copies name the same
/// tree, and fields keep it alive.
template <int N>
class Tree {
  static_assert(N >= 1 && N <= 4, "quern: a tree has one to four axes");

 public:
  /// `Tree<3> tree{device, {pointer(16), pointer(8), bitmasked(8)}}` is of 1024³ elements. Throws
  /// Error for levels that do not fit the axes, more elements than 2^31 along an axis, and where there
  /// is no memory.
  Tree(const Device& device, std::initializer_list<TreeLevel> levels, TreeOptions options = {},
       Loc l = Loc::here())
      : data_(detail::make_tree(device.object(), N, levels.begin(), levels.size(), options, l)) {}

  /// A field whose elements are `background` where they are not active. `layout` says how the
  /// components of an element lie: apart, or aos.
  template <class T>
  Field<T, N> field(T background = T{}, const Layout& layout = {}, Loc l = Loc::here()) const {
    return Field<T, N>(detail::Ref<detail::FieldObject>(
        detail::make_tree_field(data_, Field<T, N>::type(), layout, &background, l)));
  }

  /// Levels, cells, bytes, as lines of text. Waits.
  std::string describe() const { return detail::describe(*data_); }

 private:
  std::shared_ptr<detail::TreeData> data_;
};

}  // namespace quern
