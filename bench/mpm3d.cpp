#include "bench/mpm3d.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "bench/harness.h"
#include "examples/mpm3d.h"

namespace bench {

namespace {

using Particles = std::vector<examples::FluidParticle<>>;

Particles in_order_of_cells(Particles particles, int n) {
  auto cell = [&](const examples::FluidParticle<>& p) {
    auto node = [&](float x) { return int(x * float(n) - 0.5f); };
    return (node(p.x.x) * n + node(p.x.y)) * n + node(p.x.z);
  };
  std::sort(particles.begin(), particles.end(),
            [&](const auto& a, const auto& b) { return cell(a) < cell(b); });
  return particles;
}

void substeps(Report& report, int n, bool sorted) {
  const Particles random = examples::Mpm3d::block(n);
  const Particles start = sorted ? in_order_of_cells(random, n) : random;
  examples::Mpm3d mpm(report.device(), start, n);
  std::vector<reference::FluidParticle> particles;
  for (const examples::FluidParticle<>& p : start)
    particles.push_back({{p.x.x, p.x.y, p.x.z}, {}, {}, 1});
  auto nodes = std::make_unique<float[][4]>(size_t(n) * n * n);
  const reference::Mpm3d state{n, particles.size(), particles.data(), nodes.get()};
  // A particle of 16 floats is read for the grid, written after it, its position and volume read
  // again; a node of 4 is cleared, summed and moved, read.
  const double bytes = 144.0 * double(start.size()) + 5.0 * 16 * n * n * n;
  report.run({sorted ? "mpm3d sorted" : "mpm3d random", std::to_string(start.size()), bytes, 0,
              [&] {
                mpm.advance(1);
                report.device().synchronize();
              },
              [&] { reference::mpm3d_substep(state); }, report.bandwidth(bytes)});
}

}  // namespace

void mpm3d(Report& report) {
  for (int n : {32, 64})
    for (bool sorted : {true, false}) substeps(report, n, sorted);
}

}  // namespace bench
