#include "bench/autodiff/problem.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <random>

#include "bench/autodiff/autodiff.h"

namespace bench {
namespace qn = quern;

namespace {

constexpr double most_disagreement = 1e-9, ratio_bar = 1.2;

/// The larger, or NaN where one of them is.
double worse(double a, double b) { return std::isnan(a) || b <= a ? a : b; }

double distance(const std::vector<double>& a, const std::vector<double>& b) {
  double largest = 0, off = 0;
  for (size_t k = 0; k < a.size(); k++) {
    largest = std::max(largest, std::abs(b[k]));
    off = worse(off, std::abs(a[k] - b[k]));
  }
  return a.size() == b.size() ? off / largest : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

std::vector<double> even_numbers(size_t count, double low, double high, uint32_t seed) {
  std::mt19937_64 bits(seed);
  std::vector<double> all(count);
  for (double& v : all) v = low + (high - low) * double(bits() >> 11) * 0x1p-53;
  return all;
}

double disagreement(const Problem& p) {
  std::vector<double> hand(p.at.size()), other_gradient(p.at.size());
  const double value = p.by_hand(p.at.data());
  double off = 0;
  for (double other :
       {p.value(), p.value_and_gradient(), p.gradient_by_hand(p.at.data(), hand.data())})
    off = worse(off, std::abs(other - value) / std::abs(value));
  off = worse(off, distance(p.gradient(), hand));
  for (const auto& tool : {p.adolc, p.codipack}) {
    if (!tool) continue;
    tool(p.at.data(), other_gradient.data());
    off = worse(off, distance(other_gradient, hand));
  }
  return off;
}

Ratios measure(Report& report, const Problem& p) {
  if (const double off = disagreement(p); !(off <= most_disagreement)) {
    char text[64];
    std::snprintf(text, sizeof text, "%.3g", off);
    throw qn::Error(p.name + " and its references differ by " + text);
  }
  std::vector<double> found(p.at.size());
  std::vector<Report::Side> sides = {
      {[&] { p.value(); }},
      {[&] { p.value_and_gradient(); }},
      {[&] { p.by_hand(p.at.data()); }},
      {[&] { p.gradient_by_hand(p.at.data(), found.data()); }},
  };
  for (const auto& tool : {p.adolc, p.codipack})
    if (tool) sides.push_back({[&found, &p, tool] { tool(p.at.data(), found.data()); }});
  const ForeignLoad load;
  const std::vector<std::vector<double>> taken = report.interleave(sides);
  for (size_t side : {0, 1}) {
    Row row = row_of(taken[side], taken[side + 2]);
    row.name = p.name + (side == 0 ? "" : " gradient");
    row.size = p.size;
    if (side == 0) {
      row.bytes = p.bytes;
      row.flops = p.flops;
    }
    row.foreign = load.cores();
    report.add(row);
  }
  std::vector<double> least;
  for (const std::vector<double>& times : taken) least.push_back(*std::ranges::min_element(times));
  const Ratios found_ratios = {least[1] / least[0], least[3] / least[2]};
  std::printf("%s: least times %.4g ms, gradient %.4g ms; by hand %.4g ms, %.4g ms", p.name.c_str(),
              1e3 * least[0], 1e3 * least[1], 1e3 * least[2], 1e3 * least[3]);
  size_t side = 4;
  if (p.adolc) std::printf("; ADOL-C's gradient %.4g ms", 1e3 * least[side++]);
  if (p.codipack) std::printf("; CoDiPack's gradient %.4g ms", 1e3 * least[side++]);
  if (side == 4) std::printf("; neither ADOL-C's nor CoDiPack's is here");
  std::printf("\n");
  std::printf("%s: gradient / value %.2f, by hand %.2f, which is %.2f times that (bar %.1f)\n",
              p.name.c_str(), found_ratios.quern, found_ratios.hand,
              found_ratios.quern / found_ratios.hand, ratio_bar);
  return found_ratios;
}

const Problems& problems() {
  static const Problems all = {llsq, log_sum_exp, k_means, gmm, determinant, ode, bundle, lstm};
  return all;
}

const Problems& layers() {
  static const Problems all = {layer, convolution};
  return all;
}

void autodiff_problems(Report& report) {
  double logarithms = 0, most = 0;
  for (const auto& make : problems()) {
    const Ratios found = measure(report, make(report.device(), Size::usual));
    logarithms += std::log(found.quern / found.hand);
    most = std::max(most, found.quern / found.hand);
  }
  std::printf(
      "problems: gradient / value is %.2f times that by hand (geometric mean), at most %.2f "
      "(bar %.1f)\n",
      std::exp(logarithms / double(problems().size())), most, ratio_bar);
  for (const auto& make : layers()) measure(report, make(report.device(), Size::usual));
}

}  // namespace bench
