#include "bench/mpm3d.h"

#include <algorithm>
#include <memory>
#include <optional>
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

/// The state of the CUDA version, in the device's memory.
class CudaFluid {
 public:
  CudaFluid(const cuda::Functions& functions, const Particles& start, int n)
      : functions_(functions) {
    state_.n_grid = n;
    state_.particles = int(start.size());
    auto column = [&](auto value) {
      std::vector<float> numbers;
      for (const examples::FluidParticle<>& p : start) numbers.push_back(value(p));
      return upload(numbers);
    };
    state_.x[0] = column([](const auto& p) { return p.x.x; });
    state_.x[1] = column([](const auto& p) { return p.x.y; });
    state_.x[2] = column([](const auto& p) { return p.x.z; });
    for (float*& v : state_.v) v = column([](const auto&) { return 0.0f; });
    for (float*& c : state_.c) c = column([](const auto&) { return 0.0f; });
    state_.j = column([](const auto&) { return 1.0f; });
    state_.nodes = upload(std::vector<float>(size_t(n) * n * n * 4));
  }
  ~CudaFluid() {
    for (void* memory : memory_) functions_.release(memory);
  }
  CudaFluid(const CudaFluid&) = delete;
  const cuda::Mpm3d& state() const { return state_; }

 private:
  float* upload(const std::vector<float>& numbers) {
    void* memory = functions_.allocate(numbers.size() * sizeof(float));
    memory_.push_back(memory);
    functions_.upload(memory, numbers.data(), numbers.size() * sizeof(float));
    return static_cast<float*>(memory);
  }
  const cuda::Functions& functions_;
  cuda::Mpm3d state_{};
  std::vector<void*> memory_;
};

void substeps(Report& report, int n, bool sorted) {
  const Particles random = examples::Mpm3d::block(n);
  const Particles start = sorted ? in_order_of_cells(random, n) : random;
  examples::Mpm3d mpm(report.device(), start, n);
  std::vector<reference::FluidParticle> particles;
  for (const examples::FluidParticle<>& p : start)
    particles.push_back({{p.x.x, p.x.y, p.x.z}, {}, {}, 1});
  auto nodes = std::make_unique<float[][4]>(size_t(n) * n * n);
  const reference::Mpm3d state{n, particles.size(), particles.data(), nodes.get()};
  std::optional<CudaFluid> on_cuda;
  if (report.cuda()) on_cuda.emplace(*report.cuda(), start, n);
  // A particle of 16 floats is read for the grid, written after it, its position and volume read
  // again; a node of 4 is cleared, summed and moved, read.
  const double bytes = 144.0 * double(start.size()) + 5.0 * 16 * n * n * n;
  report.run(
      {sorted ? "mpm3d sorted" : "mpm3d random", std::to_string(start.size()), bytes, 0,
       [&] {
         mpm.advance(1);
         report.complete();
       },
       [&] { reference::mpm3d_substep(state); }, report.bandwidth(bytes), 0,
       [&](const cuda::Functions& f, cuda::Stream s) { f.mpm3d_substep(on_cuda->state(), s); }});
}

}  // namespace

void mpm3d(Report& report) {
  std::vector<int> grids = {32, 64};
  if (report.on_gpu()) grids.push_back(128);
  for (int n : grids)
    for (bool sorted : {true, false}) substeps(report, n, sorted);
}

}  // namespace bench
