// Domains and fields without elements, at the limits of their types, and beyond 2^31.
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <fstream>

#include "tests/end_to_end/devices.h"

using namespace qn::lang;

namespace {
bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Bytes that this machine can give without taking them from somebody; 0 where it does not say.
uint64_t available_memory() {
  std::ifstream info("/proc/meminfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("MemAvailable:")) return std::stoull(line.substr(13)) << 10;
  return 0;
}
}  // namespace

// ---- nothing to do

TEST_CASE("fields without elements, on any axis") {
  on_every_device([](qn::Device& device) {
    qn::Kernel touch = [](qn::Field<double, 3> u, qn::Field<int> count) {
      Var<int> seen = 0;
      for (auto [i, j, k] : u) {
        u(i, j, k) = i + j + k;
        count[0] += 1;
      }
      for (auto I : u.wide()) {
        u[I] += 1.0;
        seen += 1;
      }
      for (auto I : serial(u)) u[I] = u[I] + 1;
      return seen;
    };
    const int shapes[][3] = {{0, 4, 5}, {4, 0, 5}, {4, 5, 0}, {0, 0, 3}, {0, 0, 0}, {2, 3, 1}};
    for (auto [n, m, p] : shapes) {
      qn::Field<int> count{device, {1}};
      qn::Field<double, 3> u{device, {n, m, p}}, v{device, {n, m, p}};
      REQUIRE(u.size() == n * m * p);
      u.fill(0.1);  // its halves differ
      CHECK(int(touch(u, count)) == n * m * p);
      CHECK(count.at(0) == n * m * p);
      u.swap(v);
      CHECK(qn::to_vector(u) == std::vector<double>(size_t(n * m * p), 0.0));
      CHECK(qn::to_vector(v).size() == size_t(n * m * p));
      v.copy_from(qn::to_vector(u));
      CHECK(has(error_of([&] { u.at(n, 0, 0); }), "index " + std::to_string(n) + " on axis 0"));
    }
  });
}

TEST_CASE("ranges that are empty or end before they begin") {
  on_every_device([](qn::Device& device) {
    qn::Kernel count = [](I32 lo, I32 hi) {
      Var<int> one = 0, two = 0, three = 0, inner = 0;
      for (auto i : range(lo, hi)) {
        one += 1;
        check(i >= lo && i < hi, "{} is outside", i);
      }
      for (auto [i, j] : grid(lo, hi)) {
        two += 1;
        check(i < lo && j < hi, "{} {} is outside", i, j);
      }
      for (auto r : serial(range(hi))) three += r - r + 1;
      for (auto k : range(2)) {
        Var<int> mine = 0;
        for (auto i : range(lo, hi)) mine += i - i + 1 + k - k;
        for (auto [i, j] : grid(hi, lo)) mine += 100 + i - i + j - j;
        inner += mine;
      }
      return result(one, two, three, inner);
    };
    auto up = [](int n) { return n < 0 ? 0 : n; };
    const int pairs[][2] = {{0, 0},
                            {5, 2},
                            {-3, 0},
                            {0, -3},
                            {-7, -9},
                            {-9, -7},
                            {3, 4},
                            {-4, -5},
                            {INT_MAX, INT_MIN},
                            {INT_MIN, -INT_MAX},
                            {7, 1},
                            {-1, -1},
                            {1, 6}};
    for (auto [lo, hi] : pairs) {
      CAPTURE(lo, hi);
      auto [one, two, three, inner] = count(lo, hi);
      int64_t length = int64_t(hi) - lo;
      CHECK(int(one) == (length < 0 ? 0 : length));
      CHECK(int(two) == up(lo > hi ? hi : lo) * up(lo > hi ? lo : hi));
      CHECK(int(three) == (hi < 0 ? 0 : hi));
      CHECK(int(inner) == 2 * ((length < 0 ? 0 : length) + 100 * up(lo) * up(hi)));
      device.synchronize();
    }
  });
}

TEST_CASE("loops over as many iterations as an earlier loop has counted") {
  on_every_device([](qn::Device& device) {
    constexpr int n = 3000;
    qn::Field<int> x{device, {n}}, y{device, {n}}, z{device, {n}}, w{device, {3}};
    qn::Field<int, 2> pairs{device, {n, 3}};
    qn::Kernel work = [&](I32 limit) {
      Var<int> found = 0, sum = 0, most = 0;
      Var<int64_t> far = 0;
      for (auto i : x) If(x[i] < limit) {
          found += 1;
        }
      for (auto i : range(found)) y[i] = i + 1;
      for (auto i : range(found - 10, found)) sum += i;
      for (auto i : range(10, min(found, 100))) z[i] = 7 * i;
      for (auto [i, j] : grid(found, 3)) pairs(i, j) = 10 * i + j;
      for (auto [j, i] : grid(3, max(found, 5) - 5)) w[j] += i - i + 1;
      for (auto i : range(I64(found) * 2)) far += i;
      If(found > 1000) {
        for (auto i : range(found)) atomic_max(most, i);
      }
      return result(found, sum, far, most);
    };
    std::vector<int> values(n);
    for (int k = 0; k < n; k++) values[size_t(k)] = k * 7919 % n;  // each number once
    x.copy_from(values);
    for (int limit : {0, 1, 4, 10, 57, 1000, 1001, n, n + 5, -5}) {
      CAPTURE(limit);
      y.fill(0), z.fill(0), w.fill(0), pairs.fill(0);
      auto [found, sum, far, most] = work(limit);
      const int count = std::clamp(limit, 0, n);
      CHECK(int(found) == count);
      CHECK(int(sum) == 10 * count - 55);
      CHECK(int64_t(far) == int64_t(count) * (2 * count - 1));
      CHECK(int(most) == (count > 1000 ? count - 1 : 0));
      std::vector<int> ys(n), zs(n), all(3 * n);
      for (int k = 0; k < count; k++) ys[size_t(k)] = k + 1;
      for (int k = 10; k < std::min(count, 100); k++) zs[size_t(k)] = 7 * k;
      for (int k = 0; k < 3 * count; k++) all[size_t(k)] = 10 * (k / 3) + k % 3;
      CHECK(qn::to_vector(y) == ys);
      CHECK(qn::to_vector(z) == zs);
      CHECK(qn::to_vector(pairs) == all);
      CHECK(qn::to_vector(w) == std::vector<int>(3, std::max(count - 5, 0)));
    }
  });
}

TEST_CASE("a range may end at the largest index and begin at the smallest") {
  on_every_device([](qn::Device& device) {
    qn::Field<int64_t> out{device, {3}};
    qn::Kernel k = [&](I32 top, I32 bottom, I64 far) {
      Var<int64_t> a = 0, b = 0, c = 0;
      for (auto i : range(top - 3, top)) a += i;
      for (auto i : range(bottom, bottom + 3)) b += i;
      for (auto i : range(far, far + 2)) c += i;
      out[0] = a;
      out[1] = b;
      out[2] = c;
    };
    k(INT_MAX, INT_MIN, int64_t(1) << 40);
    CHECK(out.at(0) == 3 * int64_t(INT_MAX) - 6);
    CHECK(out.at(1) == 3 * int64_t(INT_MIN) + 3);
    CHECK(out.at(2) == 2 * (int64_t(1) << 40) + 1);
  });
}

TEST_CASE("domains of more than 2^63 iterations are errors, unless an axis is empty") {
  on_every_device([](qn::Device& device) {
    qn::Field<int> x{device, {1}};
    int line = 0;
    qn::Kernel k = [&](I32 n, I32 last) {
      line = __LINE__ + 1;
      for (auto I : grid(n, n, n, last)) x[0] += I.x;
    };
    int at = 0;
    std::string text = error_of([&] { k(INT_MAX, 1); }, &at);
    CHECK(has(text, "2^63"));
    CHECK(at == line);
    k(INT_MAX, 0);
    k(INT_MAX, -1);
    k(1, 1);
    CHECK(x.at(0) == 0);
    device.synchronize();
  });
}

// ---- sizes

TEST_CASE("a field of more than 2^31 elements: wide loops work, narrow ones are errors", "[cpu]") {
  if (available_memory() < uint64_t(6) << 30) {
    NOT_RUN("less than 6 GiB of memory are available");
    return;
  }
  qn::Device device("cpu");
  const int64_t n = (int64_t(1) << 31) + 5;
  qn::Field<uint8_t> x{device, {n}};
  qn::Kernel mark = [&] {
    for (auto i : x.wide()) If(i % 1000003 == 0 || i > 2147483640) x[i] = cast<uint8_t>(i % 251);
  };
  qn::Kernel total = [&] {
    Var<int64_t> sum = 0;
    for (auto i : x.wide()) sum += cast<int64_t>(x[i]);
    return sum;
  };
  mark();
  int64_t want = 0;
  for (int64_t i = 0; i < n; i += 1000003) want += i % 251;
  for (int64_t i = 2147483641; i < n; i++)
    if (i % 1000003 != 0) want += i % 251;
  CHECK(int64_t(total()) == want);
  CHECK(x.at(n - 1) == (n - 1) % 251);
  CHECK(x.at(n - 6) == (n - 6) % 251);
  const int narrow = __LINE__ + 2;
  qn::Kernel k = [&] {
    for (auto i : x) x[i] = 1;
  };
  int line = 0;
  std::string text = error_of([&] { k(); }, &line);
  CHECK(has(text, "2147483653"));
  CHECK(has(text, "wide()"));
  CHECK(line == narrow);
  CHECK(x.at(1) == 0);
}

/// Code for fewer iterations counts them in 32 bits: the kernel is compiled a second time.
TEST_CASE("a loop of more than 2^31 iterations, before and after short ones",
          "[.long][large-fields]") {
  on_every_device([](qn::Device& device) {
    if (std::string(device.name()) == "interpreter")
      return report_not_run("interpreter", "2^31 iterations take hours");
    qn::Field<int> hits{device, {64}};
    qn::Kernel mark = [&](I32 n, I32 m) {
      for (auto [i, j] : grid(n, m)) If(i == j) atomic_add(hits[i % 64], 1);
    };
    mark(130, 100);
    mark(46340, 46341);  // 2^31 - 41708: no thread's index may pass 2^32
    mark(46341, 46342);  // 2^31 + 50974
    mark(46342, 3);
    std::vector<int> want(64, 0), found(64);
    for (int n : {100, 46340, 46341, 3})
      for (int i = 0; i < n; i++) want[size_t(i % 64)]++;
    hits.copy_to(found);
    CHECK(found == want);
  });
}

TEST_CASE("no memory is an error that names the field's line; the device stays usable") {
  on_every_device([](qn::Device& device) {
    qn::Field<int> before{device, {8}};
    before.fill(4);
    for (int64_t n : {int64_t(1) << 45, int64_t(1) << 58}) {
      int line = 0;
      const int here = __LINE__ + 1;
      std::string text = error_of([&] { qn::Field<double> x(device, {n}); }, &line);
      CHECK(has(text, std::to_string(n)));
      CHECK(line == here);
    }
    int line = 0;
    const int here = __LINE__ + 2;
    std::string text = error_of(
        [&] { qn::Field<double, 2> x(device, {int64_t(1) << 40, int64_t(1) << 40}); }, &line);
    CHECK(has(text, "2^63"));
    CHECK(line == here);
    qn::Field<int> after{device, {8}};
    qn::Kernel k = [&] {
      for (auto i : after) after[i] = before[i] + i;
    };
    k();
    CHECK(after.at(7) == 11);
  });
}
