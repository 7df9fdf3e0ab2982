// Fields on trees: a stencil, insertion, reads and rays in the narrow band of a sphere, a loop over more and more
// leaves, and multigrid in a ball. Beside them the same kernel on dense fields, OpenVDB where it was there to
// build with, and a smoother by hand.
#include <quern/host.h>
#include <quern/rays.h>
#include <quern/sparse.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "bench/harness.h"
#include "bench/multigrid_reference.h"
#include "bench/openvdb/reference.h"
#include "bench/pages.h"
#include "bench/sparse_programs.h"
#include "examples/mgpcg.h"

namespace bench {
namespace qn = quern;
using namespace qn::lang;

namespace {

using Scalars = qn::Field<float, 3>;
using Numbers = qn::Field<int>;
using Values = qn::Field<float>;

constexpr int leaf = 8, leaf_size = leaf * leaf * leaf;
constexpr float background = 3;

struct Band {
  Array<int> x, y, z;
  Array<float> value;
  size_t leaves = 0;
  size_t count() const { return x.size(); }
  openvdb::Points points() const { return {x.data(), y.data(), z.data(), value.data(), count()}; }
};

/// The elements within 3 of a sphere's surface, with their distance from it, leaf by leaf.
Band narrow_band(int radius, int centre) {
  Band band;
  const int first = (centre - radius - 4) / leaf, last = (centre + radius + 4) / leaf;
  auto distance = [&](int i, int j, int k) {
    const double x = i - centre, y = j - centre, z = k - centre;
    return float(std::sqrt(x * x + y * y + z * z) - radius);
  };
  for (int a = first; a <= last; a++)
    for (int b = first; b <= last; b++)
      for (int c = first; c <= last; c++) {
        if (std::abs(distance(a * leaf + 4, b * leaf + 4, c * leaf + 4)) > 3 + leaf) continue;
        const size_t before = band.count();
        for (int e = 0; e < leaf_size; e++) {
          const int i = a * leaf + e / 64, j = b * leaf + e / 8 % 8, k = c * leaf + e % 8;
          const float d = distance(i, j, k);
          if (std::abs(d) > 3) continue;
          band.x.push_back(i);
          band.y.push_back(j);
          band.z.push_back(k);
          band.value.push_back(d);
        }
        band.leaves += band.count() > before;
      }
  return band;
}

Band shuffled(const Band& band) {
  std::vector<size_t> order(band.count());
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937(1));
  Band out;
  out.leaves = band.leaves;
  for (size_t k : order) {
    out.x.push_back(band.x[k]);
    out.y.push_back(band.y[k]);
    out.z.push_back(band.z[k]);
    out.value.push_back(band.value[k]);
  }
  return out;
}

struct OnDevice {
  Numbers x, y, z;
  Values value;
  OnDevice(const qn::Device& device, const Band& band)
      : x(device, {band.count()}),
        y(device, {band.count()}),
        z(device, {band.count()}),
        value(device, {band.count()}) {
    x.copy_from(band.x);
    y.copy_from(band.y);
    z.copy_from(band.z);
    value.copy_from(band.value);
  }
};

qn::Tree<3> make_tree(const qn::Device& device, int64_t cells = 0) {
  return {device, {qn::pointer(16), qn::pointer(16), qn::bitmasked(leaf)}, {.cells = cells}};
}

qn::Kernel<void(Scalars, Scalars)> laplacian() {
  return [](Scalars u, Scalars out) {
    for (auto [i, j, k] : out)
      out(i, j, k) = u(i - 1, j, k) + u(i + 1, j, k) + u(i, j - 1, k) + u(i, j + 1, k) +
                     u(i, j, k - 1) + u(i, j, k + 1) - 6.0f * u(i, j, k);
  };
}

qn::Kernel<void(Numbers, Numbers, Numbers, Values, Scalars)> insertion() {
  return [](Numbers x, Numbers y, Numbers z, Values value, Scalars u) {
    for (auto n : x) u(x[n], y[n], z[n]) = value[n];
  };
}

qn::Kernel<void(Numbers, Numbers, Numbers, Values, Scalars)> reading() {
  return [](Numbers x, Numbers y, Numbers z, Values out, Scalars u) {
    for (auto n : x) out[n] = u(x[n], y[n], z[n]);
  };
}

std::string millions(size_t n) {
  std::string text = std::to_string((n + 5000) / 10000);
  return text.insert(text.size() - 2, ".") + " M";
}

void expect_equal(const char* what, const std::vector<float>& mine, const Array<float>& theirs) {
  for (size_t k = 0; k < mine.size(); k++)
    if (!(std::abs(mine[k] - theirs[k]) <= 1e-5f))
      throw qn::Error(std::string(what) + " differs at element " + std::to_string(k));
}

/// The stencil on the band, on a dense field of about as many elements as its leaves have, and in
/// OpenVDB; where cells lie as they came, and behind `shrink` in the order that loops take them.
void stencil(Report& report, const Band& band, qn::Tree<3>& tree, const Scalars& u,
             const Scalars& out, openvdb::Tree& theirs, openvdb::Tree& theirs_out) {
  const size_t slots = band.leaves * leaf_size;
  const int64_t n = 128, m = int64_t((slots + n * n / 2) / (n * n));
  Scalars dense_u{report.device(), {m + 2, n + 2, n + 2}, qn::offset(-1, -1, -1)};
  Scalars dense_out{report.device(), {m, n, n}};
  dense_u.fill(1.0f);
  qn::Kernel step = laplacian();
  auto on_tree = [&] {
    step(u, out);
    report.complete();
  };
  auto dense = [&] {
    step(dense_u, dense_out);
    report.complete();
  };
  const double bytes = 8.0 * double(slots), elements = double(m * n * n);
  const double active = double(band.count());
  report.run({"stencil7, dense",
              millions(size_t(elements)),
              8 * elements,
              0,
              dense,
              {},
              report.bandwidth(bytes),
              elements});
  const auto beside_dense = [&](const char* name) {
    const Row row = report.run(
        {name, millions(band.count()), bytes, 0, on_tree, dense, report.bandwidth(bytes), active});
    if (row.seconds == 0 || row.reference_seconds == 0) return;
    const double slot = row.seconds / double(slots), element = row.reference_seconds / elements;
    std::printf("  %.2f ns an active element, %.2f a slot; dense %.2f an element: %.2f a slot\n",
                row.seconds * 1e9 / active, slot * 1e9, element * 1e9, slot / element);
  };
  beside_dense("stencil7 : dense");
  if (openvdb::is_present())
    report.run({"stencil7 : OpenVDB", millions(band.count()), bytes, 0, on_tree,
                [&] { theirs.stencil(theirs_out); }, report.bandwidth(bytes), active});
  tree.shrink();
  beside_dense("stencil7, shrunk : dense");
}

/// Into an empty tree with room for so many cells; 0: as much as a tree has by itself.
void inserting(Report& report, const char* name, const Band& band, size_t cells = 0) {
  const OnDevice points(report.device(), band);
  qn::Kernel insert = insertion();
  report.run({name, millions(band.count()), 16.0 * double(band.count()), 0,
              [&] {
                qn::Tree<3> tree = make_tree(report.device(), int64_t(cells));
                insert(points.x, points.y, points.z, points.value, tree.field<float>(background));
                report.complete();
              },
              [&] {
                if (!openvdb::is_present()) return;
                openvdb::Tree tree(background);
                tree.insert(band.points());
              },
              0, double(band.count())});
}

void reads(Report& report, const Band& band, const Scalars& u, const openvdb::Tree& theirs) {
  const OnDevice points(report.device(), band);
  Values out{report.device(), {band.count()}};
  Array<float> result(band.count());
  qn::Kernel read = reading();
  auto mine = [&] {
    read(points.x, points.y, points.z, out, u);
    report.complete();
  };
  const double bytes = 20.0 * double(band.count());
  report.run({"random read : tree", millions(band.count()), bytes, 0, mine,
              [&] { theirs.read_by_tree(band.points(), result.data()); }, 0, double(band.count())});
  report.run({"random read : accessor", millions(band.count()), bytes, 0, mine,
              [&] { theirs.read_by_accessor(band.points(), result.data()); }, 0,
              double(band.count())});
  mine();
  expect_equal("random read", qn::to_vector(out), band.value);
}

/// Rays through the pixels of a square picture of the sphere, to the first active element.
void rays(Report& report, const Scalars& u, const openvdb::Tree& theirs) {
  constexpr int side = 512;
  constexpr size_t count = size_t(side) * side;
  Array<float> x(count), y(count), z(count), expected(count);
  std::vector<vec3> directions;
  for (int i = 0; i < side; i++)
    for (int j = 0; j < side; j++) {
      const size_t k = size_t(i * side + j);
      const vec3 d =
          normalize(vec3((float(i) + 0.5f) / side - 0.5f, (float(j) + 0.5f) / side - 0.5f, 1));
      x[k] = d.x;
      y[k] = d.y;
      z[k] = d.z;
      directions.push_back(d);
    }
  qn::Field<vec3> direction{report.device(), {count}};
  direction.copy_from(directions);
  Values t{report.device(), {count}};
  const vec3 eye(1024.3f, 1024.4f, 424);
  qn::Kernel march = [&] {
    for (auto n : t) {
      t[n] = -1.0f;
      for (auto voxel : voxels_along_ray(u, eye, direction[n])) {
        t[n] = voxel.t;
        Break();
      }
    }
  };
  const openvdb::Rays all = {{eye.x, eye.y, eye.z}, x.data(), y.data(), z.data(), count};
  const Row row = report.run({"rays", millions(count), 16.0 * double(count), 0,
                              [&] {
                                march();
                                report.complete();
                              },
                              [&] { theirs.first_hits(all, expected.data()); }, 0, double(count)});
  if (row.seconds > 0)
    std::printf("  %.2f million rays a second\n", 1e-6 * double(count) / row.seconds);
  if (!openvdb::is_present()) return;
  march();
  theirs.first_hits(all, expected.data());
  const std::vector<float> found = qn::to_vector(t);
  size_t unlike = 0;  // floats go past a corner on the other side than doubles now and then
  for (size_t k = 0; k < count; k++) unlike += !(std::abs(found[k] - expected[k]) < 1e-2f);
  if (unlike > count / 1000)
    throw qn::Error("rays differ in " + std::to_string(unlike) + " places");
}

/// A loop over so many full leaves.
void loop(Report& report, int leaves) {
  qn::Tree<3> tree = make_tree(report.device());
  Scalars u = tree.field<float>();
  openvdb::Tree theirs(0);
  const int64_t count = int64_t(leaves) * leaf_size;
  qn::Kernel fill = [&] {
    for (auto n : range(leaves * leaf_size)) {
      auto cell = n / leaf_size;
      u(cell % 32 * 8 + n / 64 % 8, cell / 32 % 32 * 8 + n / 8 % 8, cell / 1024 * 8 + n % 8) = 1.0f;
    }
  };
  fill();
  Array<int> x, y, z;
  for (int64_t n = 0; n < count; n++) {
    const int cell = int(n / leaf_size);
    x.push_back(cell % 32 * 8 + int(n / 64 % 8));
    y.push_back(cell / 32 % 32 * 8 + int(n / 8 % 8));
    z.push_back(cell / 1024 * 8 + int(n % 8));
  }
  const Array<float> ones(size_t(count), 1.0f);
  theirs.insert({x.data(), y.data(), z.data(), ones.data(), size_t(count)});
  qn::Kernel step = [&] {
    for (auto [i, j, k] : u) u(i, j, k) = u(i, j, k) * 1.0001f;
  };
  const double bytes = 8.0 * double(count);
  const Row row =
      report.run({"loop", std::to_string(leaves) + " leaves", bytes, 0,
                  [&] {
                    step();
                    report.complete();
                  },
                  [&] { theirs.scale(1.0001f); }, report.bandwidth(bytes), double(count)});
  if (row.seconds > 0) std::printf("  %.3f ns an element\n", row.seconds * 1e9 / double(count));
}

/// Loops over a tree in which nothing changes, and in which each time a cell has come or gone: how
/// often the tree has listed its cells for them.
void relisting(Report& report) {
  const qn::Tree<3> tree = make_tree(report.device());
  Scalars u = tree.field<float>();
  constexpr int leaves = 4096;
  qn::Kernel fill = [&] {
    for (auto n : range(leaves)) u(n / 256 * 8, n / 16 % 16 * 8, n % 16 * 8) = 1.0f;
  };
  fill();
  qn::Kernel step = [&] {
    for (auto [i, j, k] : u) u(i, j, k) = u(i, j, k) * 1.0001f;
  };
  qn::Kernel come = [&] { u(2000, 2000, 2000) = 1.0f; };
  qn::Kernel go = [&] {
    for (auto [i, j, k] : u) {
      If(i == 2000) { deactivate(u, i, j, k); }
    }
  };
  const auto row = [&](const char* name, bool changes) {
    const int64_t before = tree.stats().lists_made;
    int64_t loops = 0;
    report.run({name,
                std::to_string(leaves) + " leaves",
                0,
                0,
                [&] {
                  if (changes) loops % 2 ? go() : come();
                  step();
                  loops++;
                  report.complete();
                },
                {},
                0,
                leaves});
    if (const int64_t made = tree.stats().lists_made - before; loops > 0)
      std::printf("  %lld loops, cells listed %lld times\n", static_cast<long long>(loops),
                  static_cast<long long>(made));
  };
  row("loop, nothing changes", false);
  row("loop, a cell comes or goes", true);
}

/// Poisson's equation in a ball of n elements across (examples/mgpcg.h): a sweep of the smoother beside
/// one by hand in a dense box of about as many elements, a V-cycle, and a solution. Of the bytes, an
/// element's in the finest cells: half a sweep reads two floats and writes one; a cycle with two sweeps
/// before and after the coarser level is 117 of them (7 halves, the first one's 8, 12 for the residual,
/// 13 between the levels), and 8/7 of that for all levels; the iteration around it has 100 bytes more.
void multigrid(Report& report, int n) {
  const examples::Mgpcg::Setup setup;
  qn::Tree<3> tree = examples::Mgpcg::box(report.device(), n, setup.levels);
  auto region = tree.field<bool>();
  qn::Kernel fill = [&] {
    for (auto [i, j, k] : grid(n, n, n)) {
      Vec3 x = cast<float>(vec(i, j, k)) - 0.5f * float(n - 1);
      If(dot(x, x) < 0.22f * float(n * n)) { activate(region, i, j, k); }
    }
  };
  fill();
  examples::Mgpcg poisson(tree, 1.0 / n, setup);
  qn::Kernel start = [&] {
    for (auto I : poisson.u) {
      poisson.u[I] = 0.0;
      poisson.f[I] = 1.0;
    }
  };
  start();
  const int iterations = poisson.solve(1e-12).iterations;
  const double elements = double(tree.active_count());
  const double slots = double(tree.stats().levels.back().cells) * leaf_size;
  const double cycle = 117 * 8.0 / 7;

  const int m = int(std::cbrt(elements) + 0.5);
  Array<float> z(size_t(m + 2) * (m + 2) * (m + 2)), other(z.size()), b(size_t(m) * m * m, 1.0f);
  const Row sweep =
      report.run({"red-black : dense C++", millions(size_t(elements)), 24 * slots, 0,
                  [&] {
                    poisson.smooth();
                    report.complete();
                  },
                  [&] {
                    bench::reference::red_black(z.data(), b.data(), other.data(), m, 0);
                    bench::reference::red_black(other.data(), b.data(), z.data(), m, 1);
                  },
                  report.bandwidth(24 * slots), elements});
  if (sweep.reference_seconds > 0)
    std::printf("  %.2f ns a slot; dense C++ %.2f an element\n", sweep.seconds * 1e9 / slots,
                sweep.reference_seconds * 1e9 / (double(m) * m * m));
  report.run({"V-cycle",
              millions(size_t(elements)),
              cycle * slots,
              0,
              [&] {
                poisson.cycle();
                report.complete();
              },
              {},
              report.bandwidth(cycle * slots),
              elements});
  const double bytes = iterations * (cycle + 100) * slots;
  const Row solve = report.run({"mgpcg to 1e-12",
                                millions(size_t(elements)),
                                bytes,
                                0,
                                [&] {
                                  start();
                                  poisson.solve(1e-12);
                                },
                                {},
                                report.bandwidth(bytes),
                                elements});
  if (solve.seconds > 0)
    std::printf("  %d iterations, %.1f M elements/s an iteration\n", iterations,
                elements * iterations / solve.seconds * 1e-6);
}

}  // namespace

