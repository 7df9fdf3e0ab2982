#pragma once
// Fields on trees: storage that is there only where something was written. What kernels do with such
// a field is written as for any other; quern.h has the operations on what is active.
#include <array>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>

#include "quern/sparse/fields.h"
#include "quern/sparse/level_sets.h"

namespace quern {

/// A level of a tree, from the outside inwards: cells of one size along each axis.
struct TreeLevel {
  enum Kind : uint8_t {
    dense,      ///< all of its children are there with it
    bitmasked,  ///< so is their memory; a bit for each says whether it is active
    pointer,    ///< children are made when something in them becomes active
    hash,  ///< so are they, and found by a hash of where they are: memory goes by those there are
    dynamic,  ///< lists along the last axis, that grow chunk by chunk
  };
  Kind kind = dense;
  int count = 0;  ///< of extents given: one for each axis, or one for all
  int n[4] = {};
  int chunk = 0;  ///< elements of a list that are made together
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
/// The outermost level of a tree that has no end: how far it reaches, TreeOptions::shape and offset
/// say. Without them indices go from -2^30 to 2^30 - 2.
constexpr TreeLevel hash() { return {TreeLevel::hash}; }
/// The innermost level of a tree: lists of up to n elements along its last axis, along which the other
/// levels have the extent 1. Memory comes for `chunk` elements of a list at a time.
constexpr TreeLevel dynamic(std::integral auto n, int chunk = 32) {
  return {TreeLevel::dynamic, 1, {int(n)}, chunk};
}

struct TreeOptions {
  /// Extents of the fields; none: the products of the levels' extents. Below `hash()` up to 2^62, with
  /// indices below 2^62.
  std::initializer_list<detail::Extent> shape = {};
  std::initializer_list<detail::Extent> offset = {};  ///< first indices; none: 0
  int64_t cells = 0;  ///< room for so many cells on each level in the beginning; 0: some
};

namespace detail {
std::shared_ptr<TreeData> make_tree(DeviceObject* device, int rank, const TreeLevel* levels,
                                    size_t count, const TreeOptions& options, Loc loc);
}  // namespace detail

/// The cells of one of a tree's levels, as elements of fields: such an element is active where one of
/// the tree's is in its cell. So a loop over such a field goes through cells. Kernels may write to
/// what is there, and make no cells by that; a write where there is none does nothing, and in checked
/// mode it is an Error. A handle, as trees are.
template <int N>
class Level {
 public:
  /// A field whose elements are `background` where there is no cell, and where one is new.
  template <class T>
  Field<T, N> field(T background = T{}, const Layout& layout = {}, Loc l = Loc::here()) const {
    return Field<T, N>(detail::Ref<detail::FieldObject>(
        detail::make_level_field(data_, number_, Field<T, N>::type(), layout, &background, l)));
  }
  /// How many elements a cell has along each axis, n. The element at i is in the cell at ⌊i / n⌋, where
  /// the tree's first index is a multiple of n; else cells begin at that first index f, and the first
  /// one's index is ⌊f / n⌋.
  const std::array<int64_t, size_t(N)>& extents() const { return extents_; }

  Level(std::shared_ptr<detail::TreeData> data, int number, Loc l)
      : data_(std::move(data)), number_(number) {
    detail::expect_level(*data_, number, extents_.data(), l);
  }

 private:
  std::shared_ptr<detail::TreeData> data_;
  int number_ = 0;
  std::array<int64_t, size_t(N)> extents_{};
};

/// What fields share that lie on one tree: which elements are active. A handle: copies name the same
/// tree, and fields keep it alive.
template <int N>
class Tree {
  static_assert(N >= 1 && N <= 4, "quern: a tree has one to four axes");

 public:
  /// `Tree<3> tree{device, {pointer(16), pointer(8), bitmasked(8)}}` is of 1024³ elements. Throws
  /// Error for levels that do not fit the axes, more elements than 2^31 along an axis (but below
  /// hash()), and where there is no memory.
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

  /// The cells of the level declared at this place, from 1 on, which are children of the one before.
  /// Throws Error where nothing says which of them have active elements: below a dense level, but among
  /// elements that are active together, and below a bitmasked one that is not the innermost.
  Level<N> level(int number, Loc l = Loc::here()) const { return Level<N>(data_, number, l); }

