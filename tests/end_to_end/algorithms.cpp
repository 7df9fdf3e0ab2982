// The algorithms on fields against the standard library's.
#include <quern/algorithms.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>

#include "tests/end_to_end/devices.h"

using namespace quern::lang;

namespace {

/// One chunk and less, several, and (but for the interpreter) several levels of chunks.
std::vector<int> sizes(const qn::Device& device) {
  std::vector<int> out = {0, 1, 2, 1023, 1024, 1025, 5000};
  if (device.name() == std::string("cpu")) out.push_back(1'200'000);
  return out;
}

/// Bits of every length, so that small and great magnitudes come.
template <class T>
std::vector<T> numbers(int size, unsigned seed) {
  std::mt19937_64 random(seed);
  std::vector<T> out;
  for (int k = 0; k < size; k++) {
    const uint64_t bits = random() >> (random() % 64);
    const bool negative = random() % 2;
    if constexpr (std::is_floating_point_v<T>)
      out.push_back((negative ? -T(1) : T(1)) * T(double(bits)) / T(1 << 20));
    else
      out.push_back(negative ? T(~bits) : T(bits));
  }
  return out;
}

/// Software Vulkan takes seconds to compile each of the kernels that sort, one for each type of
/// keys and values and order: there a few types stand for all.
bool compiles_slowly(const qn::Device& device) { return device.name() == std::string("vulkan"); }

template <class T>
qn::Field<T> field_of(const qn::Device& device, const std::vector<T>& v) {
  qn::Field<T> f{device, {v.size()}};
  f.copy_from(v);
  return f;
}

template <class F>
std::string message_of(F f) {
  try {
    f();
  } catch (const qn::Error& e) {
    CHECK(std::string(e.loc().file).find("algorithms.cpp") != std::string::npos);
    return e.message();
  }
  return "no error";
}

/// NaNs and zeros told apart by their bits.
template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

/// The order that the documentation states, by comparisons alone.
template <class K>
bool before(K a, K b) {
  if constexpr (std::is_floating_point_v<K>) {
    if (std::isnan(a) || std::isnan(b)) return !std::isnan(a) && std::isnan(b);
    if (a == b) return std::signbit(a) && !std::signbit(b);
  }
  return a < b;
}
template <class K>
bool after(K a, K b) {
  if constexpr (std::is_floating_point_v<K>)
    if (std::isnan(a) || std::isnan(b)) return !std::isnan(a) && std::isnan(b);
  return before(b, a);
}

template <class K>
void check_sort(const qn::Device& device, const std::vector<K>& keys, qn::Order order) {
  INFO(keys.size() << " keys of " << sizeof(K) << " bytes");
  std::vector<int> place(keys.size());
  std::iota(place.begin(), place.end(), 0);
  std::vector<int> want_place = place;
  std::stable_sort(want_place.begin(), want_place.end(), [&](int a, int b) {
    const K x = keys[size_t(a)], y = keys[size_t(b)];
    return order == qn::Order::ascending ? before(x, y) : after(x, y);
  });
  std::vector<K> want;
  for (int k : want_place) want.push_back(keys[size_t(k)]);

  qn::Field<K> alone = field_of(device, keys), with = field_of(device, keys);
  qn::Field<int> value = field_of(device, place);
  sort(alone, order);
  sort_by_key(with, value, order);
  CHECK(same_bits(qn::to_vector(alone), want));
  CHECK(same_bits(qn::to_vector(with), want));
  CHECK(qn::to_vector(value) == want_place);
}

template <class K>
void check_sorts(const qn::Device& device) {
  for (int size : sizes(device)) {
    const std::vector<K> keys = numbers<K>(size, 7);
    check_sort(device, keys, qn::Order::ascending);
    if (size <= 5000 && !compiles_slowly(device)) check_sort(device, keys, qn::Order::descending);
  }
  std::vector<K> sorted = numbers<K>(2000, 8);
  std::sort(sorted.begin(), sorted.end());
  check_sort(device, sorted, qn::Order::ascending);
  check_sort(device, std::vector<K>(sorted.rbegin(), sorted.rend()), qn::Order::ascending);
  check_sort(device, std::vector<K>(2000, K(3)), qn::Order::ascending);
}

template <class T, class U>
void check_scans(const qn::Device& device) {
  for (int size : sizes(device)) {
    INFO(size << " elements of " << sizeof(T) << " bytes");
    std::vector<T> v = numbers<T>(size, 3);
    if constexpr (std::is_floating_point_v<T>)  // sums that are exact in any order
      for (int k = 0; k < size; k++) v[size_t(k)] = T(k * 37 % 101 - 50);
    std::vector<U> inclusive(v.size()), exclusive(v.size());
    U sum = 0, after_init = 5;
    for (size_t k = 0; k < v.size(); k++) {
      inclusive[k] = sum = U(sum + U(v[k]));
      exclusive[k] = after_init;
      after_init = U(after_init + U(v[k]));
    }
    qn::Field<T> in = field_of(device, v);
    qn::Field<U> out{device, {size}};
    CHECK(U(inclusive_scan(in, out)) == sum);
    CHECK(qn::to_vector(out) == inclusive);
    CHECK(U(exclusive_scan(in, out, 5)) == after_init);
    CHECK(qn::to_vector(out) == exclusive);
    if constexpr (std::is_same_v<T, U>) {
      CHECK(U(exclusive_scan(in, in, 5)) == after_init);
      CHECK(qn::to_vector(in) == exclusive);
    }
  }
}

}  // namespace

