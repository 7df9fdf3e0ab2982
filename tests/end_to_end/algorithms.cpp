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
    CHECK(int64_t(histogram(values, bins, Source::here(false))) == 3);
    CHECK(qn::to_vector(bins) == std::vector<int>{1, 0, 2});
    CHECK(message_of([&] { histogram(values, bins, Source::here(true)); }) ==
          "histogram: 3 of 6 values are not among its bins, 0 to 2");
  });
}
