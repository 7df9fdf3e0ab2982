// What kernels compute, through the whole system, on the device QUERN_DEVICE names (else the best).
// Expected values are computed here by plain C++.
#include <quern/quern.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <thread>
#include <vector>

#include "quern/host.h"
#include "tests/catch.h"

namespace qn = quern;
using namespace qn::lang;

namespace {

template <class T>
std::vector<T> samples(size_t n) {
  std::mt19937_64 random(n * 7 + sizeof(T));
  std::vector<T> out(n);
  for (size_t k = 0; k < n; k++) {
    if constexpr (std::is_floating_point_v<T>)
      out[k] = T(int64_t(random() % 20001) - 10000) / T(64);
    else
      out[k] = k < 4 ? (k == 0   ? T(0)
                        : k == 1 ? T(1)
                        : k == 2 ? std::numeric_limits<T>::min()
                                 : std::numeric_limits<T>::max())
                     : T(random());
  }
  return out;
}

/// Integers wrap in Quern; in C++ signed overflow is undefined, so the host counts unsigned.
template <class T>
T wrapped(uint64_t v) {
  return T(v);
}

template <class T>
void integers() {
  qn::Device device;
  const int n = 200;
  auto a = samples<T>(n), b = samples<T>(n);
  std::rotate(b.begin(), b.begin() + 1, b.end());
  qn::Field<T> x{device, {n}}, y{device, {n}}, sum{device, {n}}, product{device, {n}},
      bits{device, {n}}, least{device, {n}}, moved{device, {n}};
  qn::Field<bool> less{device, {n}}, same{device, {n}};
  x.copy_from(a);
  y.copy_from(b);
  qn::Kernel k = [&] {
    for (auto i : x) {
      Val<T> p = x[i], q = y[i];
      sum[i] = cast<T>(p + q);
      product[i] = cast<T>(p * q);
      bits[i] = cast<T>((p & q) ^ (p | ~q));
      least[i] = min(p, q);
      less[i] = p < q;
      same[i] = p == q;
      Var<T> v = p;
      v -= q;
      v ^= p;
      moved[i] = v;
    }
  };
  k();
  auto at = [](const auto& field, size_t i) { return field.at(i); };
  for (size_t i = 0; i < size_t(n); i++) {
    uint64_t p = uint64_t(a[i]), q = uint64_t(b[i]);
    INFO(i << ": " << +a[i] << " " << +b[i]);
    REQUIRE(at(sum, i) == wrapped<T>(p + q));
    REQUIRE(at(product, i) == wrapped<T>(p * q));
    REQUIRE(at(bits, i) == wrapped<T>((p & q) ^ (p | ~q)));
    REQUIRE(at(least, i) == std::min(a[i], b[i]));
    REQUIRE(at(less, i) == (a[i] < b[i]));
    REQUIRE(at(same, i) == (a[i] == b[i]));
    REQUIRE(at(moved, i) == wrapped<T>((p - q) ^ p));
  }
}

template <class T>
void floats() {
  qn::Device device;
  const int n = 200;
  auto a = samples<T>(n), b = samples<T>(n + 1);
  b.resize(n);
  qn::Field<T> x{device, {n}}, y{device, {n}}, sum{device, {n}}, quotient{device, {n}},
      root{device, {n}}, rounded{device, {n}};
  qn::Field<int> whole{device, {n}};
  x.copy_from(a);
  y.copy_from(b);
  qn::Kernel k{[&] {
                 for (auto i : x) {
                   sum[i] = x[i] + 3 * y[i] - 0.5;
                   quotient[i] = x[i] / y[i];
                   root[i] = sqrt(abs(x[i]));
                   rounded[i] = floor(x[i]) + ceil(y[i]) + trunc(x[i]);
                   whole[i] = ifloor(x[i]);
                 }
               },
               {.strict = true}};
  k();
  for (size_t i = 0; i < size_t(n); i++) {
    INFO(i << ": " << a[i] << " " << b[i]);
    REQUIRE(sum.at(i) == a[i] + T(3) * b[i] - T(0.5));
    if (b[i] != 0) REQUIRE(quotient.at(i) == a[i] / b[i]);
    REQUIRE(root.at(i) == std::sqrt(std::abs(a[i])));
    REQUIRE(rounded.at(i) == std::floor(a[i]) + std::ceil(b[i]) + std::trunc(a[i]));
    REQUIRE(whole.at(i) == int(std::floor(a[i])));
  }
}

}  // namespace

