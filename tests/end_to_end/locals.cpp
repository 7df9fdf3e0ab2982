// Arrays from their elements, swizzles that are assigned, atomics on an iteration's own variables.
#include <array>
#include <memory>
#include <vector>

#include "tests/end_to_end/devices.h"

using namespace qn::lang;

TEST_CASE("arrays from braces, Array and std::array") {
  on_every_device([](qn::Device& device) {
    constexpr std::array<float, 4> weights = {0.5f, 1.5f, -2.0f, 8.0f};
    const std::array<std::array<int, 2>, 3> pairs = {{{1, 2}, {3, 4}, {5, 6}}};
    qn::Field<float> x{device, {12}};
    qn::Field<int> y{device, {12}};
    qn::Kernel k = [&](F32 last) {
      for (auto i : x) {
        Var<Array<int, 3>> a = {1, 2 + i, 3};
        Var b = Array{7, 8, 9, 10};
        Var c = weights;
        Val<Array<float, 4>> fixed = weights;
        Var<Array<vec2, 2>> points = {vec2(1, 2), vec(last, 3)};
        Var table = pairs;
        a[2] += 1;
        c[3] = last;
        x[i] = c[i % 4] + fixed[i % 4] * 100.0f + points[1].x + points[0].y * 1000.0f;
        y[i] = a[i % 3] + 10 * b[i % 4] + 1000 * table[i % 3][i % 2];
      }
    };
    k(0.25f);
    for (int i = 0; i < 12; i++) {
      const int a[] = {1, 2 + i, 4};
      REQUIRE(y.at(i) == a[i % 3] + 10 * (7 + i % 4) + 1000 * pairs[size_t(i % 3)][size_t(i % 2)]);
      float c = i % 4 == 3 ? 0.25f : weights[size_t(i % 4)];
      REQUIRE(x.at(i) == c + weights[size_t(i % 4)] * 100 + 0.25f + 2000);
    }
  });
}

TEST_CASE("a swizzle of a variable is assigned") {
  on_every_device([](qn::Device& device) {
    qn::Field<vec4> x{device, {5}};
    qn::Field<vec2> y{device, {5}};
    qn::Kernel k = [&] {
      for (auto i : x) {
        Var<vec4> v = vec4(1, 2, 3, 4);
        v.xy() = vec2(10, 20);
        v.zw() = v.xy();
        v.wzyx() += vec4(1, 2, 3, 4);
        v.xy() = v.yx();  // both are read before
        v.yw() *= 2.0f;
        auto old = v.xy();  // a snapshot
        v.xz() = 1.0f * i;
        x[i] = v;
        y[i] = old;
      }
    };
    k();
    for (int i = 0; i < 5; i++) {
      // (10, 20, 10, 20), then + (4, 3, 2, 1), exchanged, y and w doubled
      REQUIRE(x.at(i) == vec4(float(i), 28, float(i), 42));
      REQUIRE(y.at(i) == vec2(23, 28));
    }
  });
}

TEST_CASE("atomics on an iteration's own variables yield the old value") {
  on_every_device([](qn::Device& device) {
    qn::Field<int> x{device, {6}};
    qn::Field<float> y{device, {6}};
    qn::Kernel k = [&] {
      for (auto i : x) {
        Var<int> n = i;
        Var<Array<int, 3>> a = {5, 6, 7};
        Var<float> f = 2.0f;
        Var<int> sum = atomic_add(n, 10);      // i
        sum += 100 * atomic_max(a[i % 3], 6);  // 5, 6, 7
        sum += 1000 * atomic_xor(a[2], 1);     // 7
        sum += 10000 * atomic_mul(n, 2);       // i + 10
        x[i] = sum + 1000000 * (n + a[i % 3]);
        Var<float> before = atomic_min(f, 1.0f);
        y[i] = before + 10.0f * f;
      }
    };
    k();
    for (int i = 0; i < 6; i++) {
      const int a[] = {6, 6, 6};
      int sum = i + 100 * (5 + i % 3) + 1000 * 7 + 10000 * (i + 10);
      REQUIRE(x.at(i) == sum + 1000000 * (2 * (i + 10) + a[i % 3]));
      REQUIRE(y.at(i) == 2 + 10);
    }
  });
}

