// Every construct of the scalar language on every device, against plain C++.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

#include "tests/end_to_end/devices.h"
#include "tests/end_to_end/philox.h"

using namespace qn::lang;

namespace {
std::vector<int> iota(int n, int first = 0) {
  std::vector<int> v(static_cast<size_t>(n));
  std::iota(v.begin(), v.end(), first);
  return v;
}
template <class T>
void fill_from(const qn::Field<T>& f, const std::vector<T>& v) {
  f.copy_from(v.data(), int64_t(v.size()));
}
}  // namespace

TEST_CASE("saxpy on captured fields, one compile for all sizes") {
  on_every_device([](qn::Device& device) {
    qn::Kernel saxpy = [](qn::Field<float> x, qn::Field<float> y, F32 a) {
      for (auto i : y) y[i] = a * x[i] + y[i];
    };
    for (int n : {0, 1, 2, 63, 64, 65, 1000}) {
      qn::Field<float> x{device, {n}}, y{device, {n}};
      std::vector<float> hx, hy;
      for (int i = 0; i < n; i++) {
        hx.push_back(float(i) * 0.5f);
        hy.push_back(float(n - i));
      }
      fill_from(x, hx);
      fill_from(y, hy);
      saxpy(x, y, 2.0f);
      std::vector<float> out = qn::to_vector(y);
      for (int i = 0; i < n; i++) REQUIRE(out[size_t(i)] == 2.0f * hx[size_t(i)] + hy[size_t(i)]);
    }
  });
}

TEST_CASE("aliased arguments are right") {
  on_every_device([](qn::Device& device) {
    qn::Kernel axpy = [](qn::Field<float> x, qn::Field<float> y, F32 a) {
      for (auto i : y) {
        y[i] = a * x[i];
        y[i] = y[i] + x[i];
      }
    };
    qn::Field<float> x{device, {100}};
    x.fill(3.0f);
    axpy(x, x, 2.0f);  // x = 2·3 = 6, then 6 + 6
    for (float v : qn::to_vector(x)) REQUIRE(v == 12.0f);
    qn::Field<float> y{device, {100}};
    x.fill(3.0f);
    axpy(x, y, 2.0f);  // y = 6, then 6 + 3
    for (float v : qn::to_vector(y)) REQUIRE(v == 9.0f);
  });
}

TEST_CASE("branches, else-if chains and guards") {
  on_every_device([](qn::Device& device) {
    const int n = 200;
    qn::Field<int> x{device, {n}}, y{device, {n}};
    fill_from(x, iota(n, -100));
    qn::Kernel k = [&] {
      for (auto i : x) {
        If(x[i] < -50) { y[i] = 1; }
        else If(x[i] < 0) {
          If(x[i] % 2 == 0) y[i] = 2;
          else y[i] = 3;
        }
        else {
          y[i] = 4;
        }
        If(i > 0 && x[i - 1] == 10) y[i] = 5;
        If(i == 0 || x[i - 1] == 20) y[i] = 6;
      }
    };
    k();
    std::vector<int> out = qn::to_vector(y);
    for (int i = 0; i < n; i++) {
      int v = i - 100, want = v < -50 ? 1 : v < 0 ? (v % 2 == 0 ? 2 : 3) : 4;
      if (i > 0 && v - 1 == 10) want = 5;
      if (i == 0 || v - 1 == 20) want = 6;
      REQUIRE(out[size_t(i)] == want);
    }
  });
}

TEST_CASE("loops with break and continue at every depth") {
  on_every_device([](qn::Device& device) {
    const int n = 50;
    qn::Field<int> y{device, {n}};
    qn::Kernel k = [&] {
      for (auto i : y) {
        Var<int> sum = 0;
        for (auto a : range(10)) {
          If(a == 7) { Break(); }
          If(a % 3 == 1) { Continue(); }
          Var<int> b = 0;
          While(b < i) {
            b += 1;
            If(b == 5) Continue();
            If(b > 8) Break();
            sum += a * b;
          }
        }
        for (auto [p, q] : grid(4, 5)) {
          If(p * 5 + q > 13) Break();
          If(q == 2) Continue();
          sum += 1000 * p + q;
        }
        If(i % 2 == 0) Continue();
        y[i] = sum;
      }
    };
    k();
    std::vector<int> out = qn::to_vector(y);
    for (int i = 0; i < n; i++) {
      int sum = 0;
      for (int a = 0; a < 10; a++) {
        if (a == 7) break;
        if (a % 3 == 1) continue;
        int b = 0;
        while (b < i) {
          b++;
          if (b == 5) continue;
          if (b > 8) break;
          sum += a * b;
        }
      }
      for (int pq = 0; pq < 20; pq++) {
        if (pq > 13) break;
        if (pq % 5 == 2) continue;
        sum += 1000 * (pq / 5) + pq % 5;
      }
      REQUIRE(out[size_t(i)] == (i % 2 == 0 ? 0 : sum));
    }
  });
}

