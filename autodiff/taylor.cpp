#include "autodiff/taylor.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

namespace quern::autodiff {

namespace {

constexpr double none = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

/// Where a function is looked at, by how it is rounded.
struct Probes {
  double first, ratio;  ///< of steps: the largest, and each in proportion to the one before
  int count;
  bool is_central;     ///< is a remainder that of the odd part of f?
  int span;            ///< so many steps on a remainder is compared with
  double significant;  ///< those of so many times the noise are
  double least_slope;  ///< of remainders that fall as those of a right gradient
  double near;         ///< a step along which f is a straight line, but for its noise
  double difference;   ///< the step of central differences, where these are good
  double most_error;   ///< of such a difference
  double rounding;     ///< in proportion to a value
};
constexpr Probes of_doubles{1e-1, 0.1, 8, false, 1, 600, 1.8, 1e-9, 1e-5, 1e-6, 0x1p-52};
// Noise is 1e-7 of f. A remainder h² |f''| / 2 goes under in it where a gradient that is off by 1 %
// just begins to show; that of the odd part, h³ |f'''| / 6, leaves two more decades of steps at
// which one that falls as h stands out.
constexpr Probes of_singles{0.125, 0.5, 11, true, 2, 64, 1.7, 4e-6, 0x1p-7, 1e-3, 0x1p-24};

class Checker {
 public:
  Checker(const TaylorProblem& problem, size_t input, std::mt19937_64& random)
      : problem_(problem),
        number_(input),
        input_(problem.inputs[input]),
        probes_(problem.is_single ? of_singles : of_doubles) {
    double squares = 0;
    for (double v : input_.at) squares += v * v;
    scale_ = squares > 0 ? std::sqrt(squares / double(input_.at.size())) : 1;
    direction_ = direction(random);
    for (int n = 1; n < 8; n++) {  // the steepest: where f hardly changes its noise hides errors
      Numbers other = direction(random);
      if (std::abs(slope_along(other)) > std::abs(slope_along(direction_)))
        direction_ = std::move(other);
    }
  }

  GradientReport::Input run() {
    GradientReport::Input out;
    out.name = input_.name;
    const Value f = at(0, direction_);
    out.noise = noise(f);
    double h = probes_.first;
    for (int k = 0; k < probes_.count; k++, h *= probes_.ratio) {
      out.steps.push_back(h);
      out.remainders.push_back(remainder(h, f));
    }
    out.slope = slope(out);
    const Difference d = difference(direction_, out.noise);
    out.error = d.error;
    out.unseen = unseen(out, d);
    const bool is_finite =
        std::isfinite(f.is) && std::isfinite(d.gradient) && std::isfinite(d.central);
    out.passed = is_finite && (std::isnan(out.slope) ? out.error < probes_.most_error
                                                     : out.slope > probes_.least_slope);
    if (!is_finite) out.error = infinity;
    if (!out.passed) out.where = culprit(out.noise);
    return out;
  }

 private:
  /// Differences of so many times the noise have their first digit.
  static constexpr double first_digit = 30;

  /// Of f some way along a direction, and what the gradient says that it has changed by.
  struct Value {
    double is, expected;
  };
  struct Difference {
    double central, gradient, error;
  };

  /// No number has a small part in it, in which an error of its own would hide.
  Numbers direction(std::mt19937_64& random) const {
    std::uniform_real_distribution<double> length(0.5, 1.5);
    Numbers drawn(input_.at.size());
    for (double& v : drawn) v = scale_ * std::copysign(length(random), random() % 2 ? 1.0 : -1.0);
    return drawn;
  }

  double slope_along(const Numbers& direction) const {
    double sum = 0;
    for (size_t k = 0; k < direction.size(); k++) sum += input_.gradient[k] * direction[k];
    return sum;
  }

  /// The way is the one between the numbers that the input keeps.
  Value at(double h, const Numbers& direction) const {
    Numbers x = input_.at;
    double expected = 0;
    for (size_t k = 0; k < x.size(); k++) {
      x[k] = input_.stored(k, x[k] + h * direction[k]);
      expected += input_.gradient[k] * (x[k] - input_.at[k]);
    }
    return {problem_.value(number_, x), expected};
  }

  double remainder(double h, const Value& f) const {
    const Value ahead = at(h, direction_);
    const Value from = probes_.is_central ? at(-h, direction_) : f;
    const double left = ahead.is - from.is - (ahead.expected - from.expected);
    return std::abs(probes_.is_central ? left / 2 : left);
  }

  /// The standard deviation of rounding, by second differences of values so near that f is a
  /// straight line (Moré and Wild, Estimating computational noise, 2011), less what the gradient
  /// says of the ways between them, which rounding makes unequal.
  double noise(const Value& f) const {
    constexpr int count = 10;
    double values[count] = {f.is};
    for (int k = 1; k < count; k++) {
      const Value v = at(k * probes_.near, direction_);
      values[k] = v.is - v.expected;
    }
    double squares = 0;
    for (int k = 1; k + 1 < count; k++)
      squares += std::pow(values[k - 1] - 2 * values[k] + values[k + 1], 2);
    return std::max(probes_.rounding * std::abs(f.is), std::sqrt(squares / (count - 2) / 6));
  }

