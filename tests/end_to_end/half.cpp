// f16 from end to end, against the compiler's own binary16.
#include <cmath>
#include <cstring>
#include <random>

#include "tests/end_to_end/devices.h"

using namespace qn::lang;
using qn::half;

namespace {
uint16_t rounded(double v) {
  const _Float16 h = static_cast<_Float16>(v);
  uint16_t bits;
  std::memcpy(&bits, &h, sizeof bits);
  return bits;
}
bool same(half a, uint16_t b) {
  return a.bits() == b || ((a.bits() & 0x7fff) > 0x7c00 && (b & 0x7fff) > 0x7c00);
}
template <class F>
std::string message(F&& f) {
  try {
    f();
  } catch (const qn::Error& e) {
    return e.what();
  }
  return "";
}
std::vector<half> all_halves() {
  std::vector<half> all;
  for (int b = 0; b < 65536; b++) all.push_back(half::from_bits(uint16_t(b)));
  return all;
}
}  // namespace

TEST_CASE("f16: saxpy on fields of halves") {
  on_every_device([](qn::Device& device) {
    const int n = 4099;
    std::mt19937 random(1);
    std::vector<half> hx, hy;
    for (int k = 0; k < n; k++) {
      hx.push_back(half(float(int(random() % 20001) - 10000) / 1000));
      hy.push_back(half(float(int(random() % 20001) - 10000) / 1000));
    }
    qn::Field<half> x{device, {n}}, y{device, {n}};
    x.copy_from(hx);
    y.copy_from(hy);
    qn::Kernel saxpy = [&](F16 a) {
      for (auto i : y) y[i] = a * x[i] + y[i];
    };
    saxpy(1.1f);
    const std::vector<half> got = qn::to_vector(y);
    const float a = float(half(1.1f));
    for (size_t k = 0; k < size_t(n); k++) {
      const float product = float(half::from_bits(rounded(a * float(hx[k]))));
      CHECK(same(got[k], rounded(product + float(hy[k]))));
    }
  });
}

TEST_CASE("f16: every half converts, and arithmetic and functions yield halves") {
  on_every_device([](qn::Device& device) {
    const std::vector<half> all = all_halves();
    qn::Field<half> x{device, {65536}}, root{device, {65536}}, back{device, {65536}},
        third{device, {65536}}, bits{device, {65536}};
    qn::Field<float> wide{device, {65536}};
    qn::Field<double> wider{device, {65536}};
    qn::Field<int> whole{device, {65536}};
    x.copy_from(all);
    qn::Kernel convert = [&] {
      for (auto i : x) {
        F16 v = x[i];
        wide[i] = v;
        wider[i] = v;
        whole[i] = cast<int>(select(abs(v) <= 65504.0f, cast<float>(v), 0.0f));
        root[i] = sqrt(v);
        back[i] = cast<half>(cast<float>(v) * 0x1p-3f);
        third[i] = v / 3;
        bits[i] = select(v < 1.0f, -v, abs(v) + half(1));
      }
    };
    convert();
    const auto w = qn::to_vector(wide);
    const auto ww = qn::to_vector(wider);
    const auto r = qn::to_vector(root), b = qn::to_vector(back), t = qn::to_vector(third),
               s = qn::to_vector(bits);
    const auto integers = qn::to_vector(whole);
    for (size_t k = 0; k < 65536; k++) {
      const float v = float(all[k]);
      INFO("half " << k << " = " << v);
      if (std::isnan(v)) {
        REQUIRE((std::isnan(w[k]) && std::isnan(ww[k]) && integers[k] == 0));
        continue;
      }
      REQUIRE((w[k] == v && ww[k] == double(v) && std::signbit(w[k]) == std::signbit(v)));
      if (std::isfinite(v)) REQUIRE(integers[k] == int(v));
      REQUIRE(same(r[k], rounded(std::sqrt(v))));
      REQUIRE(same(b[k], rounded(v * 0x1p-3f)));
      REQUIRE(same(t[k], rounded(v / 3)));
      REQUIRE(same(s[k], rounded(v < 1 ? -v : std::fabs(v) + 1)));
    }
  });
}

