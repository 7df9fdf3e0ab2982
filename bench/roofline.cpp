#include "bench/roofline.h"

namespace bench {

namespace {
constexpr double issued = 4;      // warp instructions a cycle: one of each of four schedulers
constexpr double l1_sectors = 4;  // of 32 bytes a cycle: 128 bytes
constexpr double accesses = 1;    // requests of warps a cycle: 32 lanes of 4 bytes
}  // namespace

// Multiprocessors, boost clocks and bandwidths: "NVIDIA H100 Tensor Core GPU Architecture" (2022;
// 1.98 GHz is what its 67 TFLOP/s of f32 stand for), "NVIDIA A100 80GB" data sheet (2021), "NVIDIA
// Ada GPU Architecture" (2022). Rates: CUDA C++ Programming Guide, "Throughput of Native Arithmetic
// Instructions", of compute capability 9.0, 8.0 and 8.9, divided by 32.
const std::array<GpuFigures, 3>& modelled_gpus() {
  static const std::array<GpuFigures, 3> all = {{{"H100", 3.35e12, 132, 1.98e9, 4, 2, 0.5},
                                                 {"A100", 2.039e12, 108, 1.41e9, 2, 2, 0.5},
                                                 {"RTX 4090", 1.008e12, 128, 2.52e9, 4, 2, 0.5}}};
  return all;
}

Prediction predict(const GpuFigures& gpu, const quern::ptx::Counts& counts, double bytes) {
  using quern::ptx::Class;
  auto of = [&](Class c) { return double(counts.instructions[size_t(c)]); };
  double all = 0;
  for (uint64_t n : counts.instructions) all += double(n);
  const double cycles = gpu.multiprocessors * gpu.clock;
  const Prediction parts[] = {
      {bytes / gpu.bandwidth, "DRAM"},
      {double(counts.sectors) / (l1_sectors * cycles), "L1"},
      {double(counts.requests + counts.shared_passes) / (accesses * cycles), "load/store"},
      {(all - of(Class::move) - of(Class::conversion)) / (issued * cycles), "issue"},
      {of(Class::floating) / (gpu.floats * cycles), "float"},
      {(of(Class::integer) + of(Class::compare)) / (gpu.integers * cycles), "integer"},
      {of(Class::special) / (gpu.specials * cycles), "special"}};
  Prediction longest;
  for (const Prediction& part : parts)
    if (part.seconds > longest.seconds) longest = part;
  return longest;
}

}  // namespace bench
