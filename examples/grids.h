#pragma once
// What the fields of a grid lie on: memory for all of its elements, or a tree. Kernels do not mention it.
#include <quern/sparse.h>

#include <array>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>

namespace examples {

/// Makes the fields of a program that works on a grid, of one shape and with indices from 0.
template <int N>
class Grid {
 public:
  /// `levels` are of the tree that the fields lie on, in which nothing is active at first; without any
  /// the fields are dense.
  Grid(const quern::Device& device, const std::array<int64_t, size_t(N)>& shape,
       std::initializer_list<quern::TreeLevel> levels = {}, quern::Loc loc = quern::Loc::here())
      : device_(device), shape_(shape) {
    if (levels.size() > 0) plant(levels, loc, each_axis());
  }

  /// 0 everywhere.
  template <class T>
  quern::Field<T, N> field(const quern::Layout& layout = {}) const {
    if (tree_) return tree_->template field<T>(T{}, layout);
    return dense<T>(layout, each_axis());
  }
  /// Makes all elements active; those of dense fields are.
  void activate_all() const {
    if (tree_) tree_->build_from({quern::IndexBox<N>{{}, shape_}});
  }

  /// Ends all elements of a tree; dense fields stay as they are.
  void clear() const {
    if (tree_) tree_->clear();
  }

  const quern::Device& device() const { return device_; }
  /// None: the fields are dense.
  const std::optional<quern::Tree<N>>& tree() const { return tree_; }
  int64_t extent(int axis) const { return shape_[size_t(axis)]; }
  /// The extent along all axes. Throws Error where they differ.
  int side(quern::Loc loc = quern::Loc::here()) const {
    for (int64_t n : shape_)
      if (n != shape_[0])
        throw quern::Error(loc, "the grid's extents must all be the same, not " +
                                    std::to_string(shape_[0]) + " and " + std::to_string(n));
    return int(shape_[0]);
  }

 private:
  static auto each_axis() { return std::make_index_sequence<size_t(N)>(); }
  template <size_t... K>
  void plant(std::initializer_list<quern::TreeLevel> levels, quern::Loc loc,
             std::index_sequence<K...>) {
    tree_.emplace(device_, levels, quern::TreeOptions{.shape = {shape_[K]...}}, loc);
  }
  template <class T, size_t... K>
  quern::Field<T, N> dense(const quern::Layout& layout, std::index_sequence<K...>) const {
    return {device_, {shape_[K]...}, layout};
  }

  quern::Device device_;
  std::array<int64_t, size_t(N)> shape_;
  std::optional<quern::Tree<N>> tree_;
};

}  // namespace examples
