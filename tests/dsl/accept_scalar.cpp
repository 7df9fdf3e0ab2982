// The scalar kernels of the surface, as users write them: they compile without a warning and run.
#include <quern/quern.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "quern/host.h"
#include "tests/catch.h"

namespace qn = quern;
using namespace qn::lang;

TEST_CASE("accept: saxpy") {
  qn::Device device;
  const int n = 1000;
  qn::Field<float> x{device, {n}}, y{device, {n}};
  std::vector<float> hx(n), hy(n);
  for (int i = 0; i < n; i++) hx[size_t(i)] = float(i), hy[size_t(i)] = 1;
  x.copy_from(hx);
  y.copy_from(hy);
  qn::Kernel saxpy = [&](F32 a) {
    for (auto i : y) y[i] = a * x[i] + y[i];
  };
  saxpy(2.0f);
  auto out = qn::to_vector(y);
  for (int i = 0; i < n; i++) REQUIRE(out[size_t(i)] == 2.0f * float(i) + 1.0f);
}

TEST_CASE("accept: stencil whose neighbours outside count as zero") {
  qn::Device device;
  const int n = 6, m = 7;
  qn::Field<float, 2> u{device, {n, m}}, v{device, {n, m}};
  u.fill(1);
  qn::Kernel stencil = [](qn::Field<float, 2> a, qn::Field<float, 2> b) {
    for (auto [i, j] : b) {
      Var<float> s = 0.0f;
      If(i > 0 && a(i - 1, j) > 0) s += a(i - 1, j);
      If(i < a.dim(0) - 1 && a(i + 1, j) > 0) s += a(i + 1, j);
      If(j == 0 || j == a.dim(1) - 1) { b(i, j) = 0; }
      else If(i == 0) {
        b(i, j) = 1;
      }
      else {
        b(i, j) = 0.25 * (s + a(i, j - 1) + a(i, j + 1));
      }
    }
  };
  stencil(u, v);
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++) {
      float want = j == 0 || j == m - 1 ? 0.0f : i == 0 ? 1.0f : i == n - 1 ? 0.75f : 1.0f;
      REQUIRE(v.at(i, j) == want);
    }
}

TEST_CASE("accept: julia set") {
  qn::Device device;
  qn::Field<int, 2> image{device, {16, 24}};
  qn::Kernel julia = [](qn::Field<int, 2> out) {
    for (auto [i, j] : out) {
      Var<float> x = i * 0.125f - 1, y = j / 12.0f - 1.0f;
      Var<int> n = 0;
      While(n < 50) {
        auto t = x * x - y * y - 0.8f;
        y = 2 * x * y + 0.125f;
        x = t;
        n += 1;
        If(x * x + y * y > 16) { Break(); }
      }
      out(i, j) = n;
    }
  };
  julia(image);
  for (int i = 0; i < 16; i++)
    for (int j = 0; j < 24; j++) {
      int n = image.at(i, j);
      REQUIRE(n >= 1);
      REQUIRE(n <= 50);
    }
}

TEST_CASE("accept: an iteration of conjugate gradients, reductions handed to the host") {
  qn::Device device;
  const int n = 32;
  qn::Field<float, 2> r{device, {n, n}}, p{device, {n, n}}, Ap{device, {n, n}}, sol{device, {n, n}};
  p.fill(1);
  r.fill(2);
  auto at = [&](qn::Field<float, 2> f, I32 i, I32 j) {
    return select(i >= 0 && i < n && j >= 0 && j < n, f(clamp(i, 0, n - 1), clamp(j, 0, n - 1)),
                  0.0f);
  };
  qn::Kernel apply = [&] {
    Var<float> pAp = 0;
    for (auto [i, j] : p) {
      Ap(i, j) =
          4 * p(i, j) - at(p, i - 1, j) - at(p, i + 1, j) - at(p, i, j - 1) - at(p, i, j + 1);
      pAp += p(i, j) * Ap(i, j);
    }
    return pAp;
  };
  qn::Kernel update = [&](F32 alpha) {
    Var<double> rr = 0.0;
    Var<float> worst = 0;
    for (auto I : r) {
      sol[I] += alpha * p[I];
      r[I] += -alpha * Ap[I];
      rr += r[I] * r[I];
      atomic_max(worst, abs(r[I]));
    }
    return rr;
  };
  float pAp = apply();
  REQUIRE(pAp == float(4 * n));  // of a field of ones: the edges only
  double rr = update(0.5f);
  // Inside Ap is 0, on the edges 1, in the corners 2.
  double want = 4.0 * (n - 2) * (n - 2) + 2.25 * 4 * (n - 2) + 1.0 * 4;
  REQUIRE(rr == want);
  REQUIRE(sol.at(3, 4) == 0.5f);
}

