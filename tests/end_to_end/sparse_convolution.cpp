// Sparse convolution on every device, against plain C++ over a map, and the same kernel on dense fields.
#include "examples/sparse_convolution.h"

#include <array>
#include <map>
#include <random>

#include "tests/end_to_end/devices.h"

using examples::SparseConvolution;

namespace {

constexpr int channels = SparseConvolution::channels, side = 12;
using Voxel = std::array<int, 3>;
using Values = std::array<float, channels>;
using Map = std::map<Voxel, Values>;

/// Small integers, whose sums are exact in any order.
std::vector<float> some_weights() {
  std::mt19937 random(3);
  std::vector<float> weights(size_t(SparseConvolution::taps * channels * channels));
  for (float& w : weights) w = float(int(random() % 5) - 2);
  return weights;
}

/// The shell of a ball, voxels at random, and the corners, from index 1 on.
Map some_voxels() {
  std::mt19937 random(4);
  Map all;
  for (int x = 0; x < side; x++)
    for (int y = 0; y < side; y++)
      for (int z = 0; z < side; z++) {
        const int dx = 2 * x - side, dy = 2 * y - side, dz = 2 * z - side;
        const int square = dx * dx + dy * dy + dz * dz;
        const bool is_corner = x % (side - 1) + y % (side - 1) + z % (side - 1) == 0;
        if ((square > 64 && square < 110) || random() % 9 == 0 || is_corner)
          for (float& v : all[{x + 1, y + 1, z + 1}]) v = float(int(random() % 7) - 3);
      }
  return all;
}

Map convolved(const Map& from, const std::vector<float>& weights) {
  Map to;
  for (const auto& [at, own] : from) {
    Values& sum = to[at];
    sum.fill(0);
    for (int tap = 0; tap < SparseConvolution::taps; tap++) {
      const auto beside =
          from.find({at[0] + tap / 9 - 1, at[1] + tap / 3 % 3 - 1, at[2] + tap % 3 - 1});
      if (beside == from.end()) continue;
      for (int in = 0; in < channels; in++)
        for (int out = 0; out < channels; out++)
          sum[size_t(out)] +=
              beside->second[size_t(in)] * weights[size_t((tap * channels + in) * channels + out)];
    }
  }
  return to;
}

/// All features of n³ voxels, of which the first has index `first` along each axis; 0 where there are none.
std::vector<float> spread(const Map& map, int first, int n) {
  std::vector<float> all(size_t(n * n * n * channels));
  for (const auto& [at, values] : map)
    for (int c = 0; c < channels; c++)
      all[size_t((((at[0] - first) * n + at[1] - first) * n + at[2] - first) * channels + c)] =
          values[size_t(c)];
  return all;
}

}  // namespace

TEST_CASE("a sparse convolution is the sum over the neighbours that a map finds") {
  const std::vector<float> weights = some_weights();
  const Map voxels = some_voxels(), expected = convolved(voxels, weights);
  REQUIRE(voxels.size() > 200);
  on_every_device([&](const qn::Device& device) {
    const SparseConvolution convolution(device, weights);
    const qn::Tree<4> tree = SparseConvolution::make_tree(device, side);
    const auto from = tree.field<float>(), to = tree.field<float>();
    const int n = side + 2;
    qn::Field<float, 4> dense{device, {n, n, n, channels}};
    dense.copy_from(spread(voxels, 0, n));
    tree.from_dense(from, dense);
    convolution.apply(from, to);
    CHECK(tree.active_count() == int64_t(voxels.size()) * channels);
    const int extent = int(to.shape(0));
    CHECK(qn::to_vector(qn::to_dense(to)) == spread(expected, 0, extent));

    // On dense fields all voxels have a sum: of those that had features it is the same.
    qn::Field<float, 4> all{device, {side, side, side, channels}, qn::offset(1, 1, 1, 0)};
    convolution.apply(dense, all);
    const std::vector<float> sums = qn::to_vector(all), wanted = spread(expected, 1, side);
    int wrong = 0;
    for (const auto& [at, values] : expected) {
      const int first = (((at[0] - 1) * side + at[1] - 1) * side + at[2] - 1) * channels;
      for (int c = 0; c < channels; c++)
        wrong += sums[size_t(first + c)] != wanted[size_t(first + c)];
    }
    CHECK(wrong == 0);

    convolution.rectify(to);
    std::vector<float> rectified = spread(expected, 0, extent);
    for (float& v : rectified) v = std::max(v, 0.0f);
    CHECK(qn::to_vector(qn::to_dense(to)) == rectified);
    CHECK(tree.active_count() == int64_t(voxels.size()) * channels);
  });
}
