// What programs do besides computing: threads, empty domains, lifetimes, many launches, full
// buffers, no memory.
#include <sys/sysinfo.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdio>
#include <optional>
#include <stdexcept>
#include <thread>

#include "tests/end_to_end/devices.h"
#include "tests/end_to_end/output.h"

using namespace qn::lang;

namespace {
bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}
/// Runs f(0) and f(1) at once; Catch2's assertions are not for threads, so f counts its failures.
template <class F>
int failures_of_two_threads(F f) {
  int failures[2] = {};
  auto run = [&](int t) {
    try {
      failures[t] = f(t);
    } catch (...) {
      failures[t] = -1000;
    }
  };
  std::thread other([&] { run(1); });
  run(0);
  other.join();
  return failures[0] + failures[1];
}
}  // namespace

// ---- threads

TEST_CASE("two threads launch one kernel: nothing is lost, each gets its own results") {
  on_every_device([](qn::Device& device) {
    qn::Field<int> x{device, {100}};
    qn::Kernel add = [&](I32 a) {
      Var<int> sum = 0;
      for (auto i : x) {
        x[i] = x[i] + 1;
        sum += a;
      }
      return sum;
    };
    int failures = failures_of_two_threads([&](int t) {
      int wrong = 0;
      for (int k = 0; k < 100; k++) wrong += int(add(1000 * t + k)) != 100 * (1000 * t + k);
      return wrong;
    });
    CHECK(failures == 0);
    CHECK(qn::to_vector(x) == std::vector<int>(100, 200));
  });
}

TEST_CASE("two threads record, compile and launch kernels of their own on one device") {
  on_every_device([](qn::Device& device) {
    int failures = failures_of_two_threads([&](int t) {
      int wrong = 0;
      for (int k = 0; k < 8; k++) {
        qn::Field<int> x{device, {50 + k}};
        qn::Kernel fill = [&] {
          for (auto i : x) x[i] = i * (t + 2) + k;
        };
        fill();
        std::vector<int> out = qn::to_vector(x);
        for (int i = 0; i < 50 + k; i++) wrong += out[size_t(i)] != i * (t + 2) + k;
      }
      return wrong;
    });
    CHECK(failures == 0);
  });
}

TEST_CASE("a check that fails in one of two threads is reported whole") {
  on_every_device([](qn::Device& device) {
    qn::Field<int> x{device, {10}};
    int line = 0;
    qn::Kernel k = [&](I32 a) {
      line = __LINE__ + 1;
      for (auto i : x) check(a + i < 100, "too large: {}", a);
    };
    device.synchronize();
    int caught[2] = {};
    int failures = failures_of_two_threads([&](int t) {
      int wrong = 0;
      for (int r = 0; r < 100; r++) {
        int at = 0;
        std::string text = error_of(
            [&] {
              k(t == 0 ? 500 : 1);
              device.synchronize();
            },
            &at);
        if (text.empty()) continue;
        caught[t]++;
        wrong += at != line || !has(text, "too large: 500");
      }
      return wrong;
    });
    CHECK(failures == 0);
    CHECK(caught[0] + caught[1] > 0);
    CHECK(caught[0] + caught[1] <= 100);
  });
}

// ---- results of launches that failed

TEST_CASE("every read of a failed launch's result throws, from any thread; others stay readable") {
  on_every_device([](qn::Device& device) {
    int line = 0;
    qn::Field<int> x{device, {3}};
    x.fill(1);
    qn::Kernel square = [&](I32 a) {
      Var<int> sum = 0;
      line = __LINE__ + 2;
      for (auto i : x) {
        check(a != 5, "five of {}", i);
        sum += a;
      }
      return sum * a;
    };
    qn::Kernel plain{[&](I32 a) { return a + x[0]; }, {.checked = false}};
    auto before = square(2), before_plain = plain(1);
    auto failed = square(5);
    auto kept_out = square(3), plain_kept_out = plain(3);
    int at = 0;
    CHECK(has(error_of([&] { device.synchronize(); }, &at), "five of"));
    CHECK(at == line);
    auto after = square(4), after_plain = plain(4);
    CHECK(int(before) == 12);
    CHECK(int(before_plain) == 2);
    CHECK(int(after) == 48);
    CHECK(int(after_plain) == 5);
    for (auto* result : {&failed, &kept_out, &plain_kept_out})
      for (int read = 0; read < 2; read++) {
        std::string text = error_of([&] { (void)int(*result); }, &at);
        CHECK(has(text, "five of"));
        CHECK(at == line);
      }
    CHECK(failures_of_two_threads([&](int) {
            int wrong = 0;
            for (int read = 0; read < 20; read++) {
              wrong += !has(error_of([&] { (void)int(failed); }), "five of");
              wrong += int(before) != 12;
            }
            return wrong;
          }) == 0);
  });
}