  /// How fast remainders fall at the smallest steps that say something. One that falls below the
  /// noise may be anything up to it, and has fallen by so much at least.
  double slope(const GradientReport::Input& out) const {
    double slope = none;
    const auto span = size_t(probes_.span);
    for (size_t k = 0; k + span < out.steps.size(); k++) {
      const double large = out.remainders[k], small = out.remainders[k + span];
      if (std::isfinite(large) && std::isfinite(small) && large > probes_.significant * out.noise)
        slope = std::log(large / std::max(small, 3 * out.noise)) /
                std::log(out.steps[k] / out.steps[k + span]);
    }
    return slope;
  }

  /// What falls as h shows where it is significant at the largest step.
  double unseen(const GradientReport::Input& out, const Difference& d) const {
    const double larger = std::max(std::abs(d.central), std::abs(d.gradient));
    const double hidden = probes_.significant * out.noise / out.steps[0];
    return hidden < larger ? hidden / larger : hidden > 0 ? 1 : 0;
  }

  Difference difference(const Numbers& direction, double noise_of_f) const {
    const double way = 2 * probes_.difference;
    const Value ahead = at(way / 2, direction), back = at(-way / 2, direction);
    const double central = (ahead.is - back.is) / way;
    const double gradient = (ahead.expected - back.expected) / way;
    const double larger = std::max(std::abs(central), std::abs(gradient));
    const double beyond =
        std::max(std::abs(central - gradient) - 2 * first_digit * noise_of_f / way, 0.0);
    return {central, gradient, beyond > 0 ? beyond / larger : 0};
  }

  /// Follows the half whose difference is off by more.
  std::string culprit(double noise_of_f) const {
    size_t from = 0, to = direction_.size();
    const auto part = [&](size_t a, size_t b) {
      Numbers d(direction_.size(), 0);
      std::copy(direction_.begin() + std::ptrdiff_t(a), direction_.begin() + std::ptrdiff_t(b),
                d.begin() + std::ptrdiff_t(a));
      return d;
    };
    const auto off = [&](size_t a, size_t b) {
      const Difference d = difference(part(a, b), noise_of_f);
      const double by = std::abs(d.central - d.gradient);
      return std::isfinite(by) ? by : infinity;
    };
    while (to - from > 1) {
      const size_t middle = from + (to - from) / 2;
      const double first = off(from, middle), second = off(middle, to);
      (first >= second ? to : from) = middle;
    }
    if (from == to) return "";
    Numbers one(direction_.size(), 0);
    one[from] = scale_;
    const Difference d = difference(one, noise_of_f);
    char text[96];
    std::snprintf(text, sizeof text, ": the gradient says %.6g, differences say %.6g",
                  input_.gradient[from], d.central / scale_);
    return input_.place(from) + text;
  }

  const TaylorProblem& problem_;
  const size_t number_;
  const TaylorProblem::Input& input_;
  const Probes& probes_;
  double scale_ = 1;
  Numbers direction_;
};

}  // namespace

GradientReport check_by_differences(const TaylorProblem& problem, std::mt19937_64& random) {
  GradientReport report;
  report.passed = true;
  for (size_t k = 0; k < problem.inputs.size(); k++) {
    report.inputs.push_back(Checker(problem, k, random).run());
    report.passed &= report.inputs.back().passed;
    report.worst_error = std::max(report.worst_error, report.inputs.back().error);
  }
  return report;
}

}  // namespace quern::autodiff

namespace quern {

std::string GradientReport::text() const {
  std::string out = passed ? "the gradient passed\n" : "the gradient did not pass\n";
  char line[160];
  for (const Input& input : inputs) {
    std::snprintf(line, sizeof line, "  %s: remainders fall as h^%.2f, error %.1e, %s\n",
                  input.name.c_str(), input.slope, input.error,
                  input.passed ? "passed" : "did not pass");
    out += std::isnan(input.slope) ? "  " + input.name + ": remainders are rounding alone, " +
                                         (input.passed ? "passed\n" : "did not pass\n")
                                   : std::string(line);
    if (input.unseen > 0.01) {
      std::snprintf(line, sizeof line,
                    "    errors below %.0f %% would not show in the noise of f\n",
                    100 * input.unseen);
      out += line;
    }
    if (!input.where.empty()) out += "    " + input.where + "\n";
    for (size_t k = 0; !input.passed && k < input.steps.size(); k++) {
      std::snprintf(line, sizeof line, "    h = %.0e: remainder %.3e\n", input.steps[k],
                    input.remainders[k]);
      out += line;
    }
  }
  if (has_products) {
    std::snprintf(line, sizeof line,
                  "  <Jv, w> = %.15g forward, <v, J'w> = %.15g back, error %.1e\n", forward,
                  reverse, product_error);
    out += line;
  }
  return out;
}

}  // namespace quern
