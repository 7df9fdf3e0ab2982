// Launches that do not end by themselves: a time limit or an interrupt ends them, with the line of
// the loop that ran.
#include <sys/time.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "tests/end_to_end/devices.h"

using namespace qn::lang;

namespace {
bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

bool can_be_ended(const qn::Device& device) {
  return std::string(device.name()) == "cpu" || std::string(device.name()) == "interpreter";
}

constexpr double limit = 0.1;
/// Far more than a busy machine needs to notice.
constexpr double far_too_late = 30;

/// The launch is ended by the time limit at `line`, and the device goes on.
template <class F>
void expect_ended(const qn::Device& device, int line, const F& launch) {
  qn::Field<int> sound{device, {4}};
  qn::Kernel count = [&] {
    for (auto i : sound) sound[i] = sound[i] + 1;
  };
  const auto begin = std::chrono::steady_clock::now();
  device.time_limit(limit);
  int at = 0;
  std::string text = error_of(
      [&] {
        launch();
        count();  // does nothing
        device.synchronize();
      },
      &at);
  device.time_limit(0);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  INFO(text);
  CHECK(has(text, "reached its time limit of 0.1 s"));
  CHECK(at == line);
  CHECK(took.count() < far_too_late);
  CHECK(qn::to_vector(sound) == std::vector<int>(4, 0));
  count();
  CHECK(qn::to_vector(sound) == std::vector<int>(4, 1));
}

template <class F>
void on_every_stoppable_device(F body) {
  on_every_device([&](qn::Device& device) {
    if (!can_be_ended(device))
      return report_not_run(device.name(), "launches cannot be ended, nothing of that is tested");
    for (bool checked : {false, true}) {
      INFO((checked ? "checked" : "unchecked"));
      body(device, qn::Options{.checked = checked});
    }
  });
}
}  // namespace

TEST_CASE("a time limit ends an endless While, in one iteration or in all") {
  on_every_stoppable_device([](qn::Device& device, qn::Options options) {
    qn::Field<int> x{device, {1000}};
    int line = 0;
    qn::Kernel k{[&](I32 from) {
                   for (auto i : x) {
                     Var<int> n = i;
                     line = __LINE__ + 1;
                     While(n >= from) n = (n + 1) % 1024;
                     x[i] = n;
                   }
                 },
                 options};
    expect_ended(device, line, [&] { k(0); });
    expect_ended(device, line, [&] { k(-1); });
    k(1024);  // ends by itself
    CHECK(x.at(999) == 999);
  });
}

TEST_CASE("a While without effect is left out or ended, never waited for") {
  on_every_stoppable_device([](qn::Device& device, qn::Options options) {
    qn::Field<int> x{device, {10}};
    int line = 0;
    qn::Kernel k{[&](I32 n) {
                   for (auto i : x) {
                     line = __LINE__ + 1;
                     While(n > 0) {}
                     x[i] = 1;
                   }
                 },
                 options};
    if (std::string(device.name()) == "interpreter")
      return expect_ended(device, line, [&] { k(1); });
    k(1);
    CHECK(qn::to_vector(x) == std::vector<int>(10, 1));
  });
}

TEST_CASE("a time limit ends serial code and the host's own rounds") {
  on_every_stoppable_device([](qn::Device& device, qn::Options options) {
    qn::Field<int> x{device, {10}};
    int line = 0;
    qn::Kernel serial_while{[&] {
                              Var<int> n = 0;
                              line = __LINE__ + 1;
                              While(n >= 0) n = (n + 1) % 1000;
                              x[0] = n;
                            },
                            options};
    expect_ended(device, line, [&] { serial_while(); });
    int first = 0, last = 0;
    qn::Kernel rounds{[&] {
                        Var<int> n = 0;
                        first = __LINE__;
                        While(n >= 0) {
                          for (auto i : x) x[i] = x[i] + 1;
                          n = (n + 1) % 1000;
                        }
                        last = __LINE__;
                      },
                      options};
    device.time_limit(limit);
    int at = 0;
    std::string text = error_of(
        [&] {
          rounds();
          device.synchronize();
        },
        &at);
    device.time_limit(0);
    CHECK(has(text, "reached its time limit"));
    CHECK(at >= first);
    CHECK(at <= last);
  });
}

