// A step of the lattice Boltzmann method in three dimensions (D3Q19, BGK), streaming and collision
// in one sweep from one array into another, components apart.
#include "bench/lattice_node.h"

#include <quern/host.h>

#include <cmath>
#include <vector>

#include "bench/harness.h"
#include "bench/pages.h"

namespace bench {
namespace qn = quern;
using namespace qn::lang;

void lattice(Report& report) {
  qn::Device& device = report.device();
  constexpr int n = 128;
  const float rate = 1.6f;
  qn::Field<float, 4> now{device, {19, n + 2, n + 2, n + 2}},
      next{device, {19, n + 2, n + 2, n + 2}};
  Array<float> start(size_t(now.size())), end(start.size());
  for (size_t k = 0; k < start.size(); k++) start[k] = 1e-3f * float(k % 61) / 61;
  now.copy_from(start);

  qn::Kernel step = [&] {
    for (auto [a, b, c] : grid(n, n, n)) {
      stream_and_collide(now, next, a + 1, b + 1, c + 1, rate);
    }
  };
  const double nodes = double(n) * n * n, bytes = nodes * 19 * 2 * sizeof(float);
  report.run({"lbm_d3q19", std::to_string(n) + "^3", bytes, 0,
              [&] {
                step();
                report.complete();
              },
              [&] { reference::lattice_step(start.data(), end.data(), n, rate); },
              report.bandwidth(bytes), nodes});
  reference::lattice_step(start.data(), end.data(), n, rate);
  const std::vector<float> mine = qn::to_vector(next);
  for (size_t k = 0; k < mine.size(); k++)
    if (!(std::abs(mine[k] - end[k]) < 1e-7f))
      throw qn::Error("lbm_d3q19 and its reference differ at element " + std::to_string(k));
}

}  // namespace bench