TEST_CASE("the read that finds an error does not spoil the results before it") {
  on_every_device([](qn::Device& device) {
    qn::Field<int> x{device, {4}};
    qn::Kernel k = [&](I32 a) {
      Var<int> sum = 0;
      for (auto i : x) {
        check(a < 10, "ten");
        sum += a + i;
      }
      return sum;
    };
    auto good = k(1), bad = k(10);
    CHECK(has(error_of([&] { (void)int(good); }), "ten"));  // the first wait
    CHECK(int(good) == 10);
    CHECK(has(error_of([&] { (void)int(bad); }), "ten"));
    CHECK(int(good) == 10);
    device.synchronize();
  });
}

TEST_CASE("two threads read each other's results while one of them fails") {
  on_every_device([](qn::Device& device) {
    qn::Field<int> x{device, {4}};
    qn::Kernel k = [&](I32 a) {
      Var<int> sum = 0;
      for (auto i : x) {
        check(a % 7 != 3, "three");
        sum += a + i;
      }
      return sum;
    };
    std::atomic<int> values = 0;
    int failures = failures_of_two_threads([&](int t) {
      int wrong = 0;
      for (int r = 0; r < 200; r++) {
        const int a = t == 0 ? r : 1;
        auto result = k(a);
        for (int read = 0; read < 2; read++) {
          int got = 0;
          if (error_of([&] { got = int(result); }).empty()) {
            wrong += a % 7 == 3 || got != 4 * a + 6;
            values++;
          }
        }
      }
      return wrong;
    });
    try {
      device.synchronize();
    } catch (const qn::Error&) {
    }
    CHECK(failures == 0);
    CHECK(values > 100);
  });
}

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
  struct sysinfo machine;
  sysinfo(&machine);
  if (uint64_t(machine.freeram) * machine.mem_unit < uint64_t(6) << 30) {
    WARN("not run: less than 6 GiB of memory are free");
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
TEST_CASE("a loop of more than 2^31 iterations, before and after short ones", "[.long]") {
  on_every_device([](qn::Device& device) {
    if (std::string(device.name()) == "interpreter") return;
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

// ---- lifetimes

TEST_CASE("results outlive their kernel and its fields") {
  on_every_device([](qn::Device& device) {
    std::optional<qn::Result<int, float>> kept;
    {
      qn::Field<int> x{device, {1000}};
      x.fill(3);
      qn::Kernel k = [&] {
        Var<int> sum = 0;
        Var<float> top = 0;
        for (auto i : x) {
          sum += x[i];
          atomic_max(top, cast<float>(i));
        }
        return result(sum, top);
      };
      kept.emplace(k());
    }
    auto [sum, top] = *kept;
    CHECK(int(sum) == 3000);
    CHECK(float(top) == 999.0f);
  });
}

TEST_CASE("fields that are destroyed or released while launches use them") {
  on_every_device([](qn::Device& device) {
    const int n = 20000;
    qn::Field<int> out{device, {n}};
    qn::Kernel step = [](qn::Field<int> from, qn::Field<int> to) {
      for (auto i : to) {
        Var<int> v = from[i];
        for (auto r : range(50)) v += r % 2;
        to[i] = to[i] + v;
      }
    };
    for (int round = 0; round < 20; round++) {
      qn::Field<int> a{device, {n}}, b{device, {n}};
      a.fill(round);
      step(a, b);    // b = round + 25
      step(b, out);  // out += round + 50
      if (round % 2) a.release();
    }
    std::vector<int> got = qn::to_vector(out);
    CHECK(got == std::vector<int>(size_t(n), 19 * 20 / 2 + 20 * 50));
  });
}

TEST_CASE("a device handle may go before its fields and kernels") {
  on_every_device([](qn::Device& device) {
    std::optional<qn::Device> own(qn::Device(device.name()));
    qn::Field<int> x{*own, {5}};
    qn::Kernel k = [&] {
      for (auto i : x) x[i] = i;
    };
    own.reset();
    k();
    CHECK(x.at(4) == 4);
  });
}

TEST_CASE("every use of a released field names both lines") {
  on_every_device([](qn::Device& device) {
    qn::Field<int> x{device, {4}}, y{device, {4}};
    qn::Kernel with_parameter = [](qn::Field<int> a) {
      for (auto i : a) a[i] = 1;
    };
    with_parameter(x);
    const std::string released = "robustness.cpp:" + std::to_string(__LINE__ + 1);
    x.release();
    int line = 0;
    auto refused = [&](int here, const std::string& text) {
      CHECK(has(text, released));
      CHECK(line == here);
    };
    refused(__LINE__, error_of([&] { with_parameter(x); }, &line));
    refused(__LINE__, error_of([&] { x.fill(1); }, &line));
    refused(__LINE__, error_of([&] { x.at(0); }, &line));
    refused(__LINE__, error_of([&] { x.set(0, 1); }, &line));
    refused(__LINE__, error_of([&] { y.swap(x); }, &line));
    refused(__LINE__, error_of([&] { qn::to_vector(x); }, &line));
    refused(__LINE__, error_of([&] { x.release(); }, &line));
    with_parameter(y);
    CHECK(y.at(3) == 1);
  });
}

TEST_CASE("a handle that was moved from") {
  on_every_device([](qn::Device& device) {
    qn::Kernel k = [](I32 a) { return a + 1; };
    auto moved = std::move(k);
    int line = 0;
    const int here = __LINE__ + 1;
    std::string text = error_of([&] { k(1); }, &line);
    CHECK(has(text, "moved from"));
    CHECK(line == here);
    auto result = moved(1);
    auto taken = std::move(result);
    CHECK(has(error_of([&] { (void)int(result); }), "moved from"));
    CHECK(int(taken) == 2);
    qn::Device other = std::move(device);  // copies name the same device
    CHECK(std::string(device.name()) == other.name());
    device.synchronize();
  });
}

// ---- random numbers

TEST_CASE("a seed begins a sequence of random numbers, wherever in the program") {
  on_every_device([](qn::Device& device) {
    qn::Field<float> x{device, {50}};
    qn::Kernel draw = [&] {
      for (auto i : x) x[i] = random<float>();
    };
    qn::Kernel other = [&] { return random<float>() + x[0] * 0; };
    auto sequence = [&] {
      std::vector<std::vector<float>> all;
      for (int k = 0; k < 3; k++) {
        draw();
        all.push_back(qn::to_vector(x));
        all.push_back({float(other())});
      }
      return all;
    };
    device.seed(2026);
    auto first = sequence();
    CHECK(first[0] != first[2]);
    CHECK(first[1] != first[3]);
    CHECK(sequence() != first);
    other();
    device.seed(2026);
    CHECK(sequence() == first);
    device.seed(2027);
    CHECK(sequence() != first);
  });
}

// ---- many

TEST_CASE("ten thousand launches without a read") {
  on_every_device([](qn::Device& device) {
    qn::Field<int> x{device, {4}};
    qn::Kernel plain{[&](I32 a) {
                       for (auto i : x) x[i] = x[i] + a;
                     },
                     {.checked = false}};
    qn::Kernel checked{[&](I32 a) {
                         for (auto i : x) x[i] = x[i] + a;
                       },
                       {.checked = true}};
    for (int k = 0; k < 10000; k++) (k % 2 ? plain : checked)(k % 3);
    int want = 0;
    for (int k = 0; k < 10000; k++) want += k % 3;
    CHECK(qn::to_vector(x) == std::vector<int>(4, want));
  });
}

TEST_CASE("an error among thousands of launches is not lost") {
  on_every_device([](qn::Device& device) {
    qn::Field<int> x{device, {4}};
    int line = 0;
    qn::Kernel k{[&](I32 at) {
                   line = __LINE__ + 1;
                   for (auto i : range(1)) x[i + at] = 1;
                 },
                 {.checked = true}};
    int at = 0;
    std::string text = error_of(
        [&] {
          for (int r = 0; r < 5000; r++) k(r == 10 ? 77 : 0);
          device.synchronize();
        },
        &at);
    CHECK(has(text, "77"));
    CHECK(at == line);
    device.synchronize();
    k(1);
    CHECK(x.at(1) == 1);
  });
}

namespace {
size_t count_of(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) n++;
  return n;
}
}  // namespace

TEST_CASE("more printed lines than a device keeps: the loss is told, later lines appear") {
  on_every_device([](qn::Device& device) {
    qn::Kernel talk = [](qn::Field<int> x) {
      for (auto i : x) print("line {} of {}", i, 1.5f);
    };
    qn::Field<int> many{device, {5000}}, few{device, {3}};
    std::string text = output_of([&] {
      talk(many);
      device.synchronize();
    });
    CHECK(count_of(text, "line ") == 4096);
    CHECK(has(text, "904 further lines were lost"));
    text = output_of([&] {
      talk(few);
      device.synchronize();
    });
    CHECK(count_of(text, "line ") == 3);
    for (const char* line : {"line 0 of 1.5\n", "line 1 of 1.5\n", "line 2 of 1.5\n"})
      CHECK(count_of(text, line) == 1);
  });
}

TEST_CASE("lines printed while two threads launch and wait are all there") {
  on_every_device([](qn::Device& device) {
    qn::Kernel talk = [](qn::Field<int> x, I32 who) {
      for (auto i : x) print("thread {} line {}", who, i);
    };
    qn::Field<int> x{device, {3}};
    int failures = 0;
    std::string text = output_of([&] {
      failures = failures_of_two_threads([&](int t) {
        for (int r = 0; r < 50; r++) {
          talk(x, t);
          device.synchronize();
        }
        return 0;
      });
    });
    CHECK(failures == 0);
    for (const char* who : {"thread 0 line ", "thread 1 line "}) CHECK(count_of(text, who) == 150);
  });
}

// ---- recordings

TEST_CASE("an exception of the program's own passes through a recording") {
  on_every_device([](qn::Device& device) {
    qn::Field<int> x{device, {4}};
    auto record = [&](bool bad) {
      return qn::Kernel{[&, bad] {
        for (auto i : x) {
          If(i > 1) {
            if (bad) throw std::out_of_range("mine");
            x[i] = 7;
          }
        }
      }};
    };
    std::string text;
    try {
      record(true);
    } catch (const std::out_of_range& e) {
      text = e.what();
    }
    CHECK(text == "mine");
    record(false)();
    CHECK(qn::to_vector(x) == std::vector<int>{0, 0, 7, 7});
  });
}

TEST_CASE("an exception caught inside a recording: what was recorded before it stays") {
  on_every_device([](qn::Device& device) {
    qn::Field<int> x{device, {6}}, y{device, {6}};
    auto refuse = [](bool now) {
      if (now) throw std::out_of_range("mine");
      return true;
    };
    int caught = 0;
    qn::Kernel k = [&] {
      for (auto i : x) {
        try {
          If(i > 1) {
            x[i] = 7;
            If(i > 3) {
              x[i] = 8;
              refuse(true);
              x[i] = 9;
            }
            else x[i] = 10;
            x[i] = 11;
          }
        } catch (const std::out_of_range&) {
          caught++;
        }
        y[i] = x[i] + 1;
      }
      try {
        for (auto i : y) {
          y[i] = y[i] * 2;
          for (auto [a, b] : grid(3, 3)) {
            y[i] = y[i] + 1 + a - a + b - b;
            refuse(true);
          }
        }
      } catch (const std::out_of_range&) {
        caught++;
      }
      Var<int> n = 0;
      try {
        While(n < 5) {
          n = n + 1;
          refuse(true);
        }
      } catch (const std::out_of_range&) {
        caught++;
      }
      try {  // there is no loop without a condition
        While(refuse(true) && n < 1000) n = n + 1;
      } catch (const std::out_of_range&) {
        caught++;
      }
      try {
        qn::Func<I32(I32)> f = [&](I32 a) {
          If(a > 0) refuse(true);
          return a;
        };
      } catch (const std::out_of_range&) {
        caught++;
      }
      return n;
    };
    CHECK(caught == 5);
    CHECK(int(k()) == 5);
    CHECK(qn::to_vector(x) == std::vector<int>{0, 0, 7, 7, 8, 8});
    CHECK(qn::to_vector(y) == std::vector<int>{11, 11, 25, 25, 27, 27});
  });
}

TEST_CASE("a kernel keeps a field that was made while it was recorded; copies share it") {
  on_every_device([](qn::Device& device) {
    qn::Kernel next = [&] {
      qn::Field<int> memory{device, {1}};
      memory[0] = memory[0] + 1;
      return memory[0];
    };
    auto copy = next;
    CHECK(int(next()) == 1);
    CHECK(int(copy()) == 2);
    CHECK(int(next()) == 3);
  });
}

TEST_CASE("a function that calls itself is refused with its line, and the next one works") {
  on_every_device([](qn::Device& device) {
    qn::Field<float> x{device, {4}};
    int line = 0;
    const int here = __LINE__ + 2;
    std::string text =
        error_of([&] { qn::Func<F32(F32)> f = [&](F32 a) { return f(a - 1) * a; }; }, &line);
    CHECK(has(text, "call itself"));
    CHECK(line == here);
    qn::Func twice = [](F32 a) { return a * 2; };
    qn::Kernel k = [&] {
      for (auto i : x) x[i] = twice(twice(cast<float>(i)));
    };
    k();
    CHECK(x.at(3) == 12.0f);
  });
}
