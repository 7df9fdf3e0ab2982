// What Quern's kernels do on a GPU beside the hand-written CUDA of bench/cuda, counted where there
// is no clock: both run on the interpreter of PTX, the CUDA as nvcc compiles it.
#include "bench/counts.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "bench/compute.h"
#include "bench/mpm3d.h"
#include "bench/roofline.h"
#include "tests/catch.h"
#include "tests/gpu/recording/recording.h"

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
    // No tiles in shared memory, so each warp reads all bodies; three addresses are counted on where
    // the CUDA unrolls 16 times. (With 16,384 bodies 61 times the sectors.)
    {"nbody", 47, 1.46},
    // Three of a node's four numbers are read in two loads, not in one; a particle's momentum is
    // added to each of 81 sums, not to the first 9; the grid is cleared by a kernel, not the driver.
    {"mpm3d sorted", 1.23, 1.2},
    {"mpm3d random", 1.21, 1.2},
};

/// What must be read and written, in sectors of 32 bytes; blocks that combine add a little.
void expect_no_more_than_the_arrays(const Counted& row) {
  CHECK(double(row.quern.sectors) <= 1.001 * row.bytes / 32 + 100);
  CHECK(row.quern.sectors <= row.quern.ideal_sectors + row.quern.ideal_sectors / 1000);
}

}  // namespace

