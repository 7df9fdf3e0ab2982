#pragma once
// A tree of OpenVDB's beside ours: 5-4-3, the usual one, with leaves of 8³ elements.
#include <cstddef>
#include <memory>

namespace bench::openvdb {

/// Was it there when this was built?
bool is_present();

/// Coordinates and values, apart.
struct Points {
  const int *x, *y, *z;
  const float* value;
  std::size_t count;
};

/// From one point, in directions of length 1.
struct Rays {
  float eye[3];
  const float *x, *y, *z;
  std::size_t count;
};

/// Work on what is there uses all of OpenMP's threads, an accessor for each; inserting, which OpenVDB
/// does on one thread at a time, one.
class Tree {
 public:
  explicit Tree(float background);
  ~Tree();
  Tree(const Tree&) = delete;

  void insert(const Points& points);
  /// Active elements that are read by the accessor, or from the root down.
  void read_by_accessor(const Points& points, float* out) const;
  void read_by_tree(const Points& points, float* out) const;
  /// The sum of six neighbours less 6 times the element, into the same elements of `out`, a tree of
  /// the same topology.
  void stencil(Tree& out) const;
  /// How far along it each ray meets an active element first, or -1: by the hierarchical DDA that
  /// OpenVDB's intersectors of rays go by, in double precision.
  void first_hits(const Rays& rays, float* t) const;
  /// Multiplies active elements.
  void scale(float by);

 private:
  struct Data;
  std::unique_ptr<Data> data_;
};

}  // namespace bench::openvdb
