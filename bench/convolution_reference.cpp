#include "bench/convolution_reference.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "bench/wide.h"

namespace bench::reference {

namespace {

constexpr std::size_t channels = 16, taps = 27, block = 1024;  ///< outputs, which stay in a cache

uint64_t key_of(int x, int y, int z) {
  const auto digit = [](int v) { return uint64_t(v + 1) & 0x1fffff; };
  return digit(x) << 42 | digit(y) << 21 | digit(z);
}

}  // namespace

Rulebook::Rulebook(const std::vector<Voxel>& voxels) : voxels_(voxels.size()) {
  std::unordered_map<uint64_t, uint32_t> number;
  number.reserve(voxels.size());
  for (std::size_t k = 0; k < voxels.size(); k++)
    number[key_of(voxels[k].x, voxels[k].y, voxels[k].z)] = uint32_t(k);
  for (std::size_t begin = 0; begin < voxels.size(); begin += block)
    for (int tap = 0; tap < int(taps); tap++) {
      first_.push_back(pairs_.size());
      for (std::size_t k = begin; k < std::min(begin + block, voxels.size()); k++) {
        const Voxel& v = voxels[k];
        const auto found =
            number.find(key_of(v.x + tap / 9 - 1, v.y + tap / 3 % 3 - 1, v.z + tap % 3 - 1));
        if (found != number.end()) pairs_.push_back({found->second, uint32_t(k)});
      }
    }
  first_.push_back(pairs_.size());
}

void Rulebook::convolve(const float* from, const float* weights, float* to) const {
  const std::size_t blocks = first_.size() / taps;
#pragma omp parallel for schedule(dynamic)
  for (std::size_t b = 0; b < blocks; b++) {
    const std::size_t begin = b * block, end = std::min(begin + block, voxels_);
    std::memset(to + begin * channels, 0, (end - begin) * channels * sizeof(float));
    for (std::size_t tap = 0; tap < taps; tap++) {
      const float* w = weights + tap * channels * channels;
      std::size_t p = first_[b * taps + tap];
      const std::size_t last = first_[b * taps + tap + 1];
      // Eight rows at a time, so that a row of weights is loaded once for all of them.
      for (; p + 8 <= last; p += 8) {
        Wide<float> sum[8];
        const float* row[8];
        for (std::size_t r = 0; r < 8; r++) {
          sum[r] = load(to + pairs_[p + r].to * channels);
          row[r] = from + pairs_[p + r].from * channels;
        }
        for (std::size_t in = 0; in < channels; in++) {
          const Wide<float> line = load(w + in * channels);
          for (std::size_t r = 0; r < 8; r++) sum[r] += row[r][in] * line;
        }
        for (std::size_t r = 0; r < 8; r++) store(to + pairs_[p + r].to * channels, sum[r]);
      }
      for (; p < last; p++) {
        Wide<float> sum = load(to + pairs_[p].to * channels);
        for (std::size_t in = 0; in < channels; in++)
          sum += from[pairs_[p].from * channels + in] * load(w + in * channels);
        store(to + pairs_[p].to * channels, sum);
      }
    }
  }
}

}  // namespace bench::reference
