#pragma once
// Measuring: interleaved pairs of Quern and hand-written C++, and the machine's ceilings in the
// same run.
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include <quern/quern.h>

#include "bench/cuda/reference.h"

namespace bench {

/// One line of the report. A time of 0 means "none"; share_of_ceiling is of the ceiling that the
/// counted bytes or flops are measured against.
struct Row {
  std::string name, size, device;
  int threads = 1;
  double seconds = 0, spread_low = 0, spread_high = 0;  ///< median, 10th and 90th percentile
  double reference_seconds = 0;                         ///< median of the hand-written version
  double ratio = 0;                                     ///< median over pairs of reference / quern
  double p99 = 0, reference_p99 = 0;  ///< 99th percentiles, where runs were timed one by one
  double bytes = 0, flops = 0;        ///< counted for one run
  double ceiling = 0;                 ///< bytes/s or flop/s, measured here
  double share_of_ceiling = 0;
  double items = 0;    ///< pixels, nodes … of one run, where a rate of them is usual
  double foreign = 0;  ///< cores that other processes kept busy meanwhile
};

/// Times of a row: of runs, and of the reference's beside them, of which there may be none.
Row row_of(const std::vector<double>& quern, const std::vector<double>& reference);

/// What other processes take of the machine's cores from its making on.
class ForeignLoad {
 public:
  ForeignLoad() : start_(now()) {}
  /// Cores, averaged since then; 0 where the system does not tell.
  double cores() const;

 private:
  struct Sample {
    double wall = 0, busy = 0, own = 0;  ///< seconds; busy of all cores together
  };
  static Sample now();
  Sample start_;
};

struct Work {
  std::string name, size;
  double bytes = 0, flops = 0;
  std::function<void()> quern;      ///< ends with Report::complete
  std::function<void()> reference;  ///< hand-written C++ of the same algorithm; may be empty
  double ceiling = 0;               ///< bytes/s if bytes > 0, else flop/s
  double items = 0;
  /// Hand-written CUDA of the same algorithm, the reference on CUDA's devices; may be empty.
  std::function<void(const cuda::Functions&, cuda::Stream)> cuda = {};
};

class Report {
 public:
  Report(quern::Device device, int pairs);
  ~Report();
  Report(const Report&) = delete;
  /// Measures nothing: hands each work to `visit`.
  Report(quern::Device device, std::function<void(const Work&)> visit);
  quern::Device& device() { return device_; }

  /// The end of one run of a work: waits for the device. CUDA's and ROCm's take all runs of a
  /// sample before they are waited for, as their references do.
  void complete();
  bool on_gpu() const { return on_gpu_; }
  bool measures() const { return !visit_; }
  /// The functions of hand-written CUDA, where the device takes them; else null.
  const cuda::Functions* cuda() const { return cuda_; }

  /// Measures `pairs` interleaved pairs, each side repeated until it lasts ≥ 2 ms, and prints a
  /// line. The row is empty where nothing is measured.
  Row run(const Work& work);
  /// Times every run by itself, for a second a side in turns of a tenth, so that those that the
  /// scheduler delays are seen.
  void run_singly(const Work& work);
  /// What is measured beside other things: one run, and where it is not empty what waits for runs.
  struct Side {
    std::function<void()> run, finish = {};
  };
  /// Seconds that a run of each side took, in as many rounds as pairs are measured, each side in turn
  /// and repeated until it lasts ≥ 2 ms; three rounds where one lasts seconds. By side, then round.
  std::vector<std::vector<double>> interleave(const std::vector<Side>& sides);
  /// A row measured elsewhere (launch and compile times).
  void add(Row row);
  /// Bytes/s of a hand-written triad over arrays of `bytes` in all, on this run's threads; on
  /// CUDA's devices of the faster of the driver's copy and a copying kernel (measured once a size).
  double bandwidth(double bytes);
  /// Fused multiply-adds per second × 2, single precision, all threads. Both are 0 on GPUs without
  /// a reference.
  double flops_peak();
  void write_json(std::FILE* file) const;

 private:
  static void take_turn(const Side& side);
  static double timed(const Side& side, int repeats);
  double host_bandwidth(double bytes);
  double cuda_bandwidth(double bytes);
  double host_peak();
  double cuda_peak();

  quern::Device device_;
  bool on_gpu_ = false;
  const cuda::Functions* cuda_ = nullptr;
  cuda::Stream stream_ = nullptr;
  int pairs_ = 0;
  std::function<void(const Work&)> visit_;
  std::vector<Row> rows_;
  std::vector<std::pair<double, double>> bandwidths_;
  double peak_ = -1;
};

double now();
double percentile(std::vector<double> values, double p);
int threads();

void stream(Report& report);
void compute(Report& report);
void math(Report& report);
void simulate(Report& report);
void vision(Report& report);
void linear(Report& report);
void checked(Report& report);
void autodiff(Report& report);
void algorithms(Report& report);
void sparse(Report& report);
void trees(Report& report);
void launch(Report& report);
void compile(Report& report);
void headers(Report& report);

}  // namespace bench