TEST_CASE("reductions of a field") {
  on_every_device([](qn::Device& device) {
    for (int size : sizes(device)) {
      INFO(size << " elements");
      std::vector<int> v(static_cast<size_t>(size));
      for (size_t k = 0; k < v.size(); k++) v[k] = int(k * 7919 % 2003) - 1000;
      qn::Field<int> x = field_of(device, v);
      const int64_t want = std::accumulate(v.begin(), v.end(), int64_t(0));
      CHECK(int64_t(sum(x)) == want);
      CHECK(double(sum<double>(x)) == double(want));
      if (size == 0) continue;
      CHECK(int(min(x)) == *std::min_element(v.begin(), v.end()));
      CHECK(int(max(x)) == *std::max_element(v.begin(), v.end()));
      CHECK(int64_t(argmin(x)) == std::min_element(v.begin(), v.end()) - v.begin());
      CHECK(int64_t(argmax(x)) == std::max_element(v.begin(), v.end()) - v.begin());
      CHECK(int(reduce(x, -5000, [](auto a, auto b) { return max(a, b); })) ==
            *std::max_element(v.begin(), v.end()));
    }
    qn::Field<uint8_t, 2> u{device, {50, 30}};
    u.fill(200);
    CHECK(uint64_t(sum(u)) == 200 * 50 * 30);
    qn::Field<int> small = field_of(device, std::vector<int>{3, -4, 5});
    CHECK(int64_t(product(small)) == -60);
    qn::Field<bool, 2> flags{device, {40, 40}};
    qn::Kernel mark = [&] {
      for (auto [i, j] : flags) flags(i, j) = i < j;
    };
    mark();
    CHECK(int64_t(count(flags)) == 40 * 39 / 2);
    CHECK(bool(any(flags)));
    CHECK(!bool(all(flags)));
    const float nan = std::numeric_limits<float>::quiet_NaN();
    qn::Field<float> f = field_of(device, std::vector<float>{nan, 2, -1, nan});
    CHECK(float(min(f)) == -1);
    CHECK(float(max(f)) == 2);
    CHECK(std::isnan(float(sum(f))));
  });
}