  // ---- by the host; quern/sparse/operations.h says more. Throw Error inside a recording.
  /// How many elements are active. Waits.
  int64_t active_count(Loc l = Loc::here()) const { return detail::active_count(*data_, l); }
  /// Elements, cells and bytes. Waits.
  TreeStats stats(Loc l = Loc::here()) const { return detail::stats(*data_, l); }
  /// The same as lines of text. Waits.
  std::string describe(Loc l = Loc::here()) const { return detail::describe(*data_, l); }
  /// Ends all elements. Memory stays, for what becomes active next.
  void clear(Loc l = Loc::here()) const { detail::clear(*data_, l); }
  /// Gives the memory of free cells back, but on levels that have had room for all cells there can be
  /// from the beginning. Which elements are active, their order in loops and what they hold stays as it
  /// is. Waits. Throws Error, and changes nothing, where there is no memory to move what lives to.
  void shrink(Loc l = Loc::here()) const { detail::shrink(*data_, l); }

  // What becomes active here has the background in all fields. Trees of the same axes on one device
  // work with each other whatever their levels, shapes and first indices: elements are the same that
  // have the same index. What goes by neighbours, by resolutions, or by elements one by one, is an
  // Error on trees of lists (docs/semantics.md has which). Waits are noted.
  /// Makes active what an active element is reached from in `radius` steps to neighbours at most. What
  /// is outside of the shape is not there. Throws Error for a radius below 0.
  void dilate(int radius = 1, Neighbours neighbours = Neighbours::faces,
              Loc l = Loc::here()) const {
    detail::dilate(*data_, radius, neighbours, l);
  }
  /// Ends what an element that is not active is reached from in so many steps; outside of the shape
  /// none is active.
  void erode(int radius = 1, Neighbours neighbours = Neighbours::faces, Loc l = Loc::here()) const {
    detail::erode(*data_, radius, neighbours, l);
  }
  /// Makes active what is so in the other tree. Throws Error, and changes nothing, where some of that
  /// lies outside of this tree; it waits where it has to count.
  void merge(const Tree& other, Loc l = Loc::here()) const {
    detail::merge(*data_, *other.data_, l);
  }
  /// Ends what is not active in the other tree.
  void intersect(const Tree& other, Loc l = Loc::here()) const {
    detail::intersect(*data_, *other.data_, l);
  }
  /// Ends what is active in the other tree.
  void subtract(const Tree& other, Loc l = Loc::here()) const {
    detail::subtract(*data_, *other.data_, l);
  }
  /// Ends what the predicate is true of, as in `tree.prune(u, [](auto v) { return v < 0.1f; })`.
  /// Where elements are active in units, it is true of all those of a unit; a list ends at the first
  /// element that it is true of. Of a view its elements are asked. Throws Error for a field that is
  /// not on this tree.
  template <class T, class P>
    requires std::is_class_v<P>
  void prune(const Field<T, N>& u, P predicate,
             detail::Source source = detail::Source::here(QUERN_CHECKED_HERE)) const {
    detail::prune(*data_, u, predicate, source);
  }
  /// Ends what is no further than `tolerance` from the field's background, in each component.
  template <class T>
  void prune(const Field<T, N>& u,
             std::type_identity_t<detail::scalar_t<T>> tolerance = detail::scalar_t<T>(),
             Loc l = Loc::here()) const {
    detail::prune_near(*data_, u, tolerance, l);
  }
  /// Of a level set, whose band is active around its zero and closed: what the band encloses, between
  /// elements below 0 along the last axis, becomes active and minus the background, which is how far
  /// the band goes. (A tree has one background; elements inside have to be there to be below it.)
  /// Waits. Throws Error, and changes nothing, where the band is not closed, and for a background that
  /// is not above 0.
  template <std::floating_point T>
  void signed_flood_fill(const Field<T, N>& u, Loc l = Loc::here()) const {
    detail::signed_flood_fill(*data_, u, l);
  }
  /// Another tree of the same levels, shape and first indices, with the same active elements and no
  /// fields.
  Tree copy(Loc l = Loc::here()) const { return Tree(detail::copy_tree(*data_, l)); }
  /// A field on this tree with the background of `u`, which may be on another tree, and with its
  /// elements where they are active in both.
  template <class T>
  Field<T, N> copy_of(const Field<T, N>& u, const Layout& layout = {}, Loc l = Loc::here()) const {
    return detail::copied(data_, u, layout, l);
  }

