#include <quern/files.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "bench/autodiff/autodiff.h"
#include "examples/differentiable/bundle_adjustment.h"
#include "examples/differentiable/diff_billiards.h"
#include "examples/differentiable/diff_denoise.h"
#include "examples/differentiable/diff_mpm.h"
#include "examples/differentiable/diff_render.h"
#include "examples/differentiable/diff_robot.h"
#include "examples/differentiable/diff_smoke.h"
#include "examples/differentiable/diff_walker.h"
#include "examples/differentiable/diff_wave.h"
#include "quern/runtime/observer.h"

namespace bench {
namespace qn = quern;
using namespace qn::lang;

namespace {

constexpr double mean_bar = 3, worst_bar = 4;

/// The most bytes of a device that were allocated around a launch while it lives.
class MostAllocated : public qn::runtime::LaunchObserver {
 public:
  void before(const qn::runtime::LaunchEvent& event) override { look(event); }
  void after(const qn::runtime::LaunchEvent& event) noexcept override { look(event); }
  uint64_t bytes() const { return bytes_; }

 private:
  void look(const qn::runtime::LaunchEvent& event) noexcept {
    bytes_ = std::max(bytes_, event.device->allocated());
  }
  uint64_t bytes_ = 0;
  qn::runtime::Observation observation_{*this, qn::runtime::Observation::kernels};
};

template <class F>
uint64_t most_allocated(F run) {
  const MostAllocated most;
  run();
  return most.bytes();
}

/// Yields how many times the loss the loss with its gradient takes, of least times: what else the machine
/// does only adds.
template <class Program>
double measure(Report& report, const char* name, const std::string& size, Program& program) {
  const uint64_t before = most_allocated([&] { program.loss(); });
  const uint64_t most = most_allocated([&] { program.loss_and_gradient(); });
  const ForeignLoad load;
  const std::vector<std::vector<double>> taken =
      report.interleave({{[&] { program.loss(); }}, {[&] { program.loss_and_gradient(); }}});
  const double ratio = *std::ranges::min_element(taken[1]) / *std::ranges::min_element(taken[0]);
  for (size_t side : {0, 1}) {
    Row row = row_of(taken[side], {});
    row.name = std::string(name) + (side == 0 ? " loss" : " gradient");
    row.size = size;
    row.foreign = load.cores();
    report.add(row);
  }
  std::printf("%s: the loss with its gradient takes %.2f times the loss, and %.1f MB more\n", name,
              ratio, 1e-6 * double(most - std::min(most, before)));
  return ratio;
}

/// A photograph with noise by Box and Muller, as the program denoises it.
qn::Field<float, 2> noisy_photograph(const qn::Device& device) {
  auto seen = qn::read_image<float>(device, QUERN_EXAMPLE_DATA "/camera.png");
  qn::Kernel spoil = [&] {
    for (auto I : seen) {
      F32 radius = sqrt(-2 * log(1 - random<float>()));
      F32 turn = random<float>();
      seen[I] = seen[I] + 0.1f * radius * cos(6.2831853f * turn);
    }
  };
  spoil();
  return seen;
}

/// A program as its main makes it.
template <class Program>
double measure(Report& report, const char* name, const std::string& size) {
  Program program(report.device(), {});
  return measure(report, name, size, program);
}

}  // namespace

void autodiff_programs(Report& report) {
  std::vector<double> ratios;
  ratios.push_back(measure<examples::DiffMpm<float>>(report, "diff_mpm", "6400 x 1023"));
  ratios.push_back(measure<examples::DiffWave<float>>(report, "diff_wave", "256^2 x 256"));
  ratios.push_back(measure<examples::DiffSmoke<float>>(report, "diff_smoke", "110^2 x 100"));
  ratios.push_back(measure<examples::DiffRender<float>>(report, "diff_render", "6 x 96^2 x 96"));
  ratios.push_back(measure<examples::DiffRobot<float>>(report, "diff_robot", "682 steps"));
  ratios.push_back(measure<examples::DiffWalker<float>>(report, "diff_walker", "2047 steps"));
  ratios.push_back(
      measure<examples::DiffBilliards<double>>(report, "diff_billiards", "1023 steps"));
  {
    const auto seen = noisy_photograph(report.device());
    examples::DiffDenoise<float> program(report.device(), seen, {});
    ratios.push_back(measure(report, "diff_denoise", "512^2", program));
  }
  {
    const auto scene = examples::Scene::arc(16, 400, 1e-3, 1).displaced(0.05, 2);
    examples::BundleAdjustment<double> program(report.device(), scene, {});
    ratios.push_back(measure(report, "bundle_adjustment", "16 x 400", program));
  }
  double logarithms = 0;
  for (double ratio : ratios) logarithms += std::log(ratio);
  std::printf(
      "programs: geometric mean of the ratios %.2f (bar %.1f), the largest %.2f (bar %.1f)\n",
      std::exp(logarithms / double(ratios.size())), mean_bar, *std::ranges::max_element(ratios),
      worst_bar);
}

}  // namespace bench