TEST_CASE("a field summed in double keeps what single precision would lose") {
  on_every_device([](qn::Device& device) {
    qn::Field<float> x = field_of(device, std::vector<float>{0x1p30f, 1, 1, 1, -0x1p30f});
    CHECK(double(sum<double>(x)) == 3);
  });
}

TEST_CASE("scans of a field") {
  on_every_device([](qn::Device& device) {
    check_scans<int, int64_t>(device);
    check_scans<uint8_t, int64_t>(device);
    check_scans<uint64_t, uint64_t>(device);
    check_scans<double, double>(device);
    check_scans<float, float>(device);
  });
}

TEST_CASE("sorting integers") {
  on_every_device([](qn::Device& device) {
    check_sorts<int>(device);
    check_sorts<uint64_t>(device);
    if (compiles_slowly(device)) return;
    check_sorts<uint8_t>(device);
    check_sorts<int8_t>(device);
    check_sorts<int16_t>(device);
    check_sorts<int64_t>(device);
  });
}

TEST_CASE("sorting floats: -0 before +0, NaNs last") {
  on_every_device([](qn::Device& device) {
    check_sorts<float>(device);
    check_sorts<double>(device);
    auto special = [&](auto zero) {
      using K = decltype(zero);
      using L = std::numeric_limits<K>;
      const K nan = L::quiet_NaN();
      const K some[] = {nan,
                        1,
                        -zero,
                        L::infinity(),
                        zero,
                        -nan,
                        -1,
                        -L::infinity(),
                        nan,
                        -2,
                        zero,
                        L::denorm_min(),
                        -L::denorm_min(),
                        -zero,
                        L::max(),
                        L::lowest()};
      std::vector<K> keys;
      for (int k = 0; k < 500; k++) keys.push_back(some[k * 7 % 16]);
      check_sort(device, keys, qn::Order::ascending);
      if (sizeof(K) == 4 || !compiles_slowly(device))
        check_sort(device, keys, qn::Order::descending);
    };
    special(0.0f);
    special(0.0);
  });
}

TEST_CASE("sorting moves values of any type, in views as well") {
  on_every_device([](qn::Device& device) {
    const std::vector<uint8_t> keys = numbers<uint8_t>(3000, 5);
    std::vector<vec3> values;
    for (int k = 0; k < 3000; k++) values.push_back(vec3(float(k), float(keys[size_t(k)]), -1));
    std::vector<vec3> want = values;
    std::stable_sort(want.begin(), want.end(), [](vec3 a, vec3 b) { return a.y < b.y; });
    qn::Field<uint8_t> key = field_of(device, keys);
    qn::Field<vec3> value = field_of(device, values);
    sort_by_key(key, value);
    CHECK(qn::to_vector(value) == want);

    qn::Field<int, 2> table{device, {100, 3}};
    qn::Kernel fill = [&] {
      for (auto [i, j] : table) table(i, j) = (i * 37 + 11) % 100 + 1000 * j;
    };
    fill();
    sort(table.select(1, 1));
    for (int k : {0, 1, 50, 99}) {
      CHECK(table.at(k, 1) == 1000 + k);
      CHECK(table.at(k, 0) == (k * 37 + 11) % 100);
    }
  });
}

TEST_CASE("compact keeps the flagged elements in order") {
  on_every_device([](qn::Device& device) {
    for (int size : sizes(device)) {
      const std::vector<int> v = numbers<int>(size, 11);
      std::vector<int> want;
      std::copy_if(v.begin(), v.end(), std::back_inserter(want), [](int e) { return e % 3 == 0; });
      qn::Field<int> in = field_of(device, v), out{device, {size}};
      qn::Field<bool> flags{device, {size}};
      qn::Kernel mark = [](qn::Field<int> from, qn::Field<bool> to) {
        for (auto i : to) to[i] = from[i] % 3 == 0;
      };
      mark(in, flags);
      CHECK(compact(in, flags, out) == int64_t(want.size()));
      std::vector<int> got = qn::to_vector(out);
      got.resize(want.size());
      CHECK(got == want);
    }
  });
}

