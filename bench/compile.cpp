// Compile time: record + passes + code generation against kernel size; and what the host's compiler
// takes for the headers and for a program of ten kernels.
#include <quern/decompose.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <string>

#include "bench/harness.h"

namespace bench {
namespace qn = quern;
using namespace qn::lang;

namespace {

/// Records one statement of a large kernel: statement `k` of the loop with index `i`. `salt` makes
/// each kernel one that was not compiled before.
using Statement = std::function<void(I32 i, Var<float>& v, int k, int salt)>;

struct Family {
  const char* name;
  bool checked;
  std::vector<int> sizes;
  Statement statement;
};

/// Seconds from the lambda to the end of the first launch.
double first_launch(const Family& family, qn::Device& device, qn::Field<float>& x, int statements,
                    int salt) {
  double start = now();
  auto body = [&] {
    for (auto i : range(64)) {
      Var<float> v = x[i] + float(salt);
      for (int k = 0; k < statements; k++) family.statement(i, v, k, salt);
      x[i] = v;
    }
  };
  qn::Kernel kernel{body, qn::Options{.checked = family.checked}};
  kernel();
  device.synchronize();
  return now() - start;
}

/// Least-squares slope of log time over log size: 1 is linear.
double exponent(const std::vector<std::pair<double, double>>& points) {
  double n = double(points.size()), sx = 0, sy = 0, sxx = 0, sxy = 0;
  for (auto [size, seconds] : points) {
    const double x = std::log(size), y = std::log(seconds);
    sx += x, sy += y, sxx += x * x, sxy += x * y;
  }
  return (n * sxy - sx * sy) / (n * sxx - sx * sx);
}

void measure(Report& report, qn::Field<float>& x, const Family& family) {
  std::vector<std::pair<double, double>> points;
  first_launch(family, report.device(), x, 10, -1);
  for (int statements : family.sizes) {
    std::vector<double> times;
    const int runs = statements <= 1000 ? 9 : 3;
    for (int k = 0; k < runs; k++)
      times.push_back(first_launch(family, report.device(), x, statements, k));
    Row row;
    row.name = family.name;
    row.size = std::to_string(statements) + " statements";
    row.seconds = percentile(times, 0.5);
    row.spread_low = percentile(times, 0.1);
    row.spread_high = percentile(times, 0.9);
    report.add(row);
    if (statements >= 100) points.push_back({statements, row.seconds});
  }
  if (points.size() > 1)
    std::printf("%s: compile time grows as size^%.2f\n", family.name, exponent(points));
}

}  // namespace

void compile(Report& report) {
  const std::vector<int> sizes = {100, 300, 1000, 3000, 10000};
  qn::Field<float> x{report.device(), {16384}};
  x.fill(0.25f);
  const Family families[] = {
      {"first_launch",
       false,
       {5, 15, 50, 150, 500, 1500},
       [](I32, Var<float>& v, int k, int salt) {
         v = v * (1.0f + float(k) * 1e-3f) + float(k + salt);
       }},
      {"unrolled_stores", false, sizes,
       [&](I32 i, Var<float>& v, int k, int) { x[i + k] = v * float(k + 1); }},
      {"checked_stores", true, sizes,
       [&](I32 i, Var<float>& v, int k, int) { x[i * 2 + k] = v * float(k + 1); }},
      {"library_calls", false, sizes,
       [](I32, Var<float>& v, int k, int) {
         v = k % 2 ? sin(v + float(k)) : exp(v - float(k % 7));
       }},
      {"decompositions",
       false,
       {1, 4, 16},
       [](I32, Var<float>& v, int k, int salt) {
         Mat3 m(v, 1.0f, 0.5f, float(k), v * v, 2.0f, float(salt), 0.25f, 1.0f - v);
         v = svd(m).s.x + polar(m).s(0, 1);
       }},
  };
  for (const Family& family : families) measure(report, x, family);
}

void headers(Report& report) {
  // The least of several runs: what else the machine does only adds.
  auto least = [](const std::string& arguments) {
    double best = 0;
    for (int k = 0; k < 9; k++) {
      double start = now();
      if (std::system((QUERN_CXX " -std=c++20 " QUERN_INCLUDES " " + arguments).c_str()) != 0)
        throw qn::Error("the compiler does not take: " + arguments);
      double seconds = now() - start;
      if (k == 0 || seconds < best) best = seconds;
    }
    return best;
  };
  auto add = [&](const char* name, const char* size, double seconds) {
    Row row;
    row.name = name;
    row.size = size;
    row.seconds = row.spread_low = row.spread_high = seconds;
    report.add(row);
  };
  const double empty = least("-fsyntax-only -x c++ /dev/null");
  const double umbrella = least("-fsyntax-only -include quern/quern.h -x c++ /dev/null");
  const double accept = least("-O0 -c -o /dev/null " QUERN_ACCEPT);
  add("header_parse", "quern.h", umbrella);
  add("compile_-O0", "accept.cpp", accept);
  std::printf("quern.h adds %.3f s to an empty file (%.3f s)\n", umbrella - empty, empty);
}

}  // namespace bench
