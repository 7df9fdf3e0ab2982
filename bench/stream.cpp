// Kernels that only move memory: copy, fill, saxpy, triad, the five-point stencil, and a sum.
#include <memory>
#include <string>
#include <vector>

#include <quern/interop.h>

#include "bench/harness.h"
#include "bench/pages.h"
#include "bench/reference.h"

namespace bench {
namespace qn = quern;
using namespace qn::lang;

namespace {
std::string size_text(double bytes) {
  const char* unit[] = {"B", "KB", "MB", "GB"};
  int k = 0;
  for (; bytes >= 1024 && k < 3; k++) bytes /= 1024;
  return std::to_string(int(bytes)) + " " + unit[k];
}

void arrays(Report& report, size_t n) {
  qn::Device& device = report.device();
  qn::Field<float> x{device, {int64_t(n)}}, y{device, {int64_t(n)}}, z{device, {int64_t(n)}};
  Array<float> a(n, 1.0f), b(n, 2.0f), c(n, 3.0f);
  x.fill(1.0f);
  y.fill(2.0f);
  z.fill(3.0f);
  auto add = [&](const char* name, double per_element, auto quern, auto reference, auto on_cuda) {
    double bytes = per_element * double(n);
    report.run({name, size_text(bytes), bytes, 0,
                [&] {
                  quern();
                  report.complete();
                },
                reference, report.bandwidth(bytes), 0, on_cuda});
  };
  auto at = [](const qn::Field<float>& f) { return qn::interop::address(f); };
  using cuda::Functions, cuda::Stream;
  qn::Kernel fill = [&](F32 v) {
    for (auto i : y) y[i] = v;
  };
  add(
      "fill", 4, [&] { fill(2.0f); }, [&] { reference::fill(b.data(), 2.0f, n); },
      [&](const Functions& f, Stream s) { f.fill(at(y), 2.0f, n, s); });
  qn::Kernel copy = [&] {
    for (auto i : y) y[i] = x[i];
  };
  add(
      "copy", 8, [&] { copy(); }, [&] { reference::copy(a.data(), b.data(), n); },
      [&](const Functions& f, Stream s) { f.copy(at(x), at(y), n, s); });
  qn::Kernel saxpy = [&](F32 s) {
    for (auto i : y) y[i] = s * x[i] + y[i];
  };
  add(
      "saxpy", 12, [&] { saxpy(1e-6f); }, [&] { reference::saxpy(1e-6f, a.data(), b.data(), n); },
      [&](const Functions& f, Stream s) { f.saxpy(1e-6f, at(x), at(y), n, s); });
  qn::Kernel triad = [&](F32 s) {
    for (auto i : z) z[i] = x[i] + s * y[i];
  };
  add(
      "triad", 12, [&] { triad(0.5f); },
      [&] { reference::triad(c.data(), a.data(), b.data(), 0.5f, n); },
      [&](const Functions& f, Stream s) { f.triad(at(z), at(x), at(y), 0.5f, n, s); });
  qn::Kernel sum = [&] {
    Var<float> s = 0;
    for (auto i : x) s += x[i];
    return s;
  };
  volatile double sink = 0;
  add(
      "reduce_sum", 4, [&] { sink = float(sum()); }, [&] { sink = reference::sum(a.data(), n); },
      [&](const Functions& f, Stream s) { sink = f.sum(at(x), n, s); });
  qn::Field<float> total{device, {1}};
  qn::Kernel add_up = [&] {
    for (auto i : x) total[0] += x[i];
  };
  add(
      "atomic_sum", 4, [&] { add_up(); }, [&] { sink = reference::sum(a.data(), n); },
      [&](const Functions& f, Stream s) { sink = f.sum(at(x), n, s); });
}

void stencil(Report& report, int n) {
  qn::Device& device = report.device();
  qn::Field<float, 2> u{device, {n, n}}, v{device, {n, n}};
  Array<float> a(size_t(n) * n, 1.0f), b(size_t(n) * n);
  u.fill(1.0f);
  qn::Kernel step = [&] {
    for (auto [i, j] : grid(v.dim(0) - 2, v.dim(1) - 2))
      v(i + 1, j + 1) = 0.25f * (u(i, j + 1) + u(i + 2, j + 1) + u(i + 1, j) + u(i + 1, j + 2));
  };
  double bytes = 8.0 * n * n;
  report.run({"stencil5", std::to_string(n) + "^2", bytes, 0,
              [&] {
                step();
                report.complete();
              },
              [&] { reference::stencil(a.data(), b.data(), n); }, report.bandwidth(bytes), 0,
              [&](const cuda::Functions& f, cuda::Stream s) {
                f.stencil(qn::interop::address(u), qn::interop::address(v), n, s);
              }});
}
}  // namespace

void stream(Report& report) {
  for (size_t bytes : {16u << 10, 1u << 20, 16u << 20, 256u << 20}) arrays(report, bytes / 4 / 3);
  for (int n : {256, 1024, 4096}) stencil(report, n);
  if (!report.on_gpu()) return;
  arrays(report, (1u << 30) / 4 / 3);  // beyond the largest caches
  stencil(report, 16384);
}

}  // namespace bench
