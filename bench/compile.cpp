// Compile time: record + passes + code generation against kernel size; and what the host's compiler
// takes for the headers and for a program of ten kernels.
#include <cmath>
#include <cstdlib>
#include <string>

#include "bench/harness.h"

namespace bench {
namespace qn = quern;
using namespace qn::lang;

namespace {
/// Seconds from the lambda to the end of the first launch of a kernel of about `operations`.
double first_launch(qn::Device& device, qn::Field<float>& x, int operations, int salt) {
  double start = now();
  qn::Kernel kernel = [&] {
    for (auto i : x) {
      Var<float> v = x[i] + float(salt);
      for (int k = 0; k < operations / 2; k++) v = v * (1.0f + float(k) * 1e-3f) + float(k + salt);
      x[i] = v;
    }
  };
  kernel();
  device.synchronize();
  return now() - start;
}
}  // namespace

void compile(Report& report) {
  qn::Device& device = report.device();
  qn::Field<float> x{device, {1024}};
  first_launch(device, x, 10, -1);
  std::vector<double> log_size, log_time;
  for (int operations : {10, 30, 100, 300, 1000, 3000}) {
    std::vector<double> times;
    for (int k = 0; k < 9; k++) times.push_back(first_launch(device, x, operations, k));
    Row row;
    row.name = "first_launch";
    row.size = std::to_string(operations) + " ops";
    row.seconds = percentile(times, 0.5);
    row.spread_low = percentile(times, 0.1);
    row.spread_high = percentile(times, 0.9);
    report.add(row);
    if (operations < 100) continue;
    log_size.push_back(std::log(operations));
    log_time.push_back(std::log(row.seconds));
  }
  // Least-squares slope of log time over log size from 100 operations on: 1 is linear.
  double n = double(log_size.size()), sx = 0, sy = 0, sxx = 0, sxy = 0;
  for (size_t k = 0; k < log_size.size(); k++) {
    sx += log_size[k], sy += log_time[k];
    sxx += log_size[k] * log_size[k], sxy += log_size[k] * log_time[k];
  }
  std::printf("compile time grows as size^%.2f\n", (n * sxy - sx * sy) / (n * sxx - sx * sx));
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
