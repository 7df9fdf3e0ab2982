#pragma once
// D3Q19: the lattice Boltzmann method in three dimensions, BGK, for both sides of its benchmark.
#include <array>
#include <cstddef>

namespace bench {

class Report;
void lattice(Report& report);

struct Direction {
  int x, y, z;
  float weight;
};
/// Every step to a neighbour in at most two of the axes.
constexpr std::array<Direction, 19> d3q19 = [] {
  std::array<Direction, 19> d{};
  std::size_t k = 0;
  for (int z = -1; z <= 1; z++)
    for (int y = -1; y <= 1; y++)
      for (int x = -1; x <= 1; x++) {
        const int axes = x * x + y * y + z * z;
        if (axes < 3) d[k++] = {x, y, z, axes == 0 ? 1 / 3.f : axes == 1 ? 1 / 18.f : 1 / 36.f};
      }
  return d;
}();

namespace reference {
/// Streams and collides the inner n³ nodes of `from` into `to`: 19 blocks of (n + 2)³ floats, each
/// the difference from the fluid at rest. `rate` is 1 / tau.
void lattice_step(const float* from, float* to, int n, float rate);
}  // namespace reference

}  // namespace bench
