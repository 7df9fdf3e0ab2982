#include "bench/mpm3d.h"

#include <quern/host.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "bench/harness.h"
#include "bench/mpm_reference.h"
#include "bench/pages.h"
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
  Array<reference::FluidParticle> particles;
  auto restart = [&] {
    particles.clear();
    for (const examples::FluidParticle<>& p : start)
      particles.push_back({{p.x.x, p.x.y, p.x.z}, {}, {}, 1});
  };
  restart();
  Array<float> nodes(size_t(threads()) * n * n * n * 4);
  const reference::Mpm3d state{n, particles.size(), particles.data(),
                               reinterpret_cast<float(*)[4]>(nodes.data())};
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
  // The two must do the same.
  examples::Mpm3d again(report.device(), start, n);
  again.advance(1);
  restart();
  reference::mpm3d_substep(state);
  const Particles mine = quern::to_vector(again.particles);
  for (size_t k = 0; k < mine.size(); k++) {
    const examples::FluidParticle<>& p = mine[k];
    const float found[] = {p.x.x, p.x.y, p.x.z, p.v.x, p.v.y, p.v.z, p.J};
    const reference::FluidParticle& q = particles[k];
    const float wanted[] = {q.x[0], q.x[1], q.x[2], q.v[0], q.v[1], q.v[2], q.j};
    for (int c = 0; c < 7; c++)
      if (!(std::abs(found[c] - wanted[c]) <= 1e-4f * (1 + std::abs(wanted[c]))))
        throw quern::Error("mpm3d and its reference differ at particle " + std::to_string(k));
  }
}

}  // namespace

void mpm3d(Report& report) {
  std::vector<int> grids = {32, 64};
  if (report.on_gpu()) grids.push_back(128);
  for (int n : grids)
    for (bool sorted : {true, false}) substeps(report, n, sorted);
}

}  // namespace bench
