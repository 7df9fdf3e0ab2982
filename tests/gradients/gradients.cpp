// The problems that benchmarks of gradients measure: Quern, C++ by hand, and ADOL-C and CoDiPack
// where they are installed, agree.
#include "bench/autodiff/problem.h"

#include <cmath>

#include "tests/end_to_end/devices.h"

namespace {

bench::Problems all_problems() {
  bench::Problems all = bench::problems();
  all.insert(all.end(), bench::layers().begin(), bench::layers().end());
  return all;
}

void expect_agreement(const char* name) {
  on_every_device([&](const qn::Device& device) {
    for (const auto& make : all_problems()) {
      const bench::Problem problem = make(device, bench::Size::small);
      if (problem.name != name) continue;
      CHECK(bench::disagreement(problem) <= 1e-12);
      if (!problem.adolc) WARN("no ADOL-C: nothing was compared with it");
    }
  });
}

}  // namespace

TEST_CASE("gradients of least squares agree") { expect_agreement("llsq"); }
TEST_CASE("gradients of log-sum-exp agree") { expect_agreement("logsumexp"); }
TEST_CASE("gradients of k-means agree") { expect_agreement("kmeans"); }
TEST_CASE("gradients of Gaussian mixtures agree") { expect_agreement("gmm"); }
TEST_CASE("gradients of determinants agree") { expect_agreement("det"); }
TEST_CASE("gradients of a differential equation agree") { expect_agreement("ode"); }
TEST_CASE("gradients of bundle adjustment agree") { expect_agreement("ba"); }
TEST_CASE("gradients of a recurrent network agree") { expect_agreement("lstm"); }
TEST_CASE("gradients of a dense layer agree") { expect_agreement("layer"); }
TEST_CASE("gradients of a convolution agree") { expect_agreement("conv"); }

// Differences do not know of the rules that the others apply.
TEST_CASE("gradients by hand are those of differences") {
  const qn::Device device("cpu");
  for (const auto& make : all_problems()) {
    const bench::Problem p = make(device, bench::Size::small);
    INFO(p.name);
    std::vector<double> gradient(p.at.size()), at = p.at;
    const double value = p.gradient_by_hand(at.data(), gradient.data());
    CHECK(std::abs(value - p.by_hand(at.data())) <= 1e-12 * std::abs(value));
    double largest = 0, off = 0;
    for (size_t k = 0; k < at.size(); k++) {
      const double h = 1e-5;
      at[k] = p.at[k] + h;
      const double above = p.by_hand(at.data());
      at[k] = p.at[k] - h;
      const double below = p.by_hand(at.data());
      at[k] = p.at[k];
      off = std::max(off, std::abs((above - below) / (2 * h) - gradient[k]));
      largest = std::max(largest, std::abs(gradient[k]));
    }
    CHECK(largest > 0);
    CHECK(off <= 1e-7 * largest);
  }
}

TEST_CASE("a gradient that is wrong is not measured") {
  const qn::Device device("cpu");
  bench::Problem p = bench::llsq(device, bench::Size::small);
  const auto right = p.gradient;
  p.gradient = [&] {
    std::vector<double> all = right();
    all.back() *= 1 + 1e-6;
    return all;
  };
  CHECK(bench::disagreement(p) > 1e-9);
  p.gradient = [&] {
    std::vector<double> all = right();
    all.back() = NAN;
    return all;
  };
  bench::Report report(device, 9);
  CHECK_THROWS_AS(bench::measure(report, p), qn::Error);
}
