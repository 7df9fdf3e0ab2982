// Several host threads, and what they learn of launches that failed.
#include <atomic>
#include <thread>

#include "tests/end_to_end/devices.h"
#include "tests/end_to_end/output.h"

using namespace qn::lang;

namespace {
bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}
size_t count_of(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) n++;
  return n;
}
/// Runs f(0) and f(1) at once; Catch2's assertions are not for threads, so f counts its failures.
template <class F>
int failures_of_two_threads(F f) {
  int failures[2] = {};
  auto run = [&](int t) {
    try {
      failures[t] = f(t);
    } catch (const std::exception& e) {
      std::fprintf(stderr, "thread %d threw: %s\n", t, e.what());
      failures[t] = -1000;
    }
  };
  std::thread other([&] { run(1); });
  run(0);
  other.join();
  return failures[0] + failures[1];
}
}  // namespace

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

TEST_CASE("a launch of many submissions returns where another's failure ends it") {
  on_every_device([](qn::Device& device) {
    qn::Field<int> x{device, {4}};
    qn::Kernel fails = [&](I32 a) {
      for (auto i : x) check(a + i < 100, "too many");
    };
    qn::Kernel rounds = [&](I32 a) {
      Var<int> n = 0;
      While(n < 20) {  // each asks whether there is another: the host waits
        for (auto i : x) x[i] = i;
        n += a;
      }
      return n;
    };
    rounds(1);
    int failures = failures_of_two_threads([&](int t) {
      int wrong = 0;
      for (int r = 0; r < 40; r++) {
        if (t == 0) {
          fails(r % 2 == 0 ? 100 : 0);
          (void)error_of([&] { device.synchronize(); });
        } else {
          auto result = rounds(1);
          int got = 0;
          std::string text = error_of([&] { got = int(result); });
          wrong += text.empty() ? got != 20 : !has(text, "too many");
        }
      }
      return wrong;
    });
    error_of([&] { device.synchronize(); });
    CHECK(failures == 0);
  });
}
