// What Quern's kernels do on a GPU beside the hand-written CUDA of bench/cuda, counted where there is
// no clock: both run on the interpreter of PTX, the CUDA as nvcc compiles it.
#include <dlfcn.h>
#include <quern/host.h>
#include <quern/quern.h>

#include <cstdio>
#include <cstdlib>

#include "tests/catch.h"
#include "tests/ptx/nvcc.h"
#include "tests/ptx/support.h"

namespace qn = quern;
using namespace qn::lang;
using qn::ptx::Class;
using qn::ptx::Counts;
using qn::test::Memory;

namespace {

/// The hand-written kernels, by the part of their names that CUDA's source has.
class HandWritten {
 public:
  /// Without a text nothing is run, and nothing counted.
  explicit HandWritten(const std::string& text)
      : image_(text.empty()
                   ? nullptr
                   : qn::ptx::load(text, [](const qn::ptx::Variable&) -> uint64_t { throw 0; })) {}

  Counts run(const std::string& name, qn::ptx::Shape shape, Memory& memory,
             const std::vector<uint64_t>& parameters) const {
    if (!image_) return {};
    const qn::ptx::Code* code = nullptr;
    for (const auto& f : image_->functions)
      if (f->name.find(name) != std::string::npos) code = f.get();
    REQUIRE(code);
    REQUIRE(code->parameter_sizes.size() == parameters.size());
    shape.parameters.resize(code->parameter_bytes);
    for (size_t k = 0; k < parameters.size(); k++)
      std::memcpy(&shape.parameters[code->parameter_offsets[k]], &parameters[k],
                  code->parameter_sizes[k]);
    Counts counts;
    qn::ptx::run(*image_, *code, shape, memory, {}, &counts);
    return counts;
  }

 private:
  std::unique_ptr<qn::ptx::Image> image_;
};

/// What the device cuda has counted since the last call.
Counts taken() {
  static auto* counts = [] {
    void* library = dlopen(QUERN_PTX_CUDA, RTLD_NOW | RTLD_LOCAL);
    REQUIRE(library);
    return reinterpret_cast<Counts* (*)()>(dlsym(library, "quern_ptx_counts"))();
  }();
  return std::exchange(*counts, {});
}

uint64_t arithmetic(const Counts& c) {
  return c.instructions[size_t(Class::integer)] + c.instructions[size_t(Class::floating)] +
         c.instructions[size_t(Class::compare)];
}
uint64_t bits(float v) { return std::bit_cast<uint32_t>(v); }

struct Row {
  const char* name;
  Counts quern, cuda;
};

void print(const Row& r) {
  auto line = [](const char* what, const Counts& c) {
    uint64_t all = 0, lanes = 0;
    for (size_t k = 0; k < qn::ptx::class_count; k++) {
      all += c.instructions[k];
      lanes += c.lanes[k];
    }
    std::printf(
        "  %-6s %8llu instructions of warps, %4.1f lanes, %8llu arithmetic, %6llu special, "
        "%8llu sectors (ideal %llu), %6llu atomics (%llu collide), %5llu barriers\n",
        what, (unsigned long long)all, double(lanes) / double(all),
        (unsigned long long)arithmetic(c),
        (unsigned long long)c.instructions[size_t(Class::special)], (unsigned long long)c.sectors,
        (unsigned long long)c.ideal_sectors, (unsigned long long)c.atomics,
        (unsigned long long)c.colliding_atomics, (unsigned long long)c.barriers);
  };
  std::printf("%s\n", r.name);
  line("Quern", r.quern);
  line("CUDA", r.cuda);
}

}  // namespace