void sparse(Report& report) {
  const Band band = narrow_band(200, 1024), random = shuffled(band);
  qn::Tree<3> tree = make_tree(report.device());
  Scalars u = tree.field<float>(background), out = tree.field<float>();
  openvdb::Tree theirs(background), theirs_out(0);
  const OnDevice points(report.device(), band);
  insertion()(points.x, points.y, points.z, points.value, u);
  theirs.insert(band.points());
  theirs_out.insert(band.points());
  stencil(report, band, tree, u, out, theirs, theirs_out);
  if (openvdb::is_present()) {
    Array<float> expected(band.count());
    Values got{report.device(), {band.count()}};
    theirs.stencil(theirs_out);  // on GPUs nothing has, as rows have no reference of the host's
    theirs_out.read_by_accessor(band.points(), expected.data());
    reading()(points.x, points.y, points.z, got, out);
    expect_equal("stencil7", qn::to_vector(got), expected);
  }
  inserting(report, "insert, coherent", band);
  inserting(report, "insert, with room", band, band.leaves);
  inserting(report, "insert, random", random);
  reads(report, random, u, theirs);
  rays(report, u, theirs);
  for (int leaves : {164, 1640, 4096, 8192, 16384}) loop(report, leaves);
  relisting(report);
  sparse_mpm(report);
  sparse_convolution(report);
  multigrid(report, 160);
}

}  // namespace bench