TEST_CASE("histograms count every value once") {
  on_every_device([](qn::Device& device) {
    for (int size : sizes(device))
      for (int bins : {1, 7, 256, 3000, 6000}) {  // in small tables, large ones, and in place
        INFO(size << " values, " << bins << " bins");
        std::vector<int> v = numbers<int>(size, 13), want(static_cast<size_t>(bins));
        for (int& e : v) want[size_t(e = (e & 0xffffff) % bins)]++;
        qn::Field<int> values = field_of(device, v), count{device, {bins}};
        count.fill(77);
        CHECK(int64_t(histogram(values, count)) == 0);
        CHECK(qn::to_vector(count) == want);
      }
  });
}

TEST_CASE("algorithms refuse fields that do not fit") {
  on_every_device([](qn::Device& device) {
    qn::Field<int> ten{device, {10}}, twelve{device, {12}}, none{device, {0}}, two{device, {2}};
    qn::Field<bool> flags{device, {10}};
    flags.fill(true);
    CHECK(message_of([&] { inclusive_scan(ten, twelve); }) ==
          "inclusive_scan of fields of different shapes: (10) and (12)");
    CHECK(message_of([&] { exclusive_scan(ten, twelve); }) ==
          "exclusive_scan of fields of different shapes: (10) and (12)");
    CHECK(message_of([&] { sort_by_key(ten, twelve); }) ==
          "sort_by_key of fields of different shapes: (10) and (12)");
    CHECK(message_of([&] {
            sort_by_key(ten, ten);
          }).find("sort_by_key of fields that share memory") == 0);
    CHECK(message_of([&] {
            inclusive_scan(ten.slice(0, 0, 5), ten.slice(0, 1, 6));
          }).find("inclusive_scan of different fields that share memory") == 0);
    CHECK(message_of([&] { compact(ten, flags, two); }) ==
          "compact keeps 10 of 10 elements; its output has room for 2");
    CHECK(two.at(0) == 0);
    CHECK(message_of([&] { min(none); }) == "min of a field without elements");
    CHECK(message_of([&] {
            qn::Kernel k = [&] { sum(ten); };
          }).find("sum is called while a kernel or function is recorded") == 0);
  });
}

TEST_CASE("a histogram leaves out values that have no bin") {
  on_every_device([](qn::Device& device) {
    qn::Field<int> values = field_of(device, std::vector<int>{0, 2, -1, 3, 2, 1 << 30}),
                   bins{device, {3}};
    using qn::detail::Source;
    for (bool checked : {false, true}) {  // where the caller's file is compiled for debugging
      const Source source = Source::here(checked);
      const bool refuses = qn::detail::is_checked({}, checked);  // QUERN_CHECKED overrides
      const std::string message = message_of([&] {
        if (int64_t(histogram(values, bins, source)) == 3) throw qn::Error(source.loc, "counted");
      });
      CHECK(message ==
            (refuses ? "histogram: 3 of 6 values are not among its bins, 0 to 2" : "counted"));
      CHECK(qn::to_vector(bins) == std::vector<int>{1, 0, 2});
    }
  });
}

