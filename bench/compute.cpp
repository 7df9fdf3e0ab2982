// Arithmetic-bound kernels: N-body, Mandelbrot and Julia sets (divergent), Black–Scholes
// (transcendental).
#include "bench/compute.h"

#include <cmath>
#include <vector>

#include <quern/host.h>
#include <quern/interop.h>

#include "bench/harness.h"
#include "bench/pages.h"
#include "bench/reference.h"

namespace bench {
namespace qn = quern;
using namespace qn::lang;

/// 20 flops an interaction, the count common in the literature (Nyland, Harris & Prins, GPU Gems
/// 3).
constexpr double flops_per_interaction = 20;

void nbody(Report& report, int n) {
  qn::Device& device = report.device();
  Array<float> host[6];
  for (int c = 0; c < 6; c++)
    for (int i = 0; i < n; i++) host[c].push_back(std::sin(float(i * (c + 1))));
  qn::Field<float> x{device, {n}}, y{device, {n}}, z{device, {n}}, vx{device, {n}}, vy{device, {n}},
      vz{device, {n}};
  x.copy_from(host[0].data(), n);
  y.copy_from(host[1].data(), n);
  z.copy_from(host[2].data(), n);
  qn::Kernel kick = [&](F32 dt) {
    for (auto i : x) {
      auto xi = x[i], yi = y[i], zi = z[i];
      Var<float> ax = 0, ay = 0, az = 0;
      for (auto j : range(x.dim(0))) {
        auto dx = x[j] - xi, dy = y[j] - yi, dz = z[j] - zi;
        auto inv = rsqrt(dx * dx + dy * dy + dz * dz + 1e-9f);
        auto w = inv * inv * inv;
        ax += dx * w;
        ay += dy * w;
        az += dz * w;
      }
      vx[i] = vx[i] + dt * ax;
      vy[i] = vy[i] + dt * ay;
      vz[i] = vz[i] + dt * az;
    }
  };
  report.run({"nbody", std::to_string(n), 0, flops_per_interaction * n * double(n),
              [&] {
                kick(0.01f);
                report.complete();
              },
              [&] {
                reference::nbody(host[0].data(), host[1].data(), host[2].data(), host[3].data(),
                                 host[4].data(), host[5].data(), 0.01f, n);
              },
              report.flops_peak(), 0,
              [&](const cuda::Functions& f, cuda::Stream s) {
                auto at = [](const qn::Field<float>& c) { return qn::interop::address(c); };
                f.nbody(at(x), at(y), at(z), at(vx), at(vy), at(vz), 0.01f, n, s);
              }});
}

namespace {
/// Rounds of two versions may differ at a few points: where |z| comes to 2 but for rounding, and
/// near the set's edge, where the map doubles a difference in rounding again and again (0.7 % of the
/// points of Julia's, seen with FMA on one side only).
void expect_mostly_equal(const char* name, const qn::Field<int, 2>& mine,
                         const std::vector<int>& theirs) {
  const std::vector<int> found = qn::to_vector(mine);
  size_t apart = 0;
  for (size_t k = 0; k < found.size(); k++) apart += found[k] != theirs[k];
  if (apart * 50 > found.size())
    throw qn::Error(std::string(name) + " and its reference differ at " + std::to_string(apart) +
                    " points");
}

}  // namespace

void mandelbrot(Report& report, int n, int rounds) {
  qn::Device& device = report.device();
  qn::Field<int, 2> count{device, {n, n}};
  std::vector<int> host(size_t(n) * n);
  qn::Kernel draw = [&](I32 limit) {
    for (auto [i, j] : count) {
      auto cr = -2.0f + 3.0f * cast<float>(j) / float(n),
           ci = -1.5f + 3.0f * cast<float>(i) / float(n);
      Var<float> zr = 0, zi = 0;
      Var<int> k = 0;
      While(k < limit && zr * zr + zi * zi < 4.0f) {
        auto t = zr * zr - zi * zi + cr;
        zi = 2.0f * zr * zi + ci;
        zr = t;
        k += 1;
      }
      count(i, j) = k;
    }
  };
  reference::mandelbrot(host.data(), n, rounds);
  double iterations = 0;
  for (int k : host) iterations += k;
  report.run({"mandelbrot", std::to_string(n) + "^2", 0, 10 * iterations,
              [&] {
                draw(rounds);
                report.complete();
              },
              [&] { reference::mandelbrot(host.data(), n, rounds); }, report.flops_peak()});
  expect_mostly_equal("mandelbrot", count, host);
}

namespace {
void julia(Report& report, int n, int rounds) {
  qn::Device& device = report.device();
  qn::Field<int, 2> count{device, {n, n}};
  std::vector<int> host(size_t(n) * n);
  const float re = -0.8f, im = 0.156f;
  qn::Kernel draw = [&](I32 limit) {
    for (auto [i, j] : count) {
      Var<float> zr = -1.5f + 3.0f * cast<float>(j) / float(n),
                 zi = -1.5f + 3.0f * cast<float>(i) / float(n);
      Var<int> k = 0;
      While(k < limit && zr * zr + zi * zi < 4.0f) {
        auto t = zr * zr - zi * zi + re;
        zi = 2.0f * zr * zi + im;
        zr = t;
        k += 1;
      }
      count(i, j) = k;
    }
  };
  reference::julia(host.data(), n, re, im, rounds);
  double iterations = 0;
  for (int k : host) iterations += k;
  report.run({"julia", std::to_string(n) + "^2", 0, 10 * iterations,
              [&] {
                draw(rounds);
                report.complete();
              },
              [&] { reference::julia(host.data(), n, re, im, rounds); }, report.flops_peak()});
  expect_mostly_equal("julia", count, host);
}

template <class T>
void black_scholes(Report& report, const char* name, int n) {
  qn::Device& device = report.device();
  using Number = qn::Val<T>;
  Array<T> s(n), k(n), t(n), c(n), p(n);
  for (int i = 0; i < n; i++) {
    s[i] = 50 + 50 * T(i % 1000) / 1000;
    k[i] = 60 + 40 * T(i % 777) / 777;
    t[i] = T(0.1) + 2 * T(i % 333) / 333;
  }
  qn::Field<T> spot{device, {n}}, strike{device, {n}}, years{device, {n}}, call{device, {n}},
      put{device, {n}};
  spot.copy_from(s.data(), n);
  strike.copy_from(k.data(), n);
  years.copy_from(t.data(), n);
  auto normal = [](Number x) {
    auto q = 1 / (1 + T(0.2316419) * abs(x));
    auto poly =
        q *
        (T(0.319381530) +
         q * (T(-0.356563782) + q * (T(1.781477937) + q * (T(-1.821255978) + q * T(1.330274429)))));
    auto tail = T(0.3989422804014327) * exp(T(-0.5) * x * x) * poly;
    return select(x >= 0, 1 - tail, tail);
  };
  qn::Kernel price = [&](Number rate, Number sigma) {
    for (auto i : spot) {
      auto root = sqrt(years[i]);
      auto d1 =
          (log(spot[i] / strike[i]) + (rate + T(0.5) * sigma * sigma) * years[i]) / (sigma * root);
      auto d2 = d1 - sigma * root;
      auto discounted = strike[i] * exp(-rate * years[i]);
      auto n1 = normal(d1), n2 = normal(d2);
      call[i] = spot[i] * n1 - discounted * n2;
      put[i] = discounted * (1 - n2) - spot[i] * (1 - n1);
    }
  };
  const double bytes = 5.0 * sizeof(T) * n;
  report.run({name, std::to_string(n), bytes, 0,
              [&] {
                price(T(0.02), T(0.3));
                report.complete();
              },
              [&] {
                reference::black_scholes(s.data(), k.data(), t.data(), c.data(), p.data(),
                                         size_t(n));
              },
              report.bandwidth(bytes)});
}
}  // namespace

void compute(Report& report) {
  nbody(report, 16384);
  if (report.on_gpu()) nbody(report, 1 << 18);  // enough of them to fill the largest GPUs
  mandelbrot(report, 1000, 200);
  julia(report, 1000, 200);
  black_scholes<float>(report, "black_scholes", 1 << 22);
  black_scholes<double>(report, "black_scholes_f64", 1 << 21);
}

}  // namespace bench
