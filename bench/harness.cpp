#include "bench/harness.h"

#include <omp.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <thread>

#include <quern/interop.h>

#include "bench/pages.h"
#include "bench/reference.h"

namespace bench {

Row row_of(const std::vector<double>& quern, const std::vector<double>& reference) {
  Row row;
  row.seconds = percentile(quern, 0.5);
  row.spread_low = percentile(quern, 0.1);
  row.spread_high = percentile(quern, 0.9);
  if (reference.empty()) return row;
  row.reference_seconds = percentile(reference, 0.5);
  std::vector<double> ratios;
  for (size_t k = 0; k < quern.size(); k++) ratios.push_back(reference[k] / quern[k]);
  row.ratio = percentile(ratios, 0.5);
  return row;
}

double now() {
  using namespace std::chrono;
  return duration<double>(steady_clock::now().time_since_epoch()).count();
}

double percentile(std::vector<double> values, double p) {
  std::sort(values.begin(), values.end());
  double at = p * double(values.size() - 1);
  size_t k = size_t(at);
  if (k + 1 >= values.size()) return values.back();
  return values[k] + (at - double(k)) * (values[k + 1] - values[k]);
}

int threads() { return omp_get_max_threads(); }

ForeignLoad::Sample ForeignLoad::now() {
  Sample s;
  s.wall = bench::now();
  // cpu user nice system idle iowait irq softirq steal
  std::ifstream stat("/proc/stat");
  std::string word;
  stat >> word;
  const double tick = 1.0 / double(sysconf(_SC_CLK_TCK));
  double ticks = 0;
  for (int field = 0; field < 8 && stat >> ticks; field++)
    if (field != 3 && field != 4) s.busy += ticks * tick;
  rusage own{};
  getrusage(RUSAGE_SELF, &own);
  for (const timeval& t : {own.ru_utime, own.ru_stime})
    s.own += double(t.tv_sec) + 1e-6 * double(t.tv_usec);
  return s;
}

double ForeignLoad::cores() const {
  const Sample end = now();
  const double wall = end.wall - start_.wall;
  if (wall <= 0 || end.busy <= start_.busy) return 0;
  return std::max(0.0, ((end.busy - start_.busy) - (end.own - start_.own)) / wall);
}

namespace {
constexpr double shortest_sample = 2e-3;

void print(const Row& r) {
  std::printf("%-22s %-12s %10.3f us  [%.3f, %.3f]", r.name.c_str(), r.size.c_str(),
              r.seconds * 1e6, r.spread_low * 1e6, r.spread_high * 1e6);
  if (r.reference_seconds > 0)
    std::printf("  reference %10.3f us  ratio %.2f", r.reference_seconds * 1e6, r.ratio);
  if (r.p99 > 0) std::printf("  p99 %.3f us", r.p99 * 1e6);
  if (r.reference_p99 > 0) std::printf(", reference %.3f us", r.reference_p99 * 1e6);
  if (r.bytes > 0) std::printf("  %.4g B  %.2f GB/s", r.bytes, r.bytes / r.seconds * 1e-9);
  if (r.flops > 0) std::printf("  %.4g flop  %.2f GFLOP/s", r.flops, r.flops / r.seconds * 1e-9);
  if (r.items > 0) std::printf("  %.1f M/s", r.items / r.seconds * 1e-6);
  if (r.ceiling > 0)
    std::printf("  ceiling %.2f G/s  share %.0f %%", r.ceiling * 1e-9, r.share_of_ceiling * 100);
  if (r.foreign >= 0.05) std::printf("  beside %.1f busy cores of others", r.foreign);
  std::printf("\n");
  std::fflush(stdout);
}
}  // namespace

Report::Report(quern::Device device, std::function<void(const Work&)> visit)
    : Report(std::move(device), 0) {
  visit_ = std::move(visit);
}

Report::Report(quern::Device device, int pairs) : device_(std::move(device)), pairs_(pairs) {
  const std::string name = device_.name();
  const bool is_cuda = name.starts_with("cuda");
  on_gpu_ = is_cuda || name.starts_with("rocm");
  if (!is_cuda) return;
  cuda_ = cuda::functions();
  quern::interop::Handles handles = quern::interop::handles(device_);
  stream_ = handles.stream;
  if (cuda_) cuda_->use_device(handles.device);
}

Report::~Report() {
  if (cuda_) cuda_->close();
}

void Report::complete() {
  if (!on_gpu_) device_.synchronize();
}

namespace {
/// How often a run that takes `seconds` is repeated for a sample.
int repeats_for(double seconds) {
  return seconds >= shortest_sample
             ? 1
             : std::min(100'000, int(shortest_sample / std::max(seconds, 1e-9)) + 1);
}
}  // namespace

/// Runs one side until its threads are awake on processors of their own, and those of the other
/// side at rest: OpenMP's spin for up to 20 ms behind a loop.
void Report::take_turn(const Side& side) {
  for (const double start = now(); now() < start + 0.03;) timed(side, 1);
}

double Report::timed(const Side& side, int repeats) {
  double start = now();
  for (int k = 0; k < repeats; k++) side.run();
  if (side.finish) side.finish();
  return (now() - start) / repeats;
}

std::vector<std::vector<double>> Report::interleave(const std::vector<Side>& sides) {
  constexpr double long_run = 0.3, long_round = 2;
  std::vector<double> once;
  double round = 0;
  for (const Side& side : sides) {
    timed(side, 1);
    once.push_back(timed(side, 1));
    round += once.back();
  }
  std::vector<std::vector<double>> taken(sides.size());
  for (int k = 0; k < (round < long_round ? pairs_ : std::min(pairs_, 3)); k++)
    for (size_t s = 0; s < sides.size(); s++) {
      if (once[s] < long_run) take_turn(sides[s]);
      taken[s].push_back(timed(sides[s], repeats_for(once[s])));
    }
  return taken;
}

Row Report::run(const Work& work) {
  if (visit_) {
    visit_(work);
    return {};
  }
  std::function<void()> hand_written = on_gpu_ ? nullptr : work.reference, wait, reference_wait;
  if (on_gpu_) wait = [&] { device_.synchronize(); };
  if (cuda_ && work.cuda) {
    hand_written = [&] { work.cuda(*cuda_, stream_); };
    reference_wait = [&] { cuda_->wait(stream_); };
  }
  std::vector<Side> sides = {{work.quern, wait}};
  if (hand_written) sides.push_back({hand_written, reference_wait});
  const ForeignLoad load;
  const std::vector<std::vector<double>> taken = interleave(sides);
  Row row = row_of(taken[0], hand_written ? taken[1] : std::vector<double>());
  row.name = work.name;
  row.size = work.size;
  row.bytes = work.bytes;
  row.flops = work.flops;
  row.ceiling = work.ceiling;
  row.items = work.items;
  row.foreign = load.cores();
  if (row.ceiling > 0)
    row.share_of_ceiling = (row.bytes > 0 ? row.bytes : row.flops) / row.seconds / row.ceiling;
  add(row);
  return row;
}

void Report::run_singly(const Work& work) {
  if (visit_) return visit_(work);
  auto measure = [](const std::function<void()>& run, std::vector<double>& times) {
    take_turn({run});
    const double start = now();
    for (double last = start; last < start + 0.1;) {
      run();
      const double end = now();
      times.push_back(end - last);
      last = end;
    }
  };
  std::vector<double> quern, reference;
  const ForeignLoad load;
  for (int turn = 0; turn < 10; turn++) {
    measure(work.quern, quern);
    measure(work.reference, reference);
  }
  Row row = row_of(quern, {});
  row.name = work.name;
  row.size = work.size;
  row.p99 = percentile(quern, 0.99);
  row.reference_seconds = percentile(reference, 0.5);
  row.reference_p99 = percentile(reference, 0.99);
  row.ratio = row.reference_seconds / row.seconds;
  row.foreign = load.cores();
  add(row);
}

void Report::add(Row row) {
  row.device = device_.name();
  row.threads = threads();
  print(row);
  rows_.push_back(std::move(row));
}

double Report::bandwidth(double bytes) {
  if (visit_) return 0;
  for (auto [size, rate] : bandwidths_)
    if (size == bytes) return rate;
  double rate = !on_gpu_ ? host_bandwidth(bytes) : cuda_ ? cuda_bandwidth(bytes) : 0;
  bandwidths_.push_back({bytes, rate});
  return rate;
}

double Report::host_bandwidth(double bytes) {
  size_t n = std::max<size_t>(1, size_t(bytes / 12));
  Array<float> a(n, 1.0f), b(n, 2.0f), c(n, 3.0f);
  auto triad = [&] { reference::triad(a.data(), b.data(), c.data(), 0.5f, n); };
  timed({triad}, 1);
  const int repeats = repeats_for(timed({triad}, 1));
  double best = 1e30;
  for (int k = 0; k < 9; k++) best = std::min(best, timed({triad}, repeats));
  return 12.0 * double(n) / best;
}

double Report::cuda_bandwidth(double bytes) {
  size_t n = std::max<size_t>(1, size_t(bytes / 8));
  quern::Field<float> a{device_, {int64_t(n)}}, b{device_, {int64_t(n)}};
  a.fill(1.0f);
  device_.synchronize();
  float *from = quern::interop::address(a), *to = quern::interop::address(b);
  auto wait = [&] { cuda_->wait(stream_); };
  double best = 1e30;
  for (bool by_driver : {true, false}) {
    auto copy = [&] {
      by_driver ? cuda_->memcpy(to, from, n, stream_) : cuda_->copy(from, to, n, stream_);
    };
    timed({copy, wait}, 1);
    const int repeats = repeats_for(timed({copy, wait}, 1));
    for (int k = 0; k < 9; k++) best = std::min(best, timed({copy, wait}, repeats));
  }
  return 8.0 * double(n) / best;
}

double Report::flops_peak() {
  if (visit_) return 0;
  if (peak_ < 0) peak_ = !on_gpu_ ? host_peak() : cuda_ ? cuda_peak() : 0;
  return peak_;
}

double Report::host_peak() {
  constexpr int rounds = 200'000;
  double best = 1e30;
  for (int k = 0; k < 9; k++)
    best = std::min(best, timed({[] { reference::fma_rounds(rounds); }}, 1));
  return reference::fma_flops(rounds) / best;
}

double Report::cuda_peak() {
  constexpr int rounds = 20'000;
  double best = 1e30, flops = 0;
  auto multiply_adds = [&] { flops = cuda_->multiply_adds(rounds, stream_); };
  for (int k = 0; k < 9; k++)
    best = std::min(best, timed({multiply_adds, [&] { cuda_->wait(stream_); }}, 1));
  return flops / best;
}

void Report::write_json(std::FILE* file) const {
  std::fprintf(file, "[\n");
  for (size_t k = 0; k < rows_.size(); k++) {
    const Row& r = rows_[k];
    std::fprintf(
        file,
        "  {\"name\": \"%s\", \"size\": \"%s\", \"device\": \"%s\", \"threads\": %d, "
        "\"seconds\": %.9g, \"seconds_p10\": %.9g, \"seconds_p90\": %.9g, "
        "\"seconds_p99\": %.9g, \"reference_seconds\": %.9g, \"reference_seconds_p99\": %.9g, "
        "\"ratio\": %.4g, \"bytes\": %.17g, \"flops\": %.17g, "
        "\"items\": %.17g, "
        "\"ceiling\": %.6g, \"share_of_ceiling\": %.4g, \"foreign_cores\": %.3g}%s\n",
        r.name.c_str(), r.size.c_str(), r.device.c_str(), r.threads, r.seconds, r.spread_low,
        r.spread_high, r.p99, r.reference_seconds, r.reference_p99, r.ratio, r.bytes, r.flops,
        r.items, r.ceiling, r.share_of_ceiling, r.foreign, k + 1 < rows_.size() ? "," : "");
  }
  std::fprintf(file, "]\n");
}

}  // namespace bench
