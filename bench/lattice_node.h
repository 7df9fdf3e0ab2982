#pragma once
// One node of bench/lattice.h in Quern.
#include <quern/quern.h>

#include "bench/lattice.h"

namespace bench {

/// Streams and collides the node k, j, i of `now` into `next`, where it is recorded.
inline void stream_and_collide(const quern::Field<float, 4>& now,
                               const quern::Field<float, 4>& next, const quern::lang::I32& k,
                               const quern::lang::I32& j, const quern::lang::I32& i, float rate) {
  std::array<quern::lang::Var<float>, 19> f;
  quern::lang::Var<float> density = 0, x = 0, y = 0, z = 0;
  for (size_t q = 0; q < 19; q++) {
    const Direction& d = d3q19[q];
    f[q] = now(q, k - d.z, j - d.y, i - d.x);
    density += f[q];
    if (d.x) x += float(d.x) * f[q];
    if (d.y) y += float(d.y) * f[q];
    if (d.z) z += float(d.z) * f[q];
  }
  auto whole = 1.0f + density, inverse = 1.0f / whole;
  auto u = x * inverse, v = y * inverse, w = z * inverse;
  auto square = 1.5f * (u * u + v * v + w * w);
  for (size_t q = 0; q < 19; q++) {
    const Direction& d = d3q19[q];
    auto s = 3.0f * (float(d.x) * u + float(d.y) * v + float(d.z) * w);
    auto equilibrium = d.weight * (density + whole * (s + 0.5f * s * s - square));
    next(q, k, j, i) = f[q] + rate * (equilibrium - f[q]);
  }
}

}  // namespace bench
