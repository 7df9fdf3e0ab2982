// What Quern's kernels do on a GPU beside the hand-written CUDA of bench/cuda, counted where there
// is no clock: both run on the interpreter of PTX, the CUDA as nvcc compiles it.
#include "bench/counts.h"

#include <algorithm>
#include <cstdlib>

#include "bench/mpm3d.h"
#include "bench/roofline.h"
#include "tests/catch.h"

using bench::Counted;
using quern::ptx::Class;
using quern::ptx::Counts;

namespace {

/// Times the hand-written kernel's: the bars that a row must keep, and the cause where they are
/// above 1 (1.2 for arithmetic).
struct Bars {
  const char* name;
  double sectors, arithmetic;
};
constexpr Bars bars[] = {
    {"fill", 1, 1.01},
    {"copy", 1, 1.01},
    {"saxpy", 1, 1.01},
    {"triad", 1, 1.01},
    {"stencil5", 1.03, 1.15},    // warps go on from row to row: they end between sectors
    {"reduce_sum", 1.001, 2.2},  // numbers one by one where the CUDA loads four at a time
    {"atomic_sum", 1.001, 2.2},  // the same
    // Three of a node's four numbers are read in two loads, not in one; places of nodes in 64 bits.
    {"mpm3d sorted", 1.23, 1.35},
    {"mpm3d random", 1.21, 1.35},
};

/// What must be read and written, in sectors of 32 bytes; blocks that combine add a little.
void expect_no_more_than_the_arrays(const Counted& row) {
  CHECK(double(row.quern.sectors) <= 1.001 * row.bytes / 32 + 100);
  CHECK(row.quern.sectors <= row.quern.ideal_sectors + row.quern.ideal_sectors / 1000);
}

}  // namespace

TEST_CASE("Quern's kernels touch little more than hand-written CUDA") {
  setenv("QUERN_CUDA_LIBRARY", QUERN_PTX_CUDA, 1);
  for (const char* name : {"QUERN_PTX_SCHEDULE", "QUERN_PTX_RACES"}) unsetenv(name);
  const std::vector<Counted> rows = bench::count({bench::stream, bench::mpm3d});
  for (const Bars& bar : bars) {
    INFO(bar.name);
    auto row = std::ranges::find(rows, bar.name, &Counted::name);
    REQUIRE(row != rows.end());
    CHECK(row->quern.sectors > 0);
    CHECK(row->quern.shared_passes == row->quern.shared_requests);
    if (row - rows.begin() < 4 || row->name.ends_with("sum")) expect_no_more_than_the_arrays(*row);
    if (row->name.ends_with("sum")) CHECK(row->quern.barriers == row->quern.atomics);
    if (!row->cuda) continue;  // without nvcc
    const Counts& cuda = *row->cuda;
    CHECK(double(row->quern.sectors) <= bar.sectors * double(cuda.sectors));
    CHECK(double(bench::arithmetic(row->quern)) <=
          bar.arithmetic * double(bench::arithmetic(cuda)));
    CHECK(row->quern.atomics <= cuda.atomics);
    CHECK(row->quern.colliding_atomics <= cuda.colliding_atomics);
    CHECK(row->quern.barriers <= cuda.barriers);
    CHECK(bench::special(row->quern) <= bench::special(cuda));
  }
}

TEST_CASE("the model takes the time of the busiest part") {
  const bench::GpuFigures gpu{"", 1e12, 100, 1e9,
                              4,  2,    0.5};  // 1e11 cycles of multiprocessors a second
  Counts counts;
  auto& of = counts.instructions;
  auto bound = [&](double bytes) { return std::string(bench::predict(gpu, counts, bytes).bound); };
  auto microseconds = [&](double bytes) {
    return bench::predict(gpu, counts, bytes).seconds * 1e6;
  };
  CHECK(microseconds(0) == 0);
  CHECK(bound(1e6) == "DRAM");
  CHECK(microseconds(1e6) == Approx(1));
  of[size_t(Class::move)] = of[size_t(Class::conversion)] = 1'000'000'000;
  CHECK(microseconds(0) == 0);
  of[size_t(Class::floating)] = 800'000;  // 4 a cycle
  CHECK(microseconds(1e6) == Approx(2));
  of[size_t(Class::integer)] = 500'000;  // 2 a cycle, together with comparisons
  of[size_t(Class::compare)] = 100'000;
  CHECK(bound(0) == "issue");  // 1.4 million, 4 a cycle
  CHECK(microseconds(0) == Approx(3.5));
  of[size_t(Class::special)] = 300'000;
  CHECK(bound(0) == "special");
  CHECK(microseconds(0) == Approx(6));
  counts.sectors = 2'800'000;
  CHECK(bound(0) == "L1");
  CHECK(microseconds(0) == Approx(7));
  counts.requests = 500'000;
  counts.shared_passes = 300'000;
  CHECK(bound(0) == "load/store");
  CHECK(microseconds(0) == Approx(8));
}

TEST_CASE("the figures are those that their makers publish") {
  // Peak rates of f32 in TFLOP/s: NVIDIA's data sheets of the H100 (SXM), A100 and RTX 4090.
  const double teraflops[] = {67, 19.5, 82.6};
  for (size_t k = 0; k < 3; k++) {
    const bench::GpuFigures& gpu = bench::modelled_gpus()[k];
    INFO(gpu.name);
    const double peak = gpu.multiprocessors * gpu.clock * gpu.floats * 32 * 2;
    CHECK(peak * 1e-12 == Approx(teraflops[k]).epsilon(0.01));
  }
}
