#pragma once
// Measuring: interleaved pairs of Quern and hand-written C++, and the machine's ceilings in the
// same run.
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include <quern/quern.h>

namespace bench {

/// One line of the report. A time of 0 means "none"; share_of_ceiling is of the ceiling that the
/// counted bytes or flops are measured against.
struct Row {
  std::string name, size, device;
  int threads = 1;
  double seconds = 0, spread_low = 0, spread_high = 0;  ///< median, 10th and 90th percentile
  double reference_seconds = 0;                         ///< median of the hand-written version
  double ratio = 0;                                     ///< median over pairs of reference / quern
  double bytes = 0, flops = 0;                          ///< counted for one run
  double ceiling = 0;                                   ///< bytes/s or flop/s, measured here
  double share_of_ceiling = 0;
  double items = 0;  ///< pixels, nodes … of one run, where a rate of them is usual
};

struct Work {
  std::string name, size;
  double bytes = 0, flops = 0;
  std::function<void()> quern;      ///< runs to completion (synchronises)
  std::function<void()> reference;  ///< hand-written C++ of the same algorithm; may be empty
  double ceiling = 0;               ///< bytes/s if bytes > 0, else flop/s
  double items = 0;
};

class Report {
 public:
  Report(quern::Device device, int pairs) : device_(device), pairs_(pairs) {}
  quern::Device& device() { return device_; }

  /// Measures `pairs` interleaved pairs, each side repeated until it lasts ≥ 2 ms, and prints a
  /// line.
  void run(const Work& work);
  /// A row measured elsewhere (launch and compile times).
  void add(Row row);
  /// Bytes/s of a hand-written triad over arrays of `bytes` in all, on this run's threads (measured
  /// once a size).
  double bandwidth(double bytes);
  /// Fused multiply-adds per second × 2, single precision, all threads.
  double flops_peak();
  void write_json(std::FILE* file) const;

 private:
  quern::Device device_;
  int pairs_;
  std::vector<Row> rows_;
  std::vector<std::pair<double, double>> bandwidths_;
  double peak_ = 0;
};

double now();
double percentile(std::vector<double> values, double p);
int threads();

void stream(Report& report);
void compute(Report& report);
void math(Report& report);
void simulate(Report& report);
void vision(Report& report);
void algorithms(Report& report);
void launch(Report& report);
void compile(Report& report);
void headers(Report& report);

}  // namespace bench