TEST_CASE("f16: doubles and integers round once") {
  on_every_device([](qn::Device& device) {
    const int n = 20000;
    std::mt19937_64 random(9);
    std::vector<double> hd = {65504,
                              65519.999,
                              65520,
                              -65520,
                              1e300,
                              0x1p-25,
                              0x1.0000000001p-25,
                              1 + 0x1p-11,
                              1 + 0x1p-11 + 0x1p-40,
                              3e38,
                              4e38,
                              1e-300};
    while (hd.size() < size_t(n))
      hd.push_back(std::ldexp(1 + double(random() % 4096) / 2048 + double(random() % 3) * 0x1p-45,
                              int(random() % 45) - 28));
    std::vector<int64_t> hi;
    for (int k = 0; k < n; k++) hi.push_back(int64_t(random()) >> (random() % 62));
    qn::Field<double> d{device, {n}};
    qn::Field<int64_t> whole{device, {n}};
    qn::Field<half> from_d{device, {n}}, from_i{device, {n}};
    d.copy_from(hd);
    whole.copy_from(hi);
    qn::Kernel convert = [&] {
      for (auto i : d) {
        from_d[i] = cast<half>(d[i]);
        from_i[i] = cast<half>(whole[i]);
      }
    };
    convert();
    const auto gd = qn::to_vector(from_d), gi = qn::to_vector(from_i);
    for (size_t k = 0; k < size_t(n); k++) {
      INFO(hd[k] << " " << hi[k]);
      CHECK(same(gd[k], rounded(hd[k])));
      CHECK(same(gi[k], rounded(double(hi[k]))));
    }
  });
}

TEST_CASE("f16: variables, parameters, results and literals") {
  on_every_device([](qn::Device& device) {
    qn::Field<half> x{device, {100}};
    x.fill(half(0.25f));
    qn::Kernel sum = [&](F16 start) -> F16 {
      Var<half> total = start;
      for (auto i : serial(range(100))) total += x[i] * 2.0;
      return total;
    };
    half expected(0.1f);
    for (int k = 0; k < 100; k++) expected = expected + half(0.5f);
    CHECK(half(sum(0.1f)).bits() == expected.bits());
    static_assert(std::is_same_v<decltype(std::declval<F16>() + std::declval<F16>()), F16>);
    static_assert(std::is_same_v<decltype(std::declval<F16>() * 1.5), F16>);
    static_assert(std::is_same_v<decltype(std::declval<F16>() + std::declval<F32>()), F32>);
    static_assert(std::is_same_v<decltype(std::declval<F64>() + std::declval<F16>()), F64>);
    static_assert(std::is_same_v<decltype(std::declval<F16>() * std::declval<I32>()), F16>);
    static_assert(std::is_same_v<decltype(exp(std::declval<F16>())), F16>);
  });
}

TEST_CASE("f16: atomics and reductions are refused") {
  qn::Field<half> x{qn::Device(), {8}};
  auto atomic = [&] {
    qn::Kernel k = [&] {
      for (auto i : x) atomic_add(x[i], half(1));
    };
    k();
  };
  CHECK(message(atomic).find("an atomic on f16") != std::string::npos);
  auto reduction = [&] {
    qn::Kernel k = [&]() -> F16 {
      Var<half> total = half(0);
      for (auto i : x) total += x[i];
      return total;
    };
    k();
  };
  CHECK(message(reduction).find("variable of f16") != std::string::npos);
}