TEST_CASE("run: integers of every width") {
  SECTION("i8") { integers<int8_t>(); }
  SECTION("i16") { integers<int16_t>(); }
  SECTION("i32") { integers<int32_t>(); }
  SECTION("i64") { integers<int64_t>(); }
  SECTION("u8") { integers<uint8_t>(); }
  SECTION("u16") { integers<uint16_t>(); }
  SECTION("u32") { integers<uint32_t>(); }
  SECTION("u64") { integers<uint64_t>(); }
}

TEST_CASE("run: floats") {
  SECTION("f32") { floats<float>(); }
  SECTION("f64") { floats<double>(); }
}

TEST_CASE("run: fields of every rank") {
  qn::Device device;
  qn::Field<int, 0> one{device};
  qn::Field<int, 1> line{device, {5}};
  qn::Field<int, 2> plane{device, {3, 5}};
  qn::Field<int, 3> box{device, {2, 3, 5}};
  qn::Field<int, 4> deep{device, {2, 2, 3, 5}};
  qn::Kernel k = [&] {
    one() = 7;
    for (auto i : line) line[i] = i;
    for (auto I : plane) plane[I] = 10 * I.x + I.y;
    for (auto [i, j, m] : box) box(i, j, m) = 100 * i + 10 * j + m;
    for (auto [i, j, m, n] : deep) deep(i, j, m, n) = 1000 * i + 100 * j + 10 * m + n;
  };
  k();
  CHECK(one.at({}) == 7);
  CHECK(line.at(4) == 4);
  CHECK(plane.at(2, 3) == 23);
  CHECK(box.at(1, 2, 4) == 124);
  CHECK(deep.at({1, 1, 2, 4}) == 1124);
  CHECK(deep.shape(2) == 3);
  CHECK(deep.size() == 60);
}

TEST_CASE("run: parameters by value, fields as parameters, several parallel loops") {
  qn::Device device;
  qn::Field<double> x{device, {100}}, y{device, {100}};
  qn::Kernel k = [](qn::Field<double> a, I32 n, F64 scale, B1 negate, qn::Field<double> b) {
    for (auto i : range(n)) a[i] = scale * i;
    for (auto i : b) b[i] = select(negate, -a[i], a[i]);
    b[0] = b.dim(0);  // serial code after the loops
  };
  k(x, 60, 0.5, true, y);
  CHECK(y.at(0) == 100.0);
  CHECK(y.at(59) == -29.5);
  CHECK(y.at(60) == 0.0);
  k(y, 2, 4.0, false, y);  // the same field twice
  CHECK(y.at(1) == 4.0);
}

TEST_CASE("run: results") {
  qn::Device device;
  qn::Field<int> x{device, {1000}};
  qn::Kernel fill = [&] {
    for (auto i : x) x[i] = i + 1;
  };
  fill();
  qn::Kernel stats = [&] {
    Var<int64_t> sum = 0;
    Var<int> low = 1 << 30, high = 0;
    Var<bool> any = false;
    for (auto i : x) {
      sum += x[i];
      atomic_min(low, x[i]);
      atomic_max(high, x[i]);
      any |= x[i] == 500;
    }
    return result(sum, low, high, any);
  };
  auto [sum, low, high, any] = stats();
  CHECK(sum == 500500);
  CHECK(low == 1);
  CHECK(high == 1000);
  CHECK(any);
  qn::Kernel twice = [](F32 a) { return 2 * a; };
  float four = twice(2.0f);
  CHECK(four == 4.0f);
  auto pending = twice(8.0f);
  CHECK(pending.value() == 16.0f);
}

TEST_CASE("run: an early return of a kernel and of a function") {
  qn::Device device;
  qn::Field<float> x{device, {3}};
  x.copy_from(std::vector<float>{-1, 0.5f, 3});
  qn::Func clamped = [](F32 v) {
    If(v < 0) { Return(0); }
    If(v > 1) { Return(1); }
    return v;
  };
  qn::Kernel k = [&](F32 limit) {
    for (auto i : x) x[i] = clamped(x[i]);
    If(limit > 2) { Return(-1); }
    x[0] = 9;
    return limit;
  };
  CHECK(float(k(3.0f)) == -1.0f);
  CHECK(qn::to_vector(x) == std::vector<float>{0, 0.5f, 1});
  CHECK(float(k(1.5f)) == 1.5f);
  CHECK(x.at(0) == 9.0f);
}

