// What each way to the elements of a tree costs beside the same on a dense field: small enough for the
// interpreter of PTX to count (bench/counts.h).
#include <quern/sparse.h>

#include <string>

#include "bench/harness.h"

namespace bench {
namespace qn = quern;
using namespace qn::lang;

namespace {

using Scalars = qn::Field<float, 3>;

/// A cube of full leaves in the middle of a tree.
constexpr int leaf = 8, side = 4 * leaf, first = 128 - side / 2, count = side * side * side;
const std::string size = std::to_string(count) + " elements";

qn::Tree<3> tree_with_room(const qn::Device& device, int64_t cells) {
  return {device, {qn::pointer(8), qn::pointer(4), qn::bitmasked(leaf)}, {.cells = cells}};
}

/// Where the n-th element is: leaf by leaf, or scattered over all of them.
IVec3 place(const I32& n, bool scattered = false) {
  I32 k = scattered ? n * 20011 % count : n;
  I32 in = k % (leaf * leaf * leaf), cell = k / (leaf * leaf * leaf);
  return vec(cell / 16 * leaf + in / 64, cell / 4 % 4 * leaf + in / 8 % 8,
             cell % 4 * leaf + in % 8) +
         first;
}

void run(Report& report, const char* name, const std::string& what, double bytes,
         const std::function<void()>& body) {
  report.run({std::string(name) + ", " + what,
              size,
              bytes,
              0,
              [&] {
                body();
                report.complete();
              },
              {},
              0,
              count});
}

/// The ways that a dense field has, too.
void paths(Report& report, const std::string& what, const Scalars& u, const Scalars& to) {
  qn::Field<float> out{report.device(), {count}};
  qn::Kernel write = [&] {
    for (auto n : range(count)) u[place(n)] = cast<float>(n);
  };
  qn::Kernel copy = [&] {
    for (auto n : range(count)) to[place(n)] = 1.0f;
  };
  qn::Kernel read = [&] {
    for (auto n : range(count)) out[n] = u[place(n)];
  };
  qn::Kernel scattered = [&] {
    for (auto n : range(count)) out[n] = u[place(n, true)];
  };
  qn::Kernel loop = [&] {
    for (auto I : u) u[I] = u[I] * 1.0001f;
  };
  qn::Kernel stencil = [&] {
    for (auto [i, j, k] : to)
      to(i, j, k) = u(i - 1, j, k) + u(i + 1, j, k) + u(i, j - 1, k) + u(i, j + 1, k) +
                    u(i, j, k - 1) + u(i, j, k + 1) - 6.0f * u(i, j, k);
  };
  for (const auto* kernel : {&write, &copy, &loop, &stencil}) (*kernel)();  // lists are made
  report.device().synchronize();
  run(report, "read", what, 8.0 * count, [&] { read(); });
  run(report, "read, scattered", what, 8.0 * count, [&] { scattered(); });
  run(report, "write", what, 4.0 * count, [&] { write(); });
  run(report, "loop", what, 8.0 * count, [&] { loop(); });
  run(report, "stencil7", what, 8.0 * count, [&] { stencil(); });
}

/// What writes into an empty tree cost (64 cells are wanted, and each lane that finds none takes one),
/// and a list of 4,096 cells.
void changes(Report& report) {
  const qn::Device& device = report.device();
  qn::Kernel write = [](Scalars u) {
    for (auto n : range(count)) u[place(n)] = 1.0f;
  };
  for (int64_t room : {128, 8192})
    run(report, "insert", "tree with room for " + std::to_string(room), 4.0 * count,
        [&] { write(tree_with_room(device, room).field<float>()); });

  qn::Tree<3> cells{device, {qn::pointer(8), qn::pointer(16), qn::dense(2)}, {.cells = 8192}};
  auto u = cells.field<float>();
  qn::Kernel fill = [&](I32 last) {
    for (auto n : range(last)) u(n / 256 * 2, n / 16 % 16 * 2, n % 16 * 2) = 1.0f;
  };
  qn::Kernel visit = [&] {
    for (auto I : u) u[I] = u[I] * 1.0001f;
  };
  fill(4096);
  visit();
  device.synchronize();
  run(report, "loop over cells of 8", "tree", 8.0 * count, [&] { visit(); });
  int more = 0;
  run(report, "the same, lists anew", "tree", 8.0 * count, [&] {
    more++;
    u.set(100, 100, more % 128 * 2, 1.0f);
    visit();
  });
}

void lists(Report& report) {
  qn::Tree<3> tree{report.device(), {qn::dense(32, 32, 1), qn::dynamic(64, 8)}, {.cells = 8192}};
  auto u = tree.field<int>();
  qn::Kernel fill = [&] {
    for (auto [i, j, k] : u) deactivate(u, i, j, k);
    for (auto n : range(count)) append(u, n / 32 % 32, n % 32, n);
  };
  qn::Kernel visit = [&] {
    for (auto [i, j, k] : u) u(i, j, k) = u(i, j, k) + 1;
  };
  fill();
  visit();
  report.device().synchronize();
  run(report, "append", "lists", 4.0 * count, [&] { fill(); });
  run(report, "loop", "lists", 8.0 * count, [&] { visit(); });
}

}  // namespace

void trees(Report& report) {
  const qn::Device& device = report.device();
  const Scalars dense{
      device, {side + 2, side + 2, side + 2}, qn::offset(first - 1, first - 1, first - 1)};
  const Scalars inner{device, {side, side, side}, qn::offset(first, first, first)};
  paths(report, "dense", dense, inner);
  const qn::Tree<3> tree = tree_with_room(device, 128);
  paths(report, "tree", tree.field<float>(), tree.field<float>());
  const qn::Tree<3> endless{
      device, {qn::hash(), qn::pointer(4), qn::bitmasked(leaf)}, {.cells = 128}};
  paths(report, "hash", endless.field<float>(), endless.field<float>());
  changes(report);
  lists(report);
}

}  // namespace bench