TEST_CASE("f16: classes, neighbours, fraction and exponent of every half") {
  on_every_device([](qn::Device& device) {
    const std::vector<half> all = all_halves();
    qn::Field<half> x{device, {65536}}, fraction{device, {65536}}, scaled{device, {65536}},
        up{device, {65536}}, down{device, {65536}};
    qn::Field<int> exponent{device, {65536}}, kind{device, {65536}};
    x.copy_from(all);
    qn::Kernel work = [&] {
      for (auto i : x) {
        F16 v = x[i];
        auto [f, e] = frexp(v);
        fraction[i] = f;
        exponent[i] = e;
        scaled[i] = ldexp(v, i % 61 - 30);
        up[i] = nextafter(v, half(65504.0f));
        down[i] = nextafter(v, half(-65504.0f));
        kind[i] = select(isnan(v), 1, 0) + select(isinf(v), 2, 0) + select(isfinite(v), 4, 0) +
                  select(isnormal(v), 8, 0) + select(signbit(v), 16, 0);
      }
    };
    work();
    const std::vector<half> fractions = qn::to_vector(fraction), products = qn::to_vector(scaled),
                            above = qn::to_vector(up), below = qn::to_vector(down);
    const std::vector<int> exponents = qn::to_vector(exponent), kinds = qn::to_vector(kind);
    /// Neighbours by their numbers in order: -65504 … -0, 0 … 65504.
    auto step = [](int bits, int by) {
      int number = bits & 0x8000 ? -(bits & 0x7fff) : bits;
      number += by;
      return uint16_t(number < 0 || (number == 0 && by > 0) ? 0x8000 | -number : number);
    };
    int wrong = 0;
    for (int b = 0; b < 65536; b++) {
      const size_t k = size_t(b);
      const int size = b & 0x7fff;
      const bool nan = size > 0x7c00, infinite = size == 0x7c00;
      const float v = float(all[k]);
      int e = 0;
      const float f = std::frexp(v, &e);
      if (nan || infinite) e = 0;
      wrong += !same(fractions[k], rounded(f)) || exponents[k] != e;
      wrong += !same(products[k], rounded(std::ldexp(double(v), b % 61 - 30)));
      wrong += (kinds[k] & 15) !=
               nan + 2 * infinite + 4 * (size < 0x7c00) + 8 * (size >= 0x400 && size < 0x7c00);
      if (!nan) wrong += (kinds[k] >> 4) != b >> 15;
      if (nan || infinite || size == 0) continue;
      if (b != 0x7bff) wrong += !same(above[k], step(b, 1));
      if (b != 0xfbff) wrong += !same(below[k], step(b, -1));
    }
    CHECK(wrong == 0);
  });
}

TEST_CASE("f16: a product that is a zero keeps its sign") {
  on_every_device([](qn::Device& device) {
    const std::vector<float> a = {-0.0f, 0.0f, -0.0f, 1e-30f, -1e-30f, 3e-5f, 0.0f};
    const std::vector<float> b = {2.0f, -2.0f, -2.0f, -1e-30f, -1e-30f, -1e-6f, 5.0f};
    const int n = int(a.size());
    for (bool strict : {false, true}) {
      qn::Field<float> x{device, {n}}, y{device, {n}};
      qn::Field<half> product{device, {n}}, negated{device, {n}}, halves{device, {n}};
      x.copy_from(a);
      y.copy_from(b);
      qn::Kernel k{[&] {
                     for (auto i : x) {
                       product[i] = cast<half>(x[i] * y[i]);
                       negated[i] = -cast<half>(x[i] * y[i]);
                       halves[i] = cast<half>(x[i]) * cast<half>(y[i]);
                     }
                   },
                   {.strict = strict}};
      k();
      for (int i = 0; i < n; i++) {
        CAPTURE(i, strict);
        const float u = a[size_t(i)], v = b[size_t(i)];
        CHECK(product.at(i).bits() == rounded(u * v));
        CHECK(negated.at(i).bits() == (rounded(u * v) ^ 0x8000));
        const double of_halves = double(float(half(u))) * double(float(half(v)));
        CHECK(halves.at(i).bits() == rounded(of_halves));
      }
    }
  });
}
