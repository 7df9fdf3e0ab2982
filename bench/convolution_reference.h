#pragma once
// Hand-written C++ of the sparse convolution: g++ -O3 -march=native -fopenmp, all threads.
#include <cstddef>
#include <cstdint>
#include <vector>

namespace bench::reference {

struct Voxel {
  int x, y, z;
};

/// Which voxels are beside which, found once by a hash map, as libraries for such networks do: for each
/// block of outputs and each of the 27 taps pairs of an input's and an output's number.
class Rulebook {
 public:
  explicit Rulebook(const std::vector<Voxel>& voxels);
  std::size_t pairs() const { return pairs_.size(); }
  /// Gathers inputs, multiplies them by a tap's 16 × 16 weights, scatters to the outputs; rows of 16.
  void convolve(const float* from, const float* weights, float* to) const;

 private:
  struct Pair {
    uint32_t from, to;
  };
  std::size_t voxels_;
  std::vector<Pair> pairs_;
  std::vector<std::size_t> first_;  ///< pair of each block's taps
};

}  // namespace bench::reference