  /// A tree of half the resolution: an element is active where one of the 2^N that it consists of is.
  /// Index i becomes ⌊i / 2⌋. The levels are this tree's, the outermost as large as it has to be.
  Tree coarsen(Loc l = Loc::here()) const { return Tree(detail::coarse_tree(*data_, l)); }
  /// A field on this tree with what `u`, of twice the resolution, makes of the elements of each that
  /// are active, and with u's background.
  template <class T>
  Field<T, N> coarsened(const Field<T, N>& u, Coarsening how, const Layout& layout = {},
                        Loc l = Loc::here()) const {
    return detail::coarsened(data_, u, how, layout, l);
  }
  /// A tree of twice the resolution: all 2^N elements that an active one consists of are active.
  Tree refine(Loc l = Loc::here()) const { return Tree(detail::fine_tree(*data_, l)); }
  /// A field on this tree whose elements are those of `u`, of half the resolution, that they belong to.
  template <class T>
  Field<T, N> refined(const Field<T, N>& u, const Layout& layout = {}, Loc l = Loc::here()) const {
    return detail::refined(data_, u, layout, l);
  }
  /// What was active ends. Then those elements are active, and what the dense field says, that it has
  /// further than `tolerance` from the background of `u`; with them the others of their units. Other
  /// fields are the background. Throws Error, and changes nothing, where some of that lies outside.
  /// Waits.
  template <class T>
  void from_dense(const Field<T, N>& u, const Field<T, N>& dense,
                  std::type_identity_t<detail::scalar_t<T>> tolerance = detail::scalar_t<T>(),
                  Loc l = Loc::here()) const {
    detail::from_dense(*data_, u, dense, tolerance, l);
  }

  // What was active ends; then exactly that is active which is said, with its units, and is the
  // background. Throw Error, and change nothing, where some of that lies outside of the tree, for
  // fields on the tree itself and fields of other devices. Wait, but for boxes.
  /// The elements that points lie in. With one axis points are floats.
  void build_from(const Field<detail::PerAxis<float, N>>& points, const Voxels<N>& voxels,
                  Loc l = Loc::here()) const {
    detail::build_from_points(*data_, points.object(), false, voxels.origin.data(), voxels.size, l);
  }
  /// The elements of these indices.
  void build_from(const Field<detail::PerAxis<int, N>>& indices, Loc l = Loc::here()) const {
    const Voxels<N> voxels;
    detail::build_from_points(*data_, indices.object(), true, voxels.origin.data(), voxels.size, l);
  }
  /// The elements of all the boxes.
  void build_from(std::span<const IndexBox<N>> boxes, Loc l = Loc::here()) const {
    static_assert(sizeof(IndexBox<N>) == 2 * N * sizeof(int64_t));
    detail::build_from_boxes(*data_, boxes.empty() ? nullptr : boxes.front().lo.data(),
                             boxes.size(), l);
  }
  void build_from(std::initializer_list<IndexBox<N>> boxes, Loc l = Loc::here()) const {
    build_from(std::span<const IndexBox<N>>(boxes.begin(), boxes.size()), l);
  }
  /// The elements at whose index the mask is true, or not 0. It may have any shape; of a mask on another
  /// tree those that are active are asked.
  void build_from(const Field<bool, N>& mask, Loc l = Loc::here()) const {
    detail::build_from_mask(*data_, mask.object(), true, l);
  }
  void build_from(const Field<uint8_t, N>& mask, Loc l = Loc::here()) const {
    detail::build_from_mask(*data_, mask.object(), false, l);
  }
  /// What is active in another tree.
  void build_from(const Tree& other, Loc l = Loc::here()) const {
    detail::build_from_tree(*data_, *other.data_, l);
  }
  /// The elements that triangles touch, or come nearer to than `band` elements along all axes. Each
  /// triangle is three indices of vertices. What is of the band outside of the tree is left out; a
  /// vertex outside is an Error.
  void build_from(const Field<Vec<float, 3>>& vertices, const Field<Vec<int, 3>>& triangles,
                  const Voxels<3>& voxels, float band = 0, Loc l = Loc::here()) const
    requires(N == 3)
  {
    detail::build_from_triangles(*data_, vertices.object(), triangles.object(),
                                 voxels.origin.data(), voxels.size, band, l);
  }

  explicit Tree(std::shared_ptr<detail::TreeData> data) : data_(std::move(data)) {}
  const std::shared_ptr<detail::TreeData>& data() const { return data_; }

 private:
  std::shared_ptr<detail::TreeData> data_;
};

/// Are the same elements active in both? Waits. Throws Error for trees on different devices.
template <int N>
bool same_activity(const Tree<N>& a, const Tree<N>& b, Loc l = Loc::here()) {
  return detail::same_activity(*a.data(), *b.data(), l);
}

/// A field on no tree with all elements of one that is on a tree: the background where they are not
/// active. Shape and first indices are the same. Throws Error for more than 2^40 elements of a tree
/// without an end; a slice has fewer.
template <class T, int N>
Field<T, N> to_dense(const Field<T, N>& u, const Layout& layout = {}, Loc l = Loc::here()) {
  return detail::to_dense(u, layout, l);
}

}  // namespace quern