TEST_CASE("a time limit ends loops that would take years") {
  on_every_stoppable_device([](qn::Device& device, qn::Options options) {
    const int huge = 2'000'000'000;
    qn::Field<int> x{device, {4}};
    int line = 0;
    qn::Kernel nested{[&](I32 n) {
                        for (auto i : x) {
                          Var<int> sum = 0;
                          line = __LINE__ + 1;
                          for (auto a : range(n))
                            for (auto b : range(n)) sum += x[(a ^ b) % 4];
                          x[i] = sum;
                        }
                      },
                      options};
    int inner = line + 1;
    device.time_limit(limit);
    int at = 0;
    error_of(
        [&] {
          nested(huge);
          device.synchronize();
        },
        &at);
    device.time_limit(0);
    CHECK((at == line || at == inner));

    int outer = 0;
    qn::Kernel wide{[&](I64 n) {
                      Var<int64_t> sum = 0;
                      outer = __LINE__ + 1;
                      for (auto a : serial(range(n))) sum += (sum ^ a) % 7;
                      x[0] = cast<int>(sum % 100);
                    },
                    options};
    expect_ended(device, outer, [&] { wide(int64_t(huge) * huge); });
    qn::Kernel stepped{[&](I64 n, I64 step) {
                         Var<int64_t> sum = 0;
                         outer = __LINE__ + 1;
                         for (auto a : serial(range(int64_t(0), n, step))) sum += (sum ^ a) % 7;
                         inner = __LINE__ + 1;
                         for (auto a : serial(range(int64_t(0), n, int64_t(3))))
                           sum += (sum ^ a) % 7;
                         x[0] = cast<int>(sum % 100);
                       },
                       options};
    expect_ended(device, outer, [&] { stepped(int64_t(huge) * huge, 2); });
    expect_ended(device, inner, [&] { stepped(int64_t(huge) * huge, int64_t(huge) * huge / 7); });
    qn::Kernel many{[&](I64 n) {
                      outer = __LINE__ + 1;
                      for (auto [a, b] : grid(n, n)) atomic_max(x[(a ^ b) % 4], 1);
                    },
                    options};
    expect_ended(device, outer, [&] { many(huge); });
    qn::Kernel reduced{[&](I64 n) {
                         Var<int64_t> sum = 0;
                         outer = __LINE__ + 1;
                         for (auto [a, b] : grid(n, n)) sum += (a ^ b) % 7;
                         return sum + x[0];
                       },
                       options};
    expect_ended(device, outer, [&] { reduced(10'000'000); });
  });
}

TEST_CASE("loops that are asked whether to go on compute what they did") {
  on_every_stoppable_device([](qn::Device& device, qn::Options options) {
    qn::Field<int64_t> x{device, {7}};
    const bool slow = std::string(device.name()) == "interpreter";
    const int64_t n = slow ? 1000 : 9'000'001;  // more than two pieces
    const int m = 300;
    qn::Kernel k{[&](I64 lo, I64 hi, I32 rounds, I64 step) {
                   Var<int64_t> serially = 0;
                   for (auto a : serial(range(lo, hi))) serially = serially * 3 + a;
                   for (auto i : x) {
                     Var<int64_t> sum = 0, last = -1;
                     for (auto a : range(lo, hi)) {
                       sum = sum * 5 + a;
                       last = a;
                     }
                     for (auto a : range(rounds))
                       for (auto b : range(rounds)) sum = sum * 7 + a * b;
                     for (auto a : range(lo, hi, int64_t(3))) sum = sum * 9 + a;
                     for (auto a : range(lo, hi, step)) sum = sum * 11 + a;
                     for (auto a : range(I64(INT64_MAX) - 10, I64(INT64_MAX), step))
                       for (auto b : range(rounds)) sum = sum * 13 + (a ^ b);
                     x[i] = sum + last + i;
                   }
                   return serially;
                 },
                 options};
    for (int64_t lo : {int64_t(0), int64_t(-5), n + 3}) {
      uint64_t serially = 0, sum = 0;
      int64_t last = -1;
      for (int64_t a = lo; a < n; a++) {
        serially = serially * 3 + uint64_t(a);
        sum = sum * 5 + uint64_t(a);
        last = a;
      }
      for (int a = 0; a < m; a++)
        for (int b = 0; b < m; b++) sum = sum * 7 + uint64_t(a * b);
      for (int64_t a = lo; a < n; a += 3) sum = sum * 9 + uint64_t(a);
      for (int64_t a = lo; a < n; a += 4) sum = sum * 11 + uint64_t(a);
      for (int64_t a : {10, 6, 2})
        for (int b = 0; b < m; b++) sum = sum * 13 + (uint64_t(INT64_MAX - a) ^ uint64_t(b));
      CHECK(int64_t(k(lo, n, m, 4)) == int64_t(serially));
      for (int i = 0; i < 7; i++) CHECK(x.at(i) == int64_t(sum + uint64_t(last) + uint64_t(i)));
    }
  });
}

