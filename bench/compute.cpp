// Arithmetic-bound kernels: N-body, Mandelbrot (divergent), Black–Scholes (transcendental).
#include <cmath>
#include <vector>

#include <quern/interop.h>

#include "bench/harness.h"
#include "bench/reference.h"

namespace bench {
namespace qn = quern;
using namespace qn::lang;

namespace {
/// 20 flops an interaction, the count common in the literature (Nyland, Harris & Prins, GPU Gems
/// 3).
constexpr double flops_per_interaction = 20;

void nbody(Report& report, int n) {
  qn::Device& device = report.device();
  std::vector<float> host[6];
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
}

void black_scholes(Report& report, int n) {
  qn::Device& device = report.device();
  std::vector<float> s(n), k(n), t(n), c(n), p(n);
  for (int i = 0; i < n; i++) {
    s[i] = 50 + 50 * float(i % 1000) / 1000;
    k[i] = 60 + 40 * float(i % 777) / 777;
    t[i] = 0.1f + 2 * float(i % 333) / 333;
  }
  qn::Field<float> spot{device, {n}}, strike{device, {n}}, years{device, {n}}, call{device, {n}},
      put{device, {n}};
  spot.copy_from(s.data(), n);
  strike.copy_from(k.data(), n);
  years.copy_from(t.data(), n);
  auto normal = [](F32 x) {
    auto q = 1 / (1 + 0.2316419f * abs(x));
    auto poly =
        q * (0.319381530f +
             q * (-0.356563782f + q * (1.781477937f + q * (-1.821255978f + q * 1.330274429f))));
    auto tail = 0.39894228f * exp(-0.5f * x * x) * poly;
    return select(x >= 0, 1 - tail, tail);
  };
  qn::Kernel price = [&](F32 rate, F32 sigma) {
    for (auto i : spot) {
      auto root = sqrt(years[i]);
      auto d1 =
          (log(spot[i] / strike[i]) + (rate + 0.5f * sigma * sigma) * years[i]) / (sigma * root);
      auto d2 = d1 - sigma * root;
      auto discounted = strike[i] * exp(-rate * years[i]);
      auto n1 = normal(d1), n2 = normal(d2);
      call[i] = spot[i] * n1 - discounted * n2;
      put[i] = discounted * (1 - n2) - spot[i] * (1 - n1);
    }
  };
  double bytes = 20.0 * n;
  report.run({"black_scholes", std::to_string(n), bytes, 0,
              [&] {
                price(0.02f, 0.3f);
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
  black_scholes(report, 1 << 22);
}

}  // namespace bench