TEST_CASE("accept: sobel on a u8 image") {
  qn::Device device;
  const int n = 9, m = 8;
  qn::Field<uint8_t, 2> in{device, {n, m}}, out{device, {n, m}};
  std::vector<uint8_t> ramp(size_t(n * m));
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++) ramp[size_t(i * m + j)] = uint8_t(5 * i + (i == 4 ? 100 : 0));
  in.copy_from(ramp);
  qn::Kernel sobel = [](qn::Field<uint8_t, 2> a, qn::Field<uint8_t, 2> b) {
    for (auto [i, j] : a) {
      If(i == 0 || j == 0 || i == a.dim(0) - 1 || j == a.dim(1) - 1) {
        b(i, j) = 0;
        Continue();
      }
      auto gx = a(i + 1, j - 1) + 2 * a(i + 1, j) + a(i + 1, j + 1) - a(i - 1, j - 1) -
                2 * a(i - 1, j) - a(i - 1, j + 1);
      auto gy = a(i - 1, j + 1) + 2 * a(i, j + 1) + a(i + 1, j + 1) - a(i - 1, j - 1) -
                2 * a(i, j - 1) - a(i + 1, j - 1);
      auto mag = sqrt(cast<float>(gx * gx + gy * gy));
      b(i, j) = cast<uint8_t>(min(mag, 255));
    }
  };
  sobel(in, out);
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++) {
      bool edge = i == 0 || j == 0 || i == n - 1 || j == m - 1;
      int gx = edge ? 0 : 4 * (ramp[size_t((i + 1) * m)] - ramp[size_t((i - 1) * m)]);
      REQUIRE(int(out.at(i, j)) == std::min(255, std::abs(gx)));
    }
}

TEST_CASE("accept: game of life") {
  qn::Device device;
  qn::Field<int, 2> a{device, {8, 8}}, b{device, {8, 8}};
  for (int j = 2; j < 5; j++) a.set(3, j, 1);  // a blinker
  qn::Kernel life = [](qn::Field<int, 2> from, qn::Field<int, 2> to) {
    for (auto [i, j] : from) {
      Var<int> alive = 0;
      for (int di = -1; di <= 1; di++)
        for (int dj = -1; dj <= 1; dj++)
          if (di || dj)
            alive +=
                from((i + di + from.dim(0)) % from.dim(0), (j + dj + from.dim(1)) % from.dim(1));
      to(i, j) = select(alive == 3 || (alive == 2 && from(i, j) == 1), 1, 0);
    }
  };
  life(a, b);
  for (int i = 0; i < 8; i++)
    for (int j = 0; j < 8; j++) REQUIRE(b.at(i, j) == int(j == 3 && i >= 2 && i <= 4));
}

TEST_CASE("accept: functions: one that inlines on host and device, one outlined") {
  qn::Device device;
  auto sqr = [](auto v) { return v * v; };
  qn::Func smoothstep = [](F32 e0, F32 e1, F32 v) {
    auto t = clamp((v - e0) / (e1 - e0), 0, 1);
    return t * t * (3 - 2 * t);
  };
  qn::Field<float> f{device, {10}};
  qn::Field<int> g{device, {10}};
  f.fill(0.5f);
  qn::Kernel use = [=](qn::Field<float> a, qn::Field<int> b) {
    for (auto i : a) {
      a[i] = smoothstep(0, 1, a[i]) + sqr(a[i]);
      b[i] = i % 3;
    }
    for (auto i : serial(range(10))) {
      check(a[i] >= 0, "negative at {}", i);
      a[i] += random<float>();
    }
  };
  use(f, g);
  for (int i = 0; i < 10; i++) {
    REQUIRE(g.at(i) == i % 3);
    REQUIRE(f.at(i) >= 0.75f);
    REQUIRE(f.at(i) < 1.75f);
  }
  REQUIRE(sqr(3.0) == 9.0);
}

TEST_CASE("accept: control flow without macros") {
  qn::Device device;
  qn::Field<float> f{device, {4}};
  f.set(1, 5.0f);
  qn::Kernel bare = [](qn::Field<float> a) {
    for (auto i : a) {
      for (auto _ : when(a[i] > 0)) a[i] = 1;
      for (auto _ : otherwise()) {
        Var<int> k = 0;
        for (auto _w : repeat_while([&] { return k < 3; })) k += 1;
        a[i] = k;
      }
    }
  };
  bare(f);
  REQUIRE(f.at(0) == 3.0f);
  REQUIRE(f.at(1) == 1.0f);
}
