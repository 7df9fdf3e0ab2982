#include "examples/sparse_convolution.h"

#include <array>

namespace examples {

namespace qn = quern;
using namespace qn::lang;

qn::Tree<4> SparseConvolution::make_tree(const qn::Device& device, int side) {
  const int cells = (side + 2 + 31) / 32;
  return {device,
          {qn::pointer(cells, cells, cells, 1), qn::pointer(8, 8, 8, 1), qn::bitmasked(4, 4, 4, 1),
           qn::dense(1, 1, 1, channels)}};
}

SparseConvolution::SparseConvolution(const qn::Device& device, const std::vector<float>& weights)
    : weights_{device, {taps, channels, channels}},
      apply_{[this](Features from, Features to) {
        // A loop for each plane of taps: its body is short enough for vectors along the channels.
        for (int dx = -1; dx <= 1; dx++)
          for (auto [x, y, z, out] : to) {
            // Four sums, as the additions of one would wait for each other.
            std::array<Var<float>, 4> sum;
            if (dx > -1) sum[0] = to(x, y, z, out);
            for (int dy = -1; dy <= 1; dy++)
              for (int dz = -1; dz <= 1; dz++)
                for (int in = 0; in < channels; in++)
                  sum[size_t(in % 4)] += from(x + dx, y + dy, z + dz, in) *
                                         weights_(9 * (dx + 1) + 3 * (dy + 1) + dz + 1, in, out);
            to(x, y, z, out) = (sum[0] + sum[1]) + (sum[2] + sum[3]);
          }
      }},
      rectify_{[](Features features) {
        for (auto I : features) features[I] = max(features[I], 0.0f);
      }} {
  weights_.copy_from(weights);
}

}  // namespace examples
