#include "bench/sparse_programs.h"

#include <quern/host.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "bench/convolution_reference.h"
#include "bench/harness.h"
#include "bench/pages.h"
#include "examples/mpm3d.h"
#include "examples/sparse_convolution.h"

namespace bench {
namespace qn = quern;
using namespace qn::lang;

namespace {

using Particles = std::vector<examples::FluidParticle<>>;

constexpr int leaf = 4;

Particles in_order_of_leaves(Particles particles, int n) {
  const auto place = [&](const examples::FluidParticle<>& p) {
    const auto node = [&](float x) { return int64_t(x * float(n) - 0.5f); };
    const int64_t x = node(p.x.x), y = node(p.x.y), z = node(p.x.z);
    return std::array{x / leaf, y / leaf, z / leaf, x, y, z};
  };
  std::sort(particles.begin(), particles.end(),
            [&](const auto& a, const auto& b) { return place(a) < place(b); });
  return particles;
}

/// What a substep does to the tree, and nothing else: it is cleared, the nodes that particles reach become
/// active, and a loop over them wants the lists of cells.
class Rebuilding {
 public:
  Rebuilding(const examples::Grid<3>& grid, const Particles& start, int n)
      : grid_(grid), x_(grid.device(), {start.size()}), nodes_(grid.field<float>()), activate_([&] {
          for (auto k : x_) {
            auto base = ifloor(x_[k] * float(n) - 0.5f);
            for (int i = 0; i < 3; i++)
              for (int j = 0; j < 3; j++)
                for (int l = 0; l < 3; l++) activate(nodes_, base + ivec3(i, j, l));
          }
          Var<int> count = 0;
          for (auto [i, j, k] : nodes_) count += 1;
          return count;
        }) {
    std::vector<vec3> x;
    for (const examples::FluidParticle<>& p : start) x.push_back(p.x);
    x_.copy_from(x);
  }
  void run() {
    grid_.clear();
    activate_();
  }

 private:
  examples::Grid<3> grid_;
  qn::Field<vec3> x_;
  qn::Field<float, 3> nodes_;
  qn::Kernel<int()> activate_;
};

}  // namespace

void sparse_mpm(Report& report) {
  const int n = 64, room = 512;
  const Particles start = in_order_of_leaves(examples::Mpm3d::block(n), n);
  const auto box = [&] {
    return examples::Grid<3>(report.device(), {room, room, room},
                             {qn::pointer(16), qn::pointer(8), qn::dense(leaf)});
  };
  const examples::Grid<3> on_tree = box();
  examples::Mpm3d mpm(on_tree, start, n), dense(report.device(), start, n);
  Rebuilding rebuilding(box(), start, n);
  const auto step = [&] {
    mpm.advance(1);
    report.complete();
  };
  mpm.advance(1);
  // As in bench/mpm3d.cpp, of the nodes that are there.
  const double bytes =
      144.0 * double(start.size()) + 5.0 * 16 * double(on_tree.tree()->active_count());
  const std::string size = std::to_string(start.size());
  report.run({"mpm3d : dense", size, bytes, 0, step,
              [&] {
                dense.advance(1);
                report.complete();
              },
              report.bandwidth(bytes), double(start.size())});
  const Row rebuilt = report.run({"mpm3d rebuild : step", size, 12.0 * double(start.size()), 0,
                                  [&] {
                                    rebuilding.run();
                                    report.complete();
                                  },
                                  step, 0, double(start.size())});
  if (rebuilt.seconds > 0)
    std::printf("  the nodes' tree made anew: %.1f ns a particle, %.1f %% of the step's %.1f\n",
                rebuilt.seconds * 1e9 / double(start.size()), 100 / rebuilt.ratio,
                rebuilt.reference_seconds * 1e9 / double(start.size()));
}

void sparse_convolution(Report& report) {
  using examples::SparseConvolution;
  constexpr int channels = SparseConvolution::channels, side = 126, radius = 48;
  // A shell of seven voxels, which come in the order of the tree's cells of 4³.
  std::vector<reference::Voxel> voxels;
  for (int cell = 0; cell < 32 * 32 * 32; cell++)
    for (int k = 0; k < 64; k++) {
      const reference::Voxel v = {cell / (32 * 32) * 4 + k / 16, cell / 32 % 32 * 4 + k / 4 % 4,
                                  cell % 32 * 4 + k % 4};
      const double x = v.x - 64, y = v.y - 64, z = v.z - 64;
      if (std::abs(std::sqrt(x * x + y * y + z * z) - radius) <= 3) voxels.push_back(v);
    }
  const size_t count = voxels.size();
  std::mt19937 random(1);
  std::uniform_real_distribution<float> number(-1, 1);
  std::vector<float> weights(size_t(SparseConvolution::taps * channels * channels));
  for (float& w : weights) w = number(random);
  Array<float> values(count * channels), expected(count * channels);
  for (float& v : values) v = number(random);

  const SparseConvolution convolution(report.device(), weights);
  const qn::Tree<4> tree = SparseConvolution::make_tree(report.device(), side);
  const auto from = tree.field<float>(), to = tree.field<float>();
  qn::Field<ivec3> places{report.device(), {count}};
  qn::Field<float> rows{report.device(), {count * channels}};
  std::vector<ivec3> coordinates;
  for (const reference::Voxel& v : voxels) coordinates.push_back({v.x, v.y, v.z});
  places.copy_from(coordinates);
  rows.copy_from(values);
  qn::Kernel put = [&] {
    for (auto n : rows) {
      auto at = places[n / channels];
      from(at.x, at.y, at.z, n % channels) = rows[n];
    }
  };
  qn::Kernel get = [&] {
    for (auto n : rows) {
      auto at = places[n / channels];
      rows[n] = to(at.x, at.y, at.z, n % channels);
    }
  };
  put();
  const reference::Rulebook rules(voxels);
  // What is useful: 16 · 16 multiplications and additions for each pair of active neighbours.
  const double flops = 2.0 * channels * channels * double(rules.pairs());
  report.run({"convolution 16-16", std::to_string(count), 0, flops,
              [&] {
                convolution.apply(from, to);
                report.complete();
              },
              [&] { rules.convolve(values.data(), weights.data(), expected.data()); },
              report.flops_peak(), double(count)});
  convolution.apply(from, to);
  get();
  rules.convolve(values.data(), weights.data(), expected.data());
  const std::vector<float> found = qn::to_vector(rows);
  for (size_t k = 0; k < found.size(); k++)
    if (!(std::abs(found[k] - expected[k]) <= 1e-4f * (1 + std::abs(expected[k]))))
      throw qn::Error("the sparse convolution and its reference differ at " + std::to_string(k));
}

}  // namespace bench
