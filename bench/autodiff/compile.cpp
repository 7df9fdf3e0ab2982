// What it takes to make a gradient, beside what the kernel itself takes.
#include <quern/autodiff.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "bench/autodiff/autodiff.h"

namespace bench {
namespace qn = quern;
using namespace qn::lang;

namespace {

constexpr double compile_bar = 2;
constexpr int operations = 1000;

struct Family {
  const char* name;
  int operations;  ///< of a statement, with loads
  /// Records statement `k` of the loop with index `i`.
  std::function<void(I32 i, Var<float>& v, int k)> statement;
};

struct Taken {
  double kernel, gradient;
};

/// Seconds from the lambda to the end of the first launch, and from there to that of the first way
/// back. `salt` makes each kernel one that was not compiled before.
Taken first_launches(const Family& family, qn::Device& device, qn::Field<float>& x,
                     qn::Field<float>& y, int salt) {
  const double start = now();
  qn::Kernel kernel = [&] {
    for (auto i : range(64)) {
      Var<float> v = x[i] + float(salt) * 1e-3f;
      for (int k = 0; k < operations / family.operations; k++) family.statement(i, v, k);
      y[i] = v;
    }
  };
  kernel();
  device.synchronize();
  const double between = now();
  auto back = qn::vjp(kernel)();
  back();
  device.synchronize();
  return {between - start, now() - between};
}

}  // namespace

void autodiff_compile(Report& report) {
  qn::Device& device = report.device();
  qn::Field<float> x{device, {64 + operations}}, y{device, {64}};
  x.fill(0.25f);
  x.grad().fill(0.0f);
  y.grad().fill(1.0f);
  const Family families[] = {
      {"arithmetic", 3,
       [](I32, Var<float>& v, int k) { v = (3 + float(k) * 1e-4f) * v * (1 - v); }},
      {"library calls", 2,
       [](I32, Var<float>& v, int k) { v = k % 2 ? sin(v + float(k)) : exp(v - float(k % 7)); }},
      {"loads", 3, [&](I32 i, Var<float>& v, int k) { v = v * x[i + k] + x[i]; }},
  };
  double worst = 0;
  for (const Family& family : families) {
    first_launches(family, device, x, y, -1);
    std::vector<double> kernel, gradient;
    for (int salt = 0; salt < 5; salt++) {
      const Taken taken = first_launches(family, device, x, y, salt);
      kernel.push_back(taken.kernel);
      gradient.push_back(taken.gradient);
    }
    Row row = row_of(gradient, kernel);
    row.name = std::string("vjp of ") + family.name;
    row.size = std::to_string(operations) + " operations";
    report.add(row);
    const double ratio = *std::ranges::min_element(gradient) / *std::ranges::min_element(kernel);
    std::printf("%s: a first way back takes %.2f times a first launch\n", family.name, ratio);
    worst = std::max(worst, ratio);
  }
  std::printf("making gradients: at most %.2f times the kernel (bar %.1f)\n", worst, compile_bar);
}

}  // namespace bench