TEST_CASE("run: fields of any length are filled with elements whose words differ") {
  qn::Device device;
  for (int n : {1, 2, 3, 341, 342, 511, 512, 513, 1000, 1025, 5000}) {
    INFO(n << " elements");
    const qn::Field<double> x{device, {n}};
    x.fill(0.1);
    CHECK(qn::to_vector(x) == std::vector<double>(size_t(n), 0.1));
    const qn::Field<qn::Vec<float, 3>> v{device, {n}};
    v.fill(vec3(1, 2, 3));
    double sums[3] = {};
    for (int i = 0; i < n; i++)
      for (int k = 0; k < 3; k++) sums[k] += double(v.at(i)[k]);
    for (int k = 0; k < 3; k++) CHECK(sums[k] == n * (k + 1.0));
  }
}

TEST_CASE("run: guards protect their right operand") {
  qn::Device device;
  qn::Field<int> x{device, {10}}, y{device, {10}}, calls{device, {1}};
  x.fill(1);
  qn::Kernel k{[&] {
                 for (auto i : x) {
                   If(i > 0 && x[i - 1] == 1) y[i] = 1;
                   If(i == 9 || x[i + 1] == 0) y[i] = 2;
                   If(i < 3 && atomic_add(calls[0], 1) >= 0) y[i] += 10;
                 }
               },
               {.checked = true}};
  k();
  CHECK(qn::to_vector(y) == std::vector<int>{10, 11, 11, 1, 1, 1, 1, 1, 1, 2});
  CHECK(calls.at(0) == 3);
}

TEST_CASE("run: loops, breaks and continues") {
  qn::Device device;
  qn::Field<int> x{device, {40}};
  qn::Kernel k = [&] {
    for (auto n : x) {
      Var<int> steps = 0, v = n + 1;
      While(v != 1) {  // Collatz
        v = select(v % 2 == 0, v / 2, 3 * v + 1);
        steps++;
        If(steps == 50) Break();
      }
      for (auto [i, j] : grid(5, 5)) {
        If(i == j) Continue();
        If(i * j > 5) Break();
        steps += 1000;
      }
      If(n == 7) Continue();
      x[n] = steps;
    }
  };
  k();
  int pairs = 0;
  for (int i = 0; i < 5; i++)
    for (int j = 0; j < 5; j++) {
      if (i == j) continue;
      if (i * j > 5) goto done;
      pairs++;
    }
done:
  for (int n = 0; n < 40; n++) {
    int steps = 0;
    for (int v = n + 1; v != 1;) {
      v = v % 2 == 0 ? v / 2 : 3 * v + 1;
      if (++steps == 50) break;
    }
    INFO(n);
    REQUIRE(x.at(n) == (n == 7 ? 0 : steps + 1000 * pairs));
  }
}

TEST_CASE("run: kernel-level control flow repeats and guards parallel loops") {
  qn::Device device;
  qn::Field<int> x{device, {100}};
  qn::Kernel k = [&](I32 rounds, B1 wanted) {
    for (auto r : serial(range(rounds)))
      for (auto i : x) x[i] = 2 * x[i] + r;
    If(wanted) {
      for (auto i : x) x[i] = x[i] + 1000;
    }
    Var<int> total = 1;
    While(total < 20000) {
      total = 0;
      for (auto i : x) {
        x[i] = x[i] + 100;
        total += x[i];
      }
    }
    return total;
  };
  int total = k(3, false);  // (0*2+0)*2+1)*2+2 = 4 in each
  CHECK(x.at(50) == 204);
  CHECK(total == 20400);
  x.fill(0);
  total = k(0, true);
  CHECK(total == 110000);
}

TEST_CASE("run: swap exchanges what kernels see, copies of a handle alias") {
  qn::Device device;
  qn::Field<int> a{device, {4}}, b{device, {4}};
  qn::Kernel step = [&] {
    for (auto i : a) b[i] = a[i] + 1;
  };
  for (int round = 0; round < 5; round++) {
    step();
    a.swap(b);
  }
  CHECK(a.at(2) == 5);
  auto alias = a;
  alias.fill(7);
  CHECK(a.at(0) == 7);
}