TEST_CASE("a histogram of an interval counts the ends and leaves out NaNs") {
  on_every_device([](qn::Device& device) {
    using L = std::numeric_limits<float>;
    const float nan = L::quiet_NaN(), inf = L::infinity();
    qn::Field<float> values =
        field_of(device, std::vector<float>{-1, -0.5f, -0.0f, 0.5f, 1, 0.99f, 1.01f, -1.01f, nan,
                                            inf, -inf, -0.51f, 0.49f});
    for (int size : {4, 400, 5000}) {  // in small tables, and in place
      INFO(size << " bins");
      qn::Field<int64_t> bins{device, {size}};
      bins.fill(77);
      CHECK(int64_t(histogram(values, bins, -1, 1)) == 5);
      std::vector<int64_t> want(static_cast<size_t>(size));
      for (double v : {-1.0, -0.5, 0.0, 0.5, double(0.99f), double(-0.51f), double(0.49f)})
        want[size_t((v + 1) * size / 2)]++;
      want.back()++;  // 1 itself
      CHECK(qn::to_vector(bins) == want);
    }
    qn::Field<int> bins{device, {4}};
    for (auto [lo, hi] :
         {std::pair(1.0f, 1.0f), {2.0f, 1.0f}, {nan, 1.0f}, {0.0f, inf}, {L::lowest(), L::max()}})
      CHECK(message_of([&] { histogram(values, bins, lo, hi); }).find("histogram from ") == 0);
    qn::Field<float> none{device, {0}};
    bins.fill(77);
    CHECK(int64_t(histogram(none, bins, 0, 1)) == 0);
    CHECK(qn::to_vector(bins) == std::vector<int>(4));

    std::mt19937 random(5);
    std::vector<float> many(70'001);
    std::vector<int> want(4);
    for (float& v : many) {
      v = float(random() % 4096) / 1024;
      want[size_t(v)]++;
    }
    CHECK(int64_t(histogram(field_of(device, many), bins, 0, 4)) == 0);
    CHECK(qn::to_vector(bins) == want);
  });
}

TEST_CASE("dot products of fields") {
  on_every_device([](qn::Device& device) {
    for (int size : sizes(device)) {
      INFO(size << " elements");
      std::vector<int> a(static_cast<size_t>(size)), b = a;
      std::vector<float> f(a.size()), g(a.size());
      int64_t want = 0, small = 0;
      for (size_t k = 0; k < a.size(); k++) {
        a[k] = int(k * 7919 % 200'003) - 100'000;  // products beyond 32 bits
        b[k] = int(k * 31 % 100'003) - 50'000;
        want += int64_t(a[k]) * b[k];
        f[k] = float(int(k % 7) - 3);  // sums that are exact in any order
        g[k] = float(int(k % 5) - 2);
        small += int64_t(f[k] * g[k]);
      }
      CHECK(int64_t(dot(field_of(device, a), field_of(device, b))) == want);
      qn::Field<float> x = field_of(device, f), y = field_of(device, g);
      CHECK(float(dot(x, y)) == float(small));
      CHECK(float(dot(x, y, {.deterministic = true})) == float(small));
      CHECK(double(dot<double>(x, y)) == double(small));
    }
    qn::Field<int> two{device, {2}}, three{device, {3}};
    CHECK(message_of([&] { dot(two, three); }) == "dot of fields of different shapes: (2) and (3)");
    qn::Field<int, 2> table{device, {3, 4}}, moved{device, {3, 4}, qn::offset(-1, 7)};
    table.fill(3);
    moved.fill(5);
    CHECK(int64_t(dot(table, moved)) == 3 * 4 * 15);
  });
}

namespace {
/// x -> a x + b modulo 2^32, applied after the map on its right: associative, not commutative.
using Affine = qn::Vec<uint32_t, 2>;
struct After {
  template <class A>
  auto operator()(const A& f, const A& g) const {
    return qn::Val<Affine>(vec(f.x * g.x, f.x * g.y + f.y));
  }
};
Affine after_on_host(Affine f, Affine g) { return Affine(f.x * g.x, f.x * g.y + f.y); }
}  // namespace

TEST_CASE("operators that do not commute keep the order of the elements") {
  on_every_device([](qn::Device& device) {
    const Affine init(3, 1);
    for (int size : sizes(device)) {
      INFO(size << " elements");
      std::mt19937 random(9);
      std::vector<Affine> maps;
      for (int k = 0; k < size; k++) maps.push_back({uint32_t(random()) | 1, uint32_t(random())});
      Affine want = init;
      std::vector<Affine> exclusive, inclusive;
      for (const Affine& m : maps) {
        exclusive.push_back(want);
        want = after_on_host(want, m);
        inclusive.push_back(inclusive.empty() ? m : after_on_host(inclusive.back(), m));
      }
      qn::Field<Affine> x = field_of(device, maps), out{device, {size}};
      CHECK(Affine(reduce(x, init, After{})) == want);
      CHECK(Affine(exclusive_scan(x, out, init, After{})) == want);
      CHECK(qn::to_vector(out) == exclusive);
      inclusive_scan(x, out, After{});
      CHECK(qn::to_vector(out) == inclusive);
      inclusive_scan(x, x, After{});
      CHECK(qn::to_vector(x) == inclusive);
    }
    qn::Field<Affine, 2> table{device, {50, 43}};
    qn::Kernel fill = [&] {
      for (auto [i, j] : table) {
        Val<uint32_t> k = cast<uint32_t>(i * 43 + j);
        table(i, j) = vec(2 * k + 1, k * k);
      }
    };
    fill();
    Affine want = init;
    for (uint32_t k = 0; k < 50 * 43; k++) want = after_on_host(want, {2 * k + 1, k * k});
    CHECK(Affine(reduce(table, init, After{})) == want);
  });
}

TEST_CASE("compact by a predicate, and leaves what lies behind") {
  on_every_device([](qn::Device& device) {
    for (int size : sizes(device))
      for (int kind = 0; kind < 3; kind++) {  // some, none, all
        INFO(size << " elements");
        std::vector<int> v = numbers<int>(size, 17), want;
        for (int& e : v) e = kind == 0 ? e : kind == 1 ? -7 : 7;
        std::copy_if(v.begin(), v.end(), std::back_inserter(want), [](int e) { return e > 0; });
        qn::Field<int> in = field_of(device, v), out{device, {size + 1}};
        out.fill(-99);
        CHECK(compact(in, [](auto e) { return e > 0; }, out) == int64_t(want.size()));
        want.resize(v.size() + 1, -99);
        CHECK(qn::to_vector(out) == want);
      }
  });
}

TEST_CASE("algorithms count beyond 2^31 elements", "[cpu][.long][large-fields]") {
  qn::Device device("cpu");
  const int64_t size = (int64_t(1) << 31) + 5000;
  qn::Field<uint8_t> x{device, {size}};
  x.fill(3);
  const std::pair<int64_t, uint8_t> odd[] = {{0, 200}, {size / 2, 201}, {size - 1, 202}};
  for (auto [at, v] : odd) x.slice(0, at, at + 1).fill(v);
  CHECK(uint64_t(sum(x)) == uint64_t(size - 3) * 3 + 603);
  CHECK(int64_t(argmax(x)) == size - 1);
  CHECK(uint64_t(reduce(x, uint64_t(7), [](auto a, auto b) { return a + b; })) ==
        uint64_t(size - 3) * 3 + 610);
  qn::Field<uint8_t> kept{device, {5}};
  CHECK(compact(x, [](auto v) { return v > 100; }, kept) == 3);
  CHECK(qn::to_vector(kept) == std::vector<uint8_t>{200, 201, 202, 0, 0});
  qn::Field<uint32_t> bins{device, {202}};
  CHECK(int64_t(histogram(x, bins, qn::detail::Source::here(false))) == 1);
  CHECK(bins.at(3) == uint32_t(size - 3));
  CHECK(bins.at(201) == 1);
  qn::Field<int64_t> wide{device, {5000}};
  CHECK(int64_t(histogram(x, wide)) == 0);
  CHECK(wide.at(3) == size - 3);
  qn::Field<int> narrow{device, {256}};
  CHECK(message_of([&] { histogram(x, narrow); }) ==
        "histogram of 2147488648 values: a bin of 32 bits counts to 2147483647; give it bins of 64 "
        "bits");
}