TEST_CASE("reductions of every operator, and several at once") {
  on_every_device([](qn::Device& device) {
    for (int n : {0, 1, 31, 32, 1000, 1025, 40000}) {
      qn::Field<int> x{device, {n}};
      std::vector<int> h;
      uint32_t seed = 12345;
      for (int i = 0; i < n; i++) h.push_back(int(seed = seed * 1664525u + 1013904223u) >> 8);
      fill_from(x, h);
      qn::Kernel k = [&] {
        Var<int> sum = 7, lo = 1 << 30, hi = -(1 << 30), ors = 0, ands = -1, xors = 0;
        Var<double> total = 0.5;
        for (auto i : x) {
          sum += x[i];
          atomic_min(lo, x[i]);
          atomic_max(hi, x[i]);
          atomic_or(ors, x[i]);
          atomic_and(ands, x[i]);
          atomic_xor(xors, x[i]);
          total += x[i];
        }
        return result(sum, lo, hi, ors, ands, xors, total);
      };
      auto [sum, lo, hi, ors, ands, xors, total] = k();
      uint32_t wsum = 7;
      int wlo = 1 << 30, whi = -(1 << 30), wor = 0, wand = -1, wxor = 0;
      double wtotal = 0.5;
      for (int v : h) {
        wsum += uint32_t(v);
        wlo = std::min(wlo, v), whi = std::max(whi, v);
        wor |= v, wand &= v, wxor ^= v;
        wtotal += v;  // exact: integers below 2^53
      }
      REQUIRE(int(sum) == int(wsum));
      REQUIRE(int(lo) == wlo);
      REQUIRE(int(hi) == whi);
      REQUIRE(int(ors) == wor);
      REQUIRE(int(ands) == wand);
      REQUIRE(int(xors) == wxor);
      REQUIRE(double(total) == wtotal);
    }
  });
}

TEST_CASE("kernel-level serial code, If, serial and While around parallel loops") {
  on_every_device([](qn::Device& device) {
    const int n = 64;
    qn::Field<int> x{device, {n}}, count{device, {1}};
    qn::Kernel k = [&](I32 rounds, I32 mode) {
      Var<int> total = 0;
      for (auto r : serial(range(rounds))) {
        for (auto i : x) x[i] = x[i] + r;
        total += 1;
      }
      If(mode == 1) {
        for (auto i : x) x[i] = -x[i];
      }
      else {
        for (auto i : x) x[i] = x[i] + 1000;
      }
      Var<int> left = 3;
      While(left > 0) {
        for (auto i : x) x[i] = x[i] * 2;
        left -= 1;
        total += 10;
      }
      count[0] = total;
      return total;
    };
    for (int mode : {0, 1}) {
      fill_from(x, iota(n));
      int total = k(5, mode);
      REQUIRE(total == 35);
      REQUIRE(count.at(0) == 35);
      std::vector<int> out = qn::to_vector(x);
      for (int i = 0; i < n; i++)
        REQUIRE(out[size_t(i)] == (mode == 1 ? -(i + 10) : i + 10 + 1000) * 8);
    }
  });
}

TEST_CASE("an early Return at kernel level skips the rest") {
  on_every_device([](qn::Device& device) {
    qn::Field<int> x{device, {10}};
    qn::Kernel k = [&](I32 stop) {
      If(stop == 1) { Return(-1); }
      for (auto i : x) x[i] = 5;
      If(stop == 2) { Return(-2); }
      for (auto i : x) x[i] = x[i] + 1;
      return I32(3);
    };
    REQUIRE(int(k(1)) == -1);
    REQUIRE(qn::to_vector(x) == std::vector<int>(10, 0));
    REQUIRE(int(k(2)) == -2);
    REQUIRE(qn::to_vector(x) == std::vector<int>(10, 5));
    REQUIRE(int(k(0)) == 3);
    REQUIRE(qn::to_vector(x) == std::vector<int>(10, 6));
  });
}

