#pragma once
// A convolution of features that only some voxels have, as in neural networks for scans.
#include <quern/sparse.h>

#include <vector>

namespace examples {

/// Submanifold sparse convolution (Graham, Engelcke & van der Maaten, "3D Semantic Segmentation with
/// Submanifold Sparse Convolutional Networks", CVPR 2018) of 3³ voxels, 16 channels to 16: what has
/// features has some afterwards, and nothing else; voxels that have none count as 0.
class SparseConvolution {
 public:
  static constexpr int channels = 16, taps = 27;
  /// {x, y, z, channel}.
  using Features = quern::Field<float, 4>;

  /// A tree for features of side³ voxels with indices from 1 on, each of which has all channels or none.
  /// Its elements reach a voxel further at least on all sides, which are to stay without features.
  static quern::Tree<4> make_tree(const quern::Device& device, int side);

  /// The weight of channel `in` of the voxel (dx, dy, dz) steps away, in channel `out`, is at
  /// ((9 (dx + 1) + 3 (dy + 1) + dz + 1) · 16 + in) · 16 + out.
  SparseConvolution(const quern::Device& device, const std::vector<float>& weights);

  /// `to` becomes the convolution of `from` where its own elements are active: all of a field on the
  /// same tree, or dense fields, `from` with one more voxel on all sides. Asynchronous.
  void apply(const Features& from, const Features& to) const { apply_(from, to); }
  /// Of a field on a tree: 0 where it is less; asynchronous.
  void rectify(const Features& features) const { rectify_(features); }

 private:
  quern::Field<float, 3> weights_;  ///< {tap, in, out}
  quern::Kernel<void(Features, Features)> apply_;
  quern::Kernel<void(Features)> rectify_;
};

}  // namespace examples