TEST_CASE("Quern's kernels touch little more than hand-written CUDA") {
  const std::string text =
      qn::test::compiled_by_nvcc(QUERN_ROOT "/bench/cuda/reference.cu", "-std=c++17 -I" QUERN_ROOT);
  setenv("QUERN_CUDA_LIBRARY", QUERN_PTX_CUDA, 1);
  for (const char* name : {"QUERN_PTX_SCHEDULE", "QUERN_PTX_RACES"}) unsetenv(name);
  const HandWritten cuda(text);
  qn::Device device{"cuda"};
  taken();

  constexpr int n = 1 << 16, side = 256, bodies = 2048, block = 256;
  Memory memory;
  auto floats = [&](int count) { return memory.put(std::vector<float>(size_t(count), 1.0f)); };
  const uint64_t a = floats(n), b = floats(n), c = floats(n), one = floats(1);
  const qn::ptx::Shape flat{.grid = {n / block, 1, 1}, .block = {block, 1, 1}};
  qn::Field<float> x{device, {n}}, y{device, {n}}, z{device, {n}};
  qn::Field<float, 2> u{device, {side, side}}, v{device, {side, side}};
  for (auto* f : {&x, &y, &z}) f->fill(1);
  u.fill(1);

  const qn::Options unchecked{.checked = false};
  std::vector<Row> rows;
  auto compare = [&](const char* name, auto&& kernel, const Counts& theirs) {
    kernel();
    device.synchronize();
    taken();  // what preparing the device took
    kernel();
    device.synchronize();
    rows.push_back({name, taken(), theirs});
  };

  qn::Kernel copy{[&] {
                    for (auto i : x) y[i] = x[i];
                  },
                  unchecked};
  compare("copy", [&] { copy(); }, cuda.run("11copy_kernel", flat, memory, {a, b, n}));
  qn::Kernel saxpy{[&](F32 s) {
                     for (auto i : x) y[i] = s * x[i] + y[i];
                   },
                   unchecked};
  compare("saxpy", [&] { saxpy(2); }, cuda.run("saxpy_kernel", flat, memory, {bits(2), a, b, n}));
  qn::Kernel triad{[&](F32 s) {
                     for (auto i : x) z[i] = x[i] + s * y[i];
                   },
                   unchecked};
  compare(
      "triad", [&] { triad(2); }, cuda.run("triad_kernel", flat, memory, {c, a, b, bits(2), n}));
  qn::Kernel stencil{[&] {
                       for (auto [i, j] : grid(range(1, side - 1), range(1, side - 1)))
                         v(i, j) = 0.25f * (u(i - 1, j) + u(i + 1, j) + u(i, j - 1) + u(i, j + 1));
                     },
                     unchecked};
  compare(
      "stencil5", [&] { stencil(); },
      cuda.run("stencil_kernel",
               {.grid = {(side + 29) / 32, (side + 5) / 8, 1}, .block = {32, 8, 1}}, memory,
               {a, b, side}));
  qn::Kernel sum{[&] {
                   Var<float> s = 0;
                   for (auto i : x) s += x[i];
                   return s;
                 },
                 unchecked};
  compare(
      "reduce_sum", [&] { sum(); },
      cuda.run("10sum_kernel", {.grid = {n / 4 / block, 1, 1}, .block = {block, 1, 1}}, memory,
               {a, n, one}));
  std::vector<qn::Field<float>> p;
  for (int k = 0; k < 6; k++)
    p.emplace_back(device, std::initializer_list<qn::detail::Extent>{bodies});
  for (auto& f : p) f.fill(1);
  qn::Kernel nbody{[&](F32 dt) {
                     for (auto i : p[0]) {
                       auto xi = p[0][i], yi = p[1][i], zi = p[2][i];
                       Var<float> ax = 0, ay = 0, az = 0;
                       for (auto j : range(p[0].dim(0))) {
                         auto dx = p[0][j] - xi, dy = p[1][j] - yi, dz = p[2][j] - zi;
                         auto inv = rsqrt(dx * dx + dy * dy + dz * dz + 1e-9f);
                         auto w = inv * inv * inv;
                         ax += dx * w;
                         ay += dy * w;
                         az += dz * w;
                       }
                       p[3][i] = p[3][i] + dt * ax;
                       p[4][i] = p[4][i] + dt * ay;
                       p[5][i] = p[5][i] + dt * az;
                     }
                   },
                   unchecked};
  std::vector<uint64_t> places;
  for (int k = 0; k < 6; k++) places.push_back(floats(bodies));
  places.push_back(bits(0.01f));
  places.push_back(bodies);
  compare(
      "nbody", [&] { nbody(0.01f); },
      cuda.run("nbody_kernel", {.grid = {bodies / block, 1, 1}, .block = {block, 1, 1}}, memory,
               places));

  // Sectors of 32 bytes: the arrays' own, and one for each warp, which reads the error record before
  // it starts. A sum starts the blocks that run at once, and adds once for each.
  constexpr double array = 4.0 * n / 32, warps = n / 32.0, resident = 80;
  struct Most {
    const char* name;
    double sectors, atomics;
    double of_cuda;  ///< times the hand-written version's sectors
  };
  // The stencil's rows begin between sectors: each of its five accesses touches up to 5 a warp instead
  // of 4. N-body's tiles in shared memory are the user's to make.
  const Most mosts[] = {{"copy", 2 * array + warps, 0, 1.13},
                        {"saxpy", 3 * array + warps, 0, 1.09},
                        {"triad", 3 * array + warps, 0, 1.09},
                        {"stencil5", 5 * 5 * warps + warps, 0, 1.09},
                        {"reduce_sum", array + resident * 8 + resident, resident, 1.1},
                        {"nbody", 1e6, 0, 47}};
  REQUIRE(rows.size() == std::size(mosts));
  for (size_t k = 0; k < rows.size(); k++) {
    const Row& r = rows[k];
    INFO(r.name);
    CHECK(std::string(r.name) == mosts[k].name);
    CHECK(r.quern.sectors > 0);
    CHECK(double(r.quern.sectors) <= mosts[k].sectors);
    CHECK(double(r.quern.atomics) <= mosts[k].atomics);
    CHECK(r.quern.colliding_atomics == 0);
    if (text.empty()) continue;
    print(r);
    CHECK(double(r.quern.sectors) <= mosts[k].of_cuda * double(r.cuda.sectors));
    CHECK(double(r.quern.atomics) <= 1.25 * double(r.cuda.atomics));
    CHECK(r.quern.instructions[size_t(Class::special)] <=
          r.cuda.instructions[size_t(Class::special)]);
  }
}