TEST_CASE("atomics from colliding iterations return the old value") {
  on_every_device([](qn::Device& device) {
    const int n = 5000;
    qn::Field<int> bin{device, {7}}, seen{device, {n}};
    qn::Field<uint64_t> wide{device, {1}};
    qn::Field<float> f{device, {1}};
    qn::Field<double> d{device, {1}};
    qn::Kernel k = [&] {
      for (auto i : range(n)) {
        auto old = atomic_add(bin[i % 7], 1);
        If(i % 7 == 0) seen[old] = 1;
        wide[0] += cast<uint64_t>(i);
        f[0] += 1.0f;
        d[0] += 0.5;
      }
    };
    k();
    std::vector<int> bins = qn::to_vector(bin), once = qn::to_vector(seen);
    for (int b = 0; b < 7; b++) REQUIRE(bins[size_t(b)] == n / 7 + (b < n % 7));
    for (int i = 0; i < n; i++) REQUIRE(once[size_t(i)] == (i < bins[0] ? 1 : 0));
    REQUIRE(wide.at(0) == uint64_t(n) * (n - 1) / 2);
    REQUIRE(f.at(0) == float(n));
    REQUIRE(d.at(0) == n * 0.5);
  });
}

TEST_CASE("small integer types wrap and saturate as the semantics say") {
  on_every_device([](qn::Device& device) {
    qn::Field<uint8_t> a{device, {256}}, b{device, {256}};
    qn::Field<int16_t> c{device, {256}};
    qn::Field<bool> even{device, {256}};
    auto body = [&] {
      for (auto i : a) {
        a[i] = cast<uint8_t>(i * 3);
        b[i] = cast<uint8_t>(cast<float>(i) * 2.0f - 100.0f);
        c[i] = cast<int16_t>(i * 300);
        even[i] = i % 2 == 0;
      }
    };
    qn::Kernel k{body, qn::Options{.checked = false}};
    k();
    auto va = qn::to_vector(a), vb = qn::to_vector(b);
    auto vc = qn::to_vector(c);
    for (int i = 0; i < 256; i++) {
      REQUIRE(va[size_t(i)] == uint8_t(i * 3));
      REQUIRE(vb[size_t(i)] == (i * 2 - 100 < 0 ? 0 : i * 2 - 100 > 255 ? 255 : i * 2 - 100));
      REQUIRE(vc[size_t(i)] == int16_t(i * 300));
      REQUIRE(even.at(i) == (i % 2 == 0));
    }
  });
}

TEST_CASE("fields of rank 0 to 4") {
  on_every_device([](qn::Device& device) {
    qn::Field<int, 0> s{device, {}};
    qn::Field<int, 3> t{device, {3, 4, 5}};
    qn::Field<int, 4> q{device, {2, 3, 4, 5}};
    qn::Kernel k = [&] {
      s() = 7;
      for (auto [i, j, l] : t) t(i, j, l) = 100 * i + 10 * j + l;
      for (auto I : q) q[I] = I.x * 1000 + I.y * 100 + I.z * 10 + I.w + s();
    };
    k();
    REQUIRE(s.at({}) == 7);
    for (int i = 0; i < 3; i++)
      for (int j = 0; j < 4; j++)
        for (int l = 0; l < 5; l++) {
          REQUIRE(t.at(i, j, l) == 100 * i + 10 * j + l);
          for (int h = 0; h < 2; h++)
            REQUIRE(q.at({h, i, j, l}) == h * 1000 + i * 100 + j * 10 + l + 7);
        }
  });
}

TEST_CASE("swap exchanges storage and kernels see it") {
  on_every_device([](qn::Device& device) {
    qn::Field<int> u{device, {8}}, v{device, {8}};
    qn::Kernel step = [&] {
      for (auto i : u) v[i] = u[i] + 1;
    };
    for (int k = 0; k < 10; k++) {
      step();
      u.swap(v);
    }
    REQUIRE(qn::to_vector(u) == std::vector<int>(8, 10));
  });
}