TEST_CASE("run: atomics collide without loss") {
  qn::Device device;
  qn::Field<int> histogram{device, {10}};
  qn::Field<uint32_t> mask{device, {1}};
  qn::Field<int> seen{device, {1}};
  qn::Kernel k = [&](I32 n) {
    for (auto i : range(n)) {
      histogram[i % 10] += 1;
      atomic_or(mask[0], 1u << cast<uint32_t>(i % 20));
      (void)atomic_cas(seen[0], 0, i + 1);
    }
  };
  k(10000);
  CHECK(qn::to_vector(histogram) == std::vector<int>(10, 1000));
  CHECK(mask.at(0) == (1u << 20) - 1);
  CHECK(seen.at(0) >= 1);
  CHECK(seen.at(0) <= 10000);
}

TEST_CASE("run: random numbers are uniform, and the same for the same seed") {
  qn::Device device;
  const int n = 4096;
  qn::Field<float> x{device, {n}};
  qn::Field<double> y{device, {n}};
  qn::Kernel k = [&] {
    for (auto i : x) {
      x[i] = random<float>();
      y[i] = random<double>();
    }
  };
  k();
  double sum = 0, sum2 = 0;
  for (float v : qn::to_vector(x)) {
    REQUIRE(v >= 0.0f);
    REQUIRE(v < 1.0f);
    sum += v;
  }
  for (double v : qn::to_vector(y)) {
    REQUIRE(v >= 0.0);
    REQUIRE(v < 1.0);
    sum2 += v;
  }
  // Standard deviation of the mean: 0.2887 / 64 = 0.0045; five of them.
  CHECK(std::abs(sum / n - 0.5) < 0.0226);
  CHECK(std::abs(sum2 / n - 0.5) < 0.0226);
}

TEST_CASE("run: wide loops and wide extents") {
  qn::Device device;
  qn::Field<int64_t> x{device, {10}};
  qn::Kernel k = [&] {
    for (auto i : x.wide()) x[i] = i * 5000000000 + x.dim<int64_t>(0);
  };
  k();
  CHECK(x.at(3) == 15000000010);
}

TEST_CASE("run: a kernel keeps the fields that it captured") {
  qn::Device device;
  qn::Kernel k = [&] {
    qn::Field<int> kept{device, {16}};
    return qn::Kernel([=] {
      Var<int> s = 0;
      for (auto i : kept) kept[i] = i;
      for (auto i : kept) s += kept[i];
      return s;
    });
  }();
  CHECK(int(k()) == 120);
}

TEST_CASE("run: deterministic float sums are those of the model's order") {
  qn::Device device;
  const int n = 5000;
  std::vector<float> v(n);
  for (int i = 0; i < n; i++) v[size_t(i)] = 1.0f / float(i + 1);
  qn::Field<float> x{device, {n}};
  x.copy_from(v);
  qn::Kernel k = [&] {
    Var<float> s = 0.25f;
    for (auto i : deterministic(x)) s += x[i];
    return s;
  };
  // Chunks of 1024, 32 strided partial sums in each, combined by halving; then the chunks likewise.
  auto level = [](const std::vector<float>& in) {
    std::vector<float> out;
    for (size_t first = 0; first < in.size(); first += 1024) {
      float partial[32];
      for (float& p : partial) p = -0.0f;
      for (size_t j = first; j < in.size() && j < first + 1024; j++)
        partial[(j - first) % 32] += in[j];
      for (int half = 16; half; half /= 2)
        for (int j = 0; j < half; j++) partial[j] += partial[j + half];
      out.push_back(partial[0]);
    }
    return out;
  };
  std::vector<float> sums = level(v);
  while (sums.size() > 1) sums = level(sums);
  CHECK(float(k()) == 0.25f + sums[0]);
}

TEST_CASE("run: functions with captured fields, checks and loops, called by two kernels") {
  qn::Device device;
  qn::Field<int> table{device, {5}}, out{device, {5}}, calls{device, {1}};
  table.copy_from(std::vector<int>{2, 3, 5, 7, 11});
  qn::Func lookup = [&](I32 i) {
    check(i >= 0 && i < table.dim(0), "no entry {}", i);
    Var<int> product = 1;
    for (auto k : range(i + 1)) product *= table[k];
    If(product > 1000) { Return(-1); }
    return product;
  };
  qn::Func count = [&] { calls[0] += 1; };
  qn::Kernel first = [&] {
    for (auto i : out) {
      out[i] = lookup(i);
      count();
    }
  };
  qn::Kernel second = [&](I32 i) {
    count();
    return lookup(i) + out[0];
  };
  first();
  CHECK(qn::to_vector(out) == std::vector<int>{2, 6, 30, 210, -1});
  CHECK(int(second(2)) == 32);
  CHECK(calls.at(0) == 6);
}