TEST_CASE("the result of a launch that was ended throws; launches within the limit do not") {
  on_every_stoppable_device([](qn::Device& device, qn::Options options) {
    qn::Field<int> x{device, {100}};
    qn::Kernel k{[&](I32 from) {
                   Var<int> n = x[0];
                   While(n >= from) n = (n + 1) % 1024;
                   return n;
                 },
                 options};
    auto before = k(1);
    device.time_limit(limit);
    auto ended = k(0);
    CHECK(has(error_of([&] { device.synchronize(); }), "time limit"));
    for (int r = 0; r < 2000; r++) CHECK(int(k(1)) == 0);
    device.time_limit(0);
    CHECK(int(before) == 0);
    CHECK(has(error_of([&] { (void)int(ended); }), "time limit"));
  });
}

TEST_CASE("another thread interrupts") {
  on_every_stoppable_device([](qn::Device& device, qn::Options options) {
    qn::Field<int> x{device, {100}};
    int line = 0;
    std::atomic<bool> launched = false;
    qn::Kernel k{[&](I32 from) {
                   for (auto i : x) {
                     Var<int> n = i;
                     line = __LINE__ + 1;
                     While(n >= from) n = (n + 1) % 1024;
                     x[i] = n;
                   }
                 },
                 options};
    k(1);
    std::thread other([&] {
      while (!launched) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      device.interrupt();
    });
    int at = 0;
    std::string text = error_of(
        [&] {
          launched = true;
          k(0);
          device.synchronize();
        },
        &at);
    other.join();
    CHECK(has(text, "interrupted"));
    CHECK(at == line);
    // One that meets nothing is not lost: the next launch does not run.
    x.fill(5);
    device.interrupt();
    k(1024);
    CHECK(has(error_of([&] { device.synchronize(); }), "interrupted"));
    CHECK(qn::to_vector(x) == std::vector<int>(100, 5));
    device.interrupt();
    CHECK(has(error_of([&] { device.synchronize(); }), "interrupted while nothing ran"));
    device.synchronize();
    k(1024);
    CHECK(x.at(7) == 7);
  });
}

TEST_CASE("who interrupts a launch of another thread may wait at once") {
  on_every_stoppable_device([](qn::Device& device, qn::Options options) {
    qn::Field<int> x{device, {100}};
    std::atomic<bool> launched = false, done = false;
    qn::Kernel rounds{[&](I32 from) {
                        Var<int> n = 0;
                        While(n >= from) {  // rounds of the host: many submissions
                          for (auto i : x) x[i] = x[i] + 1;
                          n = (n + 1) % 1000;
                        }
                      },
                      options};
    rounds(1);  // compiled, and over
    std::string ended;
    std::thread other([&] {
      ended = error_of([&] {
        launched = true;
        rounds(0);
        device.synchronize();
      });
      done = true;
    });
    while (!launched) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    device.interrupt();
    std::string seen = error_of([&] {
      for (int k = 0; k < 100; k++) device.synchronize();
    });
    for (int k = 0; k < 1000 && !done; k++)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    CHECK(done);
    while (!done) device.interrupt();
    other.join();
    INFO("other: " << ended << "\nwaiting: " << seen);
    CHECK(!has(seen, "nothing ran"));
    CHECK((has(ended, "interrupted while this ran") || has(seen, "interrupted while this ran")));
    error_of([&] { device.synchronize(); });
    x.fill(3);
    CHECK(x.at(99) == 3);
  });
}