TEST_CASE("atomic_mul on elements") {
  on_every_device([](qn::Device& device) {
    qn::Field<int> x{device, {3}};
    qn::Field<double> y{device, {2}};
    qn::Field<float, 0> z{device, {}};
    x.fill(1);
    y.fill(1);
    z.set({}, 1);
    qn::Kernel k = [&] {
      for (auto i : range(30)) {
        atomic_mul(x[i % 3], i + 2);  // wraps
        atomic_mul(y[i % 2], 2.0);
        atomic_mul(z(), select(i < 20, 2.0f, 0.5f));  // powers of two: exact in any order
      }
    };
    k();
    int expected[3] = {1, 1, 1};
    for (int i = 0; i < 30; i++) expected[i % 3] = int(uint32_t(expected[i % 3]) * uint32_t(i + 2));
    for (int i = 0; i < 3; i++) REQUIRE(x.at(i) == expected[i]);
    REQUIRE(y.at(0) == 32768);
    REQUIRE(z.at({}) == 1024);
  });
}

TEST_CASE("sums that may be reassociated") {
  on_every_device([](qn::Device& device) {
    constexpr int n = 13, m = 1000;
    qn::Field<float, 2> a{device, {n, m}};
    qn::Field<float> sums{device, {n}}, products{device, {n}};
    qn::Field<double> dots{device, {n}};
    qn::Kernel k = [&] {
      for (auto [i, j] : a) a(i, j) = cast<float>((i * 31 + j * 7) % 16) - 5;
      for (auto i : sums) {
        Var<float> sum = 0, product = 1;
        Var<double> dot = 0;
        for (auto _ : reassociate()) {
          for (auto j : range(m)) {
            sum += a(i, j);
            dot += a(i, j) * a(n - 1 - i, j);
          }
          for (auto j : range(20)) product *= select(a(i, j) < 0, -2.0f, 0.5f);
        }
        sums[i] = sum;
        products[i] = product;
        dots[i] = dot;
      }
    };
    k();
    auto at = [](int i, int j) { return float((i * 31 + j * 7) % 16) - 5; };
    for (int i = 0; i < n; i++) {  // exact in any order
      float sum = 0, product = 1;
      double dot = 0;
      for (int j = 0; j < m; j++) sum += at(i, j), dot += at(i, j) * at(n - 1 - i, j);
      for (int j = 0; j < 20; j++) product *= at(i, j) < 0 ? -2.0f : 0.5f;
      REQUIRE(sums.at(i) == sum);
      REQUIRE(products.at(i) == product);
      REQUIRE(dots.at(i) == dot);
    }
  });
}

TEST_CASE("a loop carries as many variables as there are") {
  on_every_device([](qn::Device& device) {
    for (const int count : {10, 700, 1600}) {
      if (count > 10 && device.name() == std::string("vulkan"))
        continue;  // it compiles for minutes
      INFO(count << " variables");
      constexpr int rounds = 3;
      qn::Field<double> x{device, {16}}, y{device, {1}};
      for (int k = 0; k < 16; k++) x.set(k, 0.125 * k);
      qn::Kernel f = [&] {
        std::vector<std::unique_ptr<Var<double>>> all;
        for (int k = 0; k < count; k++)
          all.push_back(std::make_unique<Var<double>>(x[k % 16] + double(k)));
        for ([[maybe_unused]] auto r : serial(range(rounds)))
          for (int k = 0; k < count; k++)
            *all[size_t(k)] = *all[size_t(k)] * 0.5 + *all[size_t((k + 1) % count)] * 0.25;
        Var<double> sum = 0.0;
        for (const auto& v : all) sum += *v;
        y[0] = sum;
      };
      f();
      std::vector<double> all;
      for (int k = 0; k < count; k++) all.push_back(0.125 * (k % 16) + k);
      for (int r = 0; r < rounds; r++)
        for (int k = 0; k < count; k++)
          all[size_t(k)] = all[size_t(k)] * 0.5 + all[size_t((k + 1) % count)] * 0.25;
      double sum = 0;
      for (double v : all) sum += v;
      CHECK(y.at(0) == Approx(sum).epsilon(1e-12));
    }
  });
}