TEST_CASE("run: several threads record and launch at once") {
  qn::Device device;
  std::vector<std::thread> threads;
  std::vector<int> sums(4);
  for (int t = 0; t < 4; t++)
    threads.emplace_back([&, t] {
      qn::Field<int> x{device, {100}};
      for (int round = 0; round < 5; round++) {
        qn::Kernel k = [&](I32 step) {
          Var<int> s = 0;
          for (auto i : x) {
            x[i] = x[i] + step;
            s += x[i];
          }
          return s;
        };
        sums[size_t(t)] = k(t + 1);
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(sums == std::vector<int>{500, 1000, 1500, 2000});
}

TEST_CASE("run: fields of integer vectors") {
  qn::Device device;
  qn::Field<ivec2, 2> u{device, {3, 4}};
  qn::Kernel k = [&] {
    for (auto I : u) u[I] = I * 10 + ivec2(1, 2);
    for (auto I : u) {
      u[I].y += 100;
      If(I.x == 2) {
        Var v = u[I];
        v.x = -v.x;
        v += I;
        u[I] = v;
      }
    }
  };
  k();
  CHECK(u.at(1, 3) == ivec2(11, 132));
  CHECK(u.at(2, 3) == ivec2(-21 + 2, 132 + 3));
  u.set(0, 0, ivec2(5, 6));
  CHECK(u.at(0, 0) == ivec2(5, 6));
  CHECK(u.at(0, 1) == ivec2(1, 112));
}

TEST_CASE("run: the number of a loop's iterations may come from another field") {
  qn::Device device;
  qn::Field<int> n{device, {1}}, x{device, {10}};
  n.set(0, 6);
  qn::Kernel k = [&] {
    auto bound = n[0];  // a snapshot: what follows does not change it
    n[0] = 2;
    for (auto i : range(bound)) x[i] = 1;
    for (auto i : range(n[0], 4)) x[i] = 2;
  };
  k();
  CHECK(qn::to_vector(x) == std::vector<int>{1, 1, 2, 2, 1, 1, 0, 0, 0, 0});
}

TEST_CASE("run: exits at kernel level skip the parallel loops behind them") {
  qn::Device device;
  qn::Field<int> x{device, {10}};
  qn::Kernel k = [&](I32 stop, I32 limit) {
    for (auto r : serial(range(5))) {
      If(r == stop) Break();
      If(r == 1) Continue();
      for (auto i : x) x[i] = x[i] + 1;
      If(r == limit) { Return(100 + r); }
      for (auto i : x) x[i] = x[i] + 10;
    }
    for (auto i : x) x[i] = x[i] + 1000;
    return 7;
  };
  CHECK(int(k(3, 9)) == 7);  // rounds 0 and 2
  CHECK(x.at(4) == 1022);
  x.fill(0);
  CHECK(int(k(9, 2)) == 102);
  CHECK(x.at(4) == 12);
}

TEST_CASE("run: a reduction under a guard of kernel level, and two into one variable") {
  qn::Device device;
  qn::Field<int> x{device, {64}};
  x.fill(3);
  qn::Kernel k = [&](B1 both) {
    Var<int> s = 5;
    for (auto i : x) s += x[i];
    If(both) {
      for (auto i : x) If(i % 2 == 0) s += 1;
    }
    auto before = s + 0;
    s *= 2;
    return result(before, s);
  };
  {
    auto [before, after] = k(true);
    CHECK(before == 5 + 192 + 32);
    CHECK(after == 2 * (5 + 192 + 32));
  }
  auto [before, after] = k(false);
  CHECK(before == 197);
  CHECK(after == 394);
}

TEST_CASE("run: an empty domain runs nothing and reduces nothing") {
  qn::Device device;
  qn::Field<int> x{device, {0}};
  qn::Field<int> y{device, {4}};
  qn::Kernel k = [&](I32 n) {
    Var<int> low = 42;
    for (auto i : x) atomic_min(low, x[i]);
    for (auto i : range(n)) y[i] = 1;
    for (auto i : range(3, n)) y[i] = 1;
    return low;
  };
  CHECK(int(k(0)) == 42);
  CHECK(int(k(-5)) == 42);
  CHECK(qn::to_vector(y) == std::vector<int>{0, 0, 0, 0});
}