TEST_CASE("random numbers are those of Philox4x32-10 on every device") {
  REQUIRE(philox(0, 0, 0, 0, 0, 0) == 0x6627e8d5u);  // known answer published with Random123
  on_every_device([&](qn::Device& device) {
    qn::Field<uint32_t> x{device, {1000}}, y{device, {1000}};
    qn::Field<float> f{device, {1000}};
    qn::Kernel k = [&] {
      for (auto i : f) f[i] = random<float>();
      for (auto i : x) {
        x[i] = random<uint32_t>();
        y[i] = random<uint32_t>();
      }
    };
    k();
    auto vx = qn::to_vector(x), vy = qn::to_vector(y);
    // The device's launches are counted from 0 when it is opened, which others may have done
    // before.
    uint32_t launch = 0;
    while (launch < 1'000'000 && vx[0] != philox(0, launch, 0, 0, 0, 1)) launch++;
    INFO("launch " << launch);
    for (uint32_t i = 0; i < 1000; i++) {
      REQUIRE(vx[i] == philox(0, launch, i, 0, 0, 1));
      REQUIRE(vy[i] == philox(0, launch, i, 0, 1, 1));
    }
    k();
    REQUIRE(qn::to_vector(x)[5] == philox(0, launch + 1, 5, 0, 0, 1));
    double mean = 0;
    for (float v : qn::to_vector(f)) {
      REQUIRE(v >= 0.0f);
      REQUIRE(v < 1.0f);
      mean += v / 1000;
    }
    REQUIRE(std::abs(mean - 0.5) < 5 * std::sqrt(1.0 / 12 / 1000));  // five standard deviations
  });
}

TEST_CASE("outlined and inlined functions") {
  on_every_device([](qn::Device& device) {
    auto sqr = [](auto v) { return v * v; };
    qn::Func smoothstep = [](F32 e0, F32 e1, F32 v) {
      auto t = clamp((v - e0) / (e1 - e0), 0, 1);
      return t * t * (3 - 2 * t);
    };
    qn::Func sign = [](F32 v) {
      If(v > 0) { Return(1.0f); }
      If(v < 0) { Return(-1.0f); }
      return F32(0.0f);
    };
    qn::Field<float> x{device, {101}}, s{device, {101}};
    qn::Kernel k = [&] {
      for (auto i : x) {
        auto v = (cast<float>(i) - 50) / 25.0f;
        x[i] = smoothstep(0, 1, v) + sqr(v);
        s[i] = sign(v);
      }
    };
    k();
    auto out = qn::to_vector(x), signs = qn::to_vector(s);
    for (int i = 0; i < 101; i++) {
      float v = (float(i) - 50) / 25.0f, t = std::min(std::max(v, 0.0f), 1.0f);
      REQUIRE(out[size_t(i)] == Approx(t * t * (3 - 2 * t) + v * v).margin(1e-6));
      REQUIRE(signs[size_t(i)] == float((v > 0) - (v < 0)));
    }
  });
}

TEST_CASE("an early Return of several results") {
  on_every_device([](qn::Device& device) {
    qn::Func divide = [](I32 a, I32 b) {
      If(b == 0) { Return(result(0, a, cast<double>(a) * -1.5)); }
      return result(I32(a / b), I32(a % b), F64(0.25));
    };
    qn::Field<int> quotient{device, {4}}, rest{device, {4}};
    qn::Kernel k = [&](I32 stop) {
      If(stop == 1) { Return(result(-1, 0.5)); }
      for (auto i : rest) {
        auto [q, r, s] = divide(7, i);
        quotient[i] = q;
        rest[i] = r + ifloor(s);
      }
      return result(I32(3), F64(1.5));
    };
    auto [code, value] = k(1);
    REQUIRE(code == -1);
    REQUIRE(value == 0.5);
    k(0);
    REQUIRE(qn::to_vector(quotient) == std::vector<int>{0, 7, 3, 2});
    REQUIRE(qn::to_vector(rest) == std::vector<int>{7 - 11, 0, 1, 1});
  });
}

TEST_CASE("block_size and deterministic wrap a range without changing results") {
  on_every_device([](qn::Device& device) {
    for (int n : {0, 1, 127, 128, 129, 5000}) {
      qn::Field<int> x{device, {n}};
      qn::Kernel k = [&] {
        Var<int> sum = 0;
        for (auto i : block_size(x, 128)) x[i] = 2 * i;
        for (auto i : deterministic(x)) sum += x[i];
        for (auto i : block_size(range(n), 1)) x[i] = x[i] + 1;
        return sum;
      };
      REQUIRE(int(k()) == n * (n - 1));
      std::vector<int> out = qn::to_vector(x);
      for (int i = 0; i < n; i++) REQUIRE(out[size_t(i)] == 2 * i + 1);
    }
  });
}