TEST_CASE("hand-written CUDA that cannot be set up gives back what it has") {
  const bench::cuda::Functions* functions = bench::cuda::functions();
  if (!functions) {
    WARN("this build had no nvcc: there is no hand-written CUDA");
    return;
  }
  const pid_t child = fork();
  if (child == 0) {
    setenv("QUERN_CUDA_LIBRARY", QUERN_PTX_CUDA, 1);
    void* library = dlopen(QUERN_PTX_CUDA, RTLD_NOW | RTLD_LOCAL);
    auto recording = reinterpret_cast<quern::recording::Access*>(dlsym(library, "quern_recording"));
    recording(false)->failures["stream_create"] = {1, 2};  // the last step
    try {
      functions->use_device(0);
    } catch (const quern::Error&) {
      std::exit(0);  // 70 where something is left
    }
    std::exit(1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("Quern's kernels touch little more than hand-written CUDA") {
  setenv("QUERN_CUDA_LIBRARY", QUERN_PTX_CUDA, 1);
  // Counts do not depend on who asks for them.
  setenv("QUERN_PTX_SCHEDULE", "shuffled+switches", 1);
  setenv("QUERN_PTX_MULTIPROCESSORS", "3", 1);
  const std::vector<Counted> rows = bench::count(
      {bench::stream, [](bench::Report& report) { bench::nbody(report, 2048); }, bench::mpm3d});
  if (std::ranges::none_of(rows, [](const Counted& row) { return row.cuda.has_value(); }))
    WARN("this build had no nvcc: nothing was compared with hand-written CUDA");
  for (const Bars& bar : bars) {
    INFO(bar.name);
    auto row = std::ranges::find(rows, bar.name, &Counted::name);
    REQUIRE(row != rows.end());
    CHECK(row->quern.sectors > 0);
    CHECK(row->quern.shared_passes == row->quern.ideal_shared_passes);
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
    if (row->name.ends_with("sum")) {  // sum_kernel: 8 blocks on each of 10 multiprocessors
      CHECK(cuda.barriers == 80);
      CHECK(cuda.instructions[size_t(Class::shuffle)] == 80 * (8 * 5 + 5));
    }
  }
}

TEST_CASE("ways to a tree's elements take little more than those to a dense field's") {
  setenv("QUERN_CUDA_LIBRARY", QUERN_PTX_CUDA, 1);
  const std::vector<Counted> rows = bench::count({bench::trees});
  const auto counts = [&](const std::string& name) {
    auto row = std::ranges::find(rows, name, &Counted::name);
    REQUIRE(row != rows.end());
    return row->quern;
  };
  const auto instructions = [](const Counts& c) {
    return double(
        std::accumulate(std::begin(c.instructions), std::end(c.instructions), uint64_t(0)));
  };
  // Times the dense field's; neighbours go down the tables, each of them.
  struct {
    const char* name;
    double instructions, sectors;
  } const ways[] = {{"read", 1.35, 1},
                    {"read, scattered", 1.35, 1.5},
                    {"write", 1.6, 1},
                    {"loop", 0.8, 1.2},
                    {"stencil7", 2.8, 1.6}};
  for (const auto& way : ways) {
    INFO(way.name);
    const Counts tree = counts(std::string(way.name) + ", tree");
    const Counts dense = counts(std::string(way.name) + ", dense");
    CHECK(instructions(tree) <= way.instructions * instructions(dense));
    CHECK(double(tree.sectors) <= way.sectors * double(dense.sectors));
  }
  CHECK(counts("write, tree").atomics == 0);  // what is active needs none
}

TEST_CASE("a warp whose loops differ by thread stores once") {
  setenv("QUERN_CUDA_LIBRARY", QUERN_PTX_CUDA, 1);
  const std::vector<Counted> rows =
      bench::count({[](bench::Report& report) { bench::mandelbrot(report, 128, 200); }});
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].quern.instructions[size_t(Class::store)] == 128 * 128 / 32);
  CHECK(rows[0].quern.sectors == 128 * 128 * 4 / 32);
}

TEST_CASE("a record is of all groups and both sides, and is compared work by work") {
  const std::string file = std::filesystem::temp_directory_path() / "quern-counts.txt";
  CHECK_THROWS_WITH(bench::expect_recordable(false, "", file), contains("this build had no nvcc"));
  CHECK_THROWS_WITH(bench::expect_recordable(true, "stream", file),
                    contains("it holds all groups, not stream alone"));
  CHECK_NOTHROW(bench::expect_recordable(true, "", file));

  Counts one, two;
  one.instructions[size_t(Class::load)] = 10;
  one.requests = 10, one.sectors = 40, one.ideal_sectors = 20;
  two = one;
  two.sectors = 41;
  const std::vector<Counted> last = {{"a row", "1", 8, 8, one, one}, {"b", "2", 8, 8, one, {}}};
  auto compared = [&](const std::vector<Counted>& now, bool of_all) {
    std::FILE* out = std::tmpfile();
    bench::compare(out, now, of_all, file);
    std::string text(size_t(std::ftell(out)), ' ');
    std::rewind(out);
    REQUIRE(std::fread(text.data(), 1, text.size(), out) == text.size());
    std::fclose(out);
    return text;
  };
  bench::write(last, file);
  CHECK(compared(last, true) == "2 of 2 works as in " + file + "\n");
  const std::string cuda = compared({{"a row", "1", 8, 8, one, two}, last[1]}, true);
  CHECK_THAT(cuda, contains("a row: was\n") && contains("40 sectors (ideal 20), 4.00 (2.00)") &&
                       contains("41 sectors (ideal 20), 4.10 (2.00)") && contains("1 of 2 works"));
  CHECK_THAT(compared({{"c", "3", 8, 8, one, one}}, true),
             contains("c: new\n") && contains("b: gone\n") && contains("a row: gone\n"));
  CHECK_THAT(compared({last[0]}, false), contains("1 of 1 works") && !contains("gone"));
  CHECK_THAT(compared({{"a row", "1", 8, 8, one, {}}}, false),  // built without nvcc
             contains("1 of 1 works") && contains("hand-written CUDA was not compared"));
  std::filesystem::remove(file);
  CHECK_THROWS_WITH(compared(last, true), contains("cannot read " + file));
}

TEST_CASE("the model takes the time of the busiest part") {
  const bench::GpuFigures gpu{"", 1e12, 100, 1e9,
                              4,  2,    0.5};  // 1e11 cycles of multiprocessors a second
  Counts counts;
  auto& of = counts.instructions;
  auto busiest = [&](double bytes) { return std::string(bench::predict(gpu, counts, bytes).by); };
  auto microseconds = [&](double bytes) {
    return bench::predict(gpu, counts, bytes).seconds * 1e6;
  };
  CHECK(microseconds(0) == 0);
  CHECK(busiest(1e6) == "DRAM");
  CHECK(microseconds(1e6) == Approx(1));
  of[size_t(Class::move)] = of[size_t(Class::conversion)] = 1'000'000'000;
  CHECK(microseconds(0) == 0);
  of[size_t(Class::floating)] = 800'000;  // 4 a cycle
  CHECK(microseconds(1e6) == Approx(2));
  of[size_t(Class::integer)] = 500'000;  // 2 a cycle, together with comparisons
  of[size_t(Class::compare)] = 100'000;
  CHECK(busiest(0) == "issue");  // 1.4 million, 4 a cycle
  CHECK(microseconds(0) == Approx(3.5));
  of[size_t(Class::special)] = 300'000;
  CHECK(busiest(0) == "special");
  CHECK(microseconds(0) == Approx(6));
  counts.sectors = 2'800'000;
  CHECK(busiest(0) == "L1");
  CHECK(microseconds(0) == Approx(7));
  counts.requests = 500'000;
  counts.shared_passes = 300'000;
  CHECK(busiest(0) == "load/store");
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