TEST_CASE("a limit that one thread's launch reaches ends no launch of another's") {
  on_every_stoppable_device([](qn::Device& device, qn::Options options) {
    qn::Field<int> x{device, {100}}, y{device, {10}};
    int first = 0, last = 0;
    qn::Kernel rounds{[&] {
                        Var<int> n = 0;
                        first = __LINE__;
                        While(n >= 0) {
                          for (auto i : x) x[i] = x[i] + 1;
                          n = (n + 1) % 1000;
                        }
                        last = __LINE__;
                      },
                      options};
    qn::Kernel small = [&] {
      for (auto i : y) y[i] = y[i] + 1;
    };
    small();
    device.time_limit(limit);
    std::atomic<bool> done = false;
    int strangers = 0;
    std::thread other([&] {
      while (!done) {
        int line = 0;
        std::string text = error_of(
            [&] {
              small();
              device.synchronize();
            },
            &line);
        strangers += !text.empty() && (line < first || line > last);
      }
    });
    error_of([&] {
      rounds();
      device.synchronize();
    });
    done = true;
    other.join();
    device.time_limit(0);
    error_of([&] { device.synchronize(); });
    CHECK(strangers == 0);
  });
}

TEST_CASE("a loop inside a function is named by its line") {
  on_every_stoppable_device([](qn::Device& device, qn::Options options) {
    qn::Field<int> x{device, {10}};
    int line = 0;
    qn::Func turns = [&](I32 from) {
      Var<int> n = from;
      line = __LINE__ + 1;
      While(n >= 0) n = (n + 1) % 1024;
      return n;
    };
    qn::Kernel k{[&] {
                   for (auto i : x) x[i] = turns(i);
                 },
                 options};
    expect_ended(device, line, [&] { k(); });
  });
}

namespace {
const qn::Device* signalled = nullptr;
void on_signal(int) { signalled->interrupt(); }
}  // namespace

TEST_CASE("a signal handler interrupts") {
  on_every_stoppable_device([](qn::Device& device, qn::Options options) {
    qn::Field<int> x{device, {100}};
    int line = 0;
    qn::Kernel k{[&] {
                   for (auto i : x) {
                     Var<int> n = i;
                     line = __LINE__ + 1;
                     While(n >= 0) n = (n + 1) % 1024;
                     x[i] = n;
                   }
                 },
                 options};
    signalled = &device;
    auto before = std::signal(SIGALRM, on_signal);
    itimerval soon{{0, 0}, {0, 200'000}};
    setitimer(ITIMER_REAL, &soon, nullptr);
    int at = 0;
    std::string text = error_of(
        [&] {
          k();
          device.synchronize();
        },
        &at);
    std::signal(SIGALRM, before);
    CHECK(has(text, "interrupted"));
    CHECK(at == line);
  });
}

TEST_CASE("a device whose launches cannot be ended says so at the line that asks") {
  on_every_device([](qn::Device& device) {
    for (double wrong : {-1.0, double(NAN), 1e300}) {
      int line = 0;
      const int here = __LINE__ + 1;
      CHECK(has(error_of([&] { device.time_limit(wrong); }, &line), "a time limit of"));
      CHECK(line == here);
    }
    if (can_be_ended(device)) return;
    int line = 0;
    int here = __LINE__ + 1;
    CHECK(has(error_of([&] { device.time_limit(1); }, &line), "cannot be ended"));
    CHECK(line == here);
    here = __LINE__ + 1;
    CHECK(has(error_of([&] { device.interrupt(); }, &line), "cannot be ended"));
    CHECK(line == here);
    device.time_limit(0);
  });
}
