// The algorithms on fields against hand-written C++ and std::stable_sort.
#include <quern/algorithms.h>
#include <quern/host.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "bench/algorithms_reference.h"
#include "bench/harness.h"
#include "bench/pages.h"
#include "bench/reference.h"

namespace bench {
namespace qn = quern;
using namespace qn::lang;

namespace {

std::string power(size_t n) { return "2^" + std::to_string(int(std::log2(double(n)))); }

/// A row of the `bytes` that must move for n elements.
void row(Report& report, const char* name, size_t n, double bytes, std::function<void()> quern,
         std::function<void()> reference) {
  report.run({name, power(n), bytes, 0,
              [&] {
                quern();
                report.complete();
              },
              reference, report.bandwidth(bytes), double(n)});
}

Array<float> random_floats(size_t n) {
  std::mt19937 random(1);
  Array<float> out(n);
  for (float& v : out) v = float(int32_t(random())) * 0x1p-31f;
  return out;
}

void reductions(Report& report, size_t n) {
  const Array<float> a = random_floats(n), b(a.rbegin(), a.rend());
  qn::Field<float> x{report.device(), {n}}, y{report.device(), {n}};
  x.copy_from(a);
  y.copy_from(b);
  const double bytes = 4.0 * double(n);
  volatile double sink = 0;
  auto reduction = [&](const char* name, double moved, auto quern, auto reference) {
    row(
        report, name, n, moved, [&] { sink = double(quern()); },
        [&] { sink = double(reference()); });
  };
  reduction(
      "sum", bytes, [&] { return float(qn::sum(x)); }, [&] { return reference::sum(a.data(), n); });
  reduction(
      "sum<double>", bytes, [&] { return double(qn::sum<double>(x)); },
      [&] { return reference::sum(a.data(), n); });
  reduction(
      "sum, deterministic", bytes, [&] { return float(qn::sum(x, {.deterministic = true})); },
      [&] { return reference::sum(a.data(), n); });
  reduction(
      "min", bytes, [&] { return float(qn::min(x)); },
      [&] { return reference::least(a.data(), n); });
  reduction(
      "dot", 2 * bytes, [&] { return float(qn::dot(x, y)); },
      [&] { return reference::dot(a.data(), b.data(), n); });
  reduction(
      "argmin", bytes, [&] { return int64_t(qn::argmin(x)); },
      [&] { return reference::least_index(a.data(), n); });
  reduction(
      "reduce, max", bytes,
      [&] { return float(qn::reduce(x, -1.0f, [](auto p, auto q) { return max(p, q); })); },
      [&] { return reference::least(a.data(), n); });
}

template <class T>
void scan(Report& report, const char* name, size_t n) {
  Array<T> a(n), b(n);
  for (size_t i = 0; i < n; i++) a[i] = T(i * 7919 % 5);
  qn::Field<T> x{report.device(), {n}}, y{report.device(), {n}};
  x.copy_from(a);
  row(
      report, name, n, 2.0 * sizeof(T) * double(n), [&] { qn::inclusive_scan(x, y); },
      [&] { reference::inclusive_scan(a.data(), b.data(), n); });
}

void kept(Report& report, size_t n) {
  const Array<float> a = random_floats(n);
  Array<float> b(n);
  qn::Field<float> x{report.device(), {n}}, y{report.device(), {n}};
  x.copy_from(a);
  row(
      report, "compact, half", n, 6.0 * double(n),
      [&] { qn::compact(x, [](auto v) { return v > 0; }, y); },
      [&] { reference::compact(a.data(), b.data(), n); });
}

/// Library calls one after another of which nothing is read: their temporaries cost no wait.
void calls_without_reads(Report& report, size_t n) {
  constexpr int calls = 1000;
  const Array<float> a = random_floats(n);
  Array<float> b(n);
  qn::Field<float> x{report.device(), {n}}, y{report.device(), {n}};
  x.copy_from(a);
  volatile float sink = 0;
  row(
      report, "1,000 scans and sums", n, calls / 2 * 12.0 * double(n),
      [&] {
        for (int k = 0; k < calls / 2; k++) {
          qn::inclusive_scan(x, y);
          qn::sum(y);
        }
      },
      [&] {
        for (int k = 0; k < calls / 2; k++) {
          reference::inclusive_scan(a.data(), b.data(), n);
          sink = reference::sum(b.data(), n);
        }
      });
}

void histograms(Report& report, size_t n) {
  std::mt19937 random(1);
  Array<uint8_t> a(n);
  std::vector<uint32_t> b(4096);
  qn::Field<uint8_t> x{report.device(), {n}};
  qn::Field<uint32_t> bins{report.device(), {256}}, more{report.device(), {4096}};
  auto measure = [&](const char* name) {
    x.copy_from(a);
    row(
        report, name, n, double(n), [&] { qn::histogram(x, bins); },
        [&] { reference::histogram(a.data(), b.data(), n); });
  };
  for (uint8_t& v : a) v = uint8_t(random());
  measure("histogram, random");
  std::fill(a.begin(), a.end(), uint8_t(7));
  measure("histogram, constant");

  const Array<float> f = random_floats(n / 4);
  qn::Field<float> y{report.device(), {n / 4}};
  y.copy_from(f);
  for (auto& [name, to] :
       {std::pair("histogram of floats", bins), std::pair("histogram, 4096", more)})
    row(
        report, name, n / 4, double(n), [&] { qn::histogram(y, to, -1.0f, 1.0f); },
        [&] { reference::histogram(f.data(), b.data(), size_t(to.size()), -1.0f, 1.0f, n / 4); });
}

/// Histograms as a kernel of the user's own: 256 bins, each value an atomic update.
void kernel_histograms(Report& report, size_t n) {
  std::mt19937 random(1);
  Array<uint32_t> a(n);
  std::vector<uint32_t> b(256);
  qn::Field<uint32_t> x{report.device(), {n}}, bins{report.device(), {256}};
  qn::Kernel count = [&] {
    for (auto k : bins) bins[k] = 0u;
    for (auto i : x) bins[cast<int>(x[i])] += 1u;
  };
  auto measure = [&](const char* name, auto value) {
    for (uint32_t& v : a) v = value();
    x.copy_from(a);
    row(report, name, n, 4.0 * double(n), count,
        [&] { reference::histogram(a.data(), b.data(), n); });
    reference::histogram(a.data(), b.data(), n);
    if (qn::to_vector(bins) != b) throw qn::Error(std::string(name) + " and its reference differ");
  };
  auto uniform = [&] { return uint32_t(random()) >> 24; };
  measure("kernel hist., uniform", uniform);
  measure("kernel hist., skewed", [&] { return uniform() * uniform() * uniform() >> 16; });
  measure("kernel hist., constant", [] { return 7u; });
}

/// Sorting the same random keys again and again: copying them back is part of both sides.
void sorts(Report& report, size_t n) {
  std::mt19937 random(1);
  Array<uint32_t> keys(n), a(n), b(n), c(n), d(n);
  for (uint32_t& k : keys) k = uint32_t(random());
  qn::Field<uint32_t> from{report.device(), {n}}, x{report.device(), {n}};
  qn::Field<uint32_t> v{report.device(), {n}};
  qn::Field<float> f{report.device(), {n}};
  from.copy_from(keys);
  qn::Kernel restart = [&] {
    for (auto i : x) x[i] = from[i];
  };
  qn::Kernel restart_floats = [&] {
    for (auto i : f) f[i] = bitcast<float>(from[i]);
  };
  auto refill = [&] {
    reference::copy(reinterpret_cast<const float*>(keys.data()), reinterpret_cast<float*>(a.data()),
                    n);
  };
  // A pass reads all keys twice and writes them once.
  const double bytes = 4 * 12.0 * double(n);
  row(
      report, "sort", n, bytes, [&] { restart(), qn::sort(x); },
      [&] { refill(), reference::radix_sort(a.data(), b.data(), nullptr, nullptr, n); });
  row(
      report, "sort, stable_sort", n, bytes, [&] { restart(), qn::sort(x); },
      [&] { refill(), std::stable_sort(a.begin(), a.end()); });
  row(
      report, "sort of floats", n, bytes, [&] { restart_floats(), qn::sort(f); },
      [&] { refill(), reference::radix_sort(a.data(), b.data(), nullptr, nullptr, n); });
  row(
      report, "sort_by_key", n, bytes + 4 * 8.0 * double(n),
      [&] { restart(), qn::sort_by_key(x, v); },
      [&] { refill(), reference::radix_sort(a.data(), b.data(), c.data(), d.data(), n); });
}

}  // namespace

void algorithms(Report& report) {
  for (size_t n : {size_t(1) << 14, size_t(1) << 20, size_t(1) << 26}) {
    reductions(report, n);
    scan<float>(report, "scan of floats", n);
    scan<int32_t>(report, "scan of integers", n);
    kept(report, n);
    histograms(report, n);
  }
  for (size_t n : {size_t(1) << 12, size_t(1) << 16}) calls_without_reads(report, n);
  kernel_histograms(report, size_t(1) << 24);
  for (size_t n : {size_t(1) << 16, size_t(1) << 20, size_t(1) << 24}) sorts(report, n);
}

}  // namespace bench
