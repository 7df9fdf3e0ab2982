#include "bench/harness.h"

#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "bench/reference.h"

namespace bench {

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

namespace {
constexpr double shortest_sample = 2e-3;

double timed(const std::function<void()>& f, int repeats) {
  double start = now();
  for (int k = 0; k < repeats; k++) f();
  return (now() - start) / repeats;
}

int repeats_for(const std::function<void()>& f) {
  f();
  double once = timed(f, 1);
  return once >= shortest_sample
             ? 1
             : std::min(100'000, int(shortest_sample / std::max(once, 1e-9)) + 1);
}

void print(const Row& r) {
  std::printf("%-22s %-12s %10.3f us  [%.3f, %.3f]", r.name.c_str(), r.size.c_str(),
              r.seconds * 1e6, r.spread_low * 1e6, r.spread_high * 1e6);
  if (r.reference_seconds > 0)
    std::printf("  reference %10.3f us  ratio %.2f", r.reference_seconds * 1e6, r.ratio);
  if (r.bytes > 0) std::printf("  %.4g B  %.2f GB/s", r.bytes, r.bytes / r.seconds * 1e-9);
  if (r.flops > 0) std::printf("  %.4g flop  %.2f GFLOP/s", r.flops, r.flops / r.seconds * 1e-9);
  if (r.items > 0) std::printf("  %.1f M/s", r.items / r.seconds * 1e-6);
  if (r.ceiling > 0)
    std::printf("  ceiling %.2f G/s  share %.0f %%", r.ceiling * 1e-9, r.share_of_ceiling * 100);
  std::printf("\n");
  std::fflush(stdout);
}
}  // namespace

void Report::run(const Work& work) {
  int mine = repeats_for(work.quern), theirs = work.reference ? repeats_for(work.reference) : 0;
  std::vector<double> quern, reference, ratio;
  for (int k = 0; k < pairs_; k++) {
    quern.push_back(timed(work.quern, mine));
    if (!work.reference) continue;
    reference.push_back(timed(work.reference, theirs));
    ratio.push_back(reference.back() / quern.back());
  }
  Row row;
  row.name = work.name;
  row.size = work.size;
  row.seconds = percentile(quern, 0.5);
  row.spread_low = percentile(quern, 0.1);
  row.spread_high = percentile(quern, 0.9);
  if (work.reference) {
    row.reference_seconds = percentile(reference, 0.5);
    row.ratio = percentile(ratio, 0.5);
  }
  row.bytes = work.bytes;
  row.flops = work.flops;
  row.ceiling = work.ceiling;
  row.items = work.items;
  if (row.ceiling > 0)
    row.share_of_ceiling = (row.bytes > 0 ? row.bytes : row.flops) / row.seconds / row.ceiling;
  add(row);
}

void Report::add(Row row) {
  row.device = device_.name();
  row.threads = threads();
  print(row);
  rows_.push_back(std::move(row));
}

double Report::bandwidth(double bytes) {
  for (auto [size, rate] : bandwidths_)
    if (size == bytes) return rate;
  size_t n = std::max<size_t>(1, size_t(bytes / 12));
  std::vector<float> a(n, 1.0f), b(n, 2.0f), c(n, 3.0f);
  auto triad = [&] { reference::triad(a.data(), b.data(), c.data(), 0.5f, n); };
  int repeats = repeats_for(triad);
  double best = 1e30;
  for (int k = 0; k < 9; k++) best = std::min(best, timed(triad, repeats));
  bandwidths_.push_back({bytes, 12.0 * double(n) / best});
  return bandwidths_.back().second;
}

double Report::flops_peak() {
  if (peak_ > 0) return peak_;
  constexpr int rounds = 200'000;
  double best = 1e30;
  for (int k = 0; k < 9; k++)
    best = std::min(best, timed([] { reference::fma_rounds(rounds); }, 1));
  return peak_ = reference::fma_flops(rounds) / best;
}

void Report::write_json(std::FILE* file) const {
  std::fprintf(file, "[\n");
  for (size_t k = 0; k < rows_.size(); k++) {
    const Row& r = rows_[k];
    std::fprintf(
        file,
        "  {\"name\": \"%s\", \"size\": \"%s\", \"device\": \"%s\", \"threads\": %d, "
        "\"seconds\": %.9g, \"seconds_p10\": %.9g, \"seconds_p90\": %.9g, "
        "\"reference_seconds\": %.9g, \"ratio\": %.4g, \"bytes\": %.17g, \"flops\": %.17g, "
        "\"items\": %.17g, "
        "\"ceiling\": %.6g, \"share_of_ceiling\": %.4g}%s\n",
        r.name.c_str(), r.size.c_str(), r.device.c_str(), r.threads, r.seconds, r.spread_low,
        r.spread_high, r.reference_seconds, r.ratio, r.bytes, r.flops, r.items, r.ceiling,
        r.share_of_ceiling, k + 1 < rows_.size() ? "," : "");
  }
  std::fprintf(file, "]\n");
}

}  // namespace bench
