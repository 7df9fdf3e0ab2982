// Launches that keep what going back through their loops wants, in place of the primal's.
#include "autodiff/reverse/augmented.h"

#include <quern/autodiff.h>

#include <atomic>
#include <cmath>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "autodiff/reverse/reverse.h"
#include "autodiff/tapes/launches.h"
#include "dsl/objects.h"
#include "quern/ir/lower.h"
#include "quern/runtime/observer.h"
#include "quern/runtime/program.h"
#include "tests/autodiff/numbers.h"
#include "tests/dsl/record.h"
#include "tests/end_to_end/devices.h"

#include <quern/else.h>

using namespace qn::lang;
using qn::autodiff::Augment;
using qn::autodiff::Reverse;
using qn::ir::Op;

namespace {

constexpr qn::Options unchecked = {.checked = false};
constexpr int rounds = 50;

/// v becomes sin(v)·exp(-v²) + a, so often; with its derivative by where it begins, and by a.
struct Recurrence {
  double value, by_start, by_a;
  Recurrence(double start, double a, int n = rounds) : value(start), by_start(1), by_a(0) {
    for (int t = 0; t < n; t++) {
      const double power = std::exp(-value * value);
      const double slope = (std::cos(value) - 2 * value * std::sin(value)) * power;
      by_start *= slope;
      by_a = slope * by_a + 1;
      value = std::sin(value) * power + a;
    }
  }
};
F64 next(F64 v, F64 a) { return sin(v) * exp(-v * v) + a; }

const std::vector<double> starts = {0.5, -0.25, 0.75, 1.25, -0.5};

/// Elements of x begin, those of a are added, y[i] is what comes of it.
struct Fields {
  qn::Field<double> x, a, y;
  qn::Kernel<void(I32)> run;
  explicit Fields(const qn::Device& device)
      : x(numbers(device, starts)),
        a{device, {starts.size()}},
        y{device, {starts.size()}},
        run{[this](I32 n) {
              for (auto i : y) {
                Var<double> v = x[i];
                for (auto t : range(n)) {
                  (void)t;
                  v = next(v, a[i]);
                }
                y[i] = v;
              }
            },
            unchecked} {
    a.fill(0.125);
  }
  void clear() const {
    x.grad().fill(0);
    a.grad().fill(0);
    y.grad().fill(1);
  }
  void expect_gradient(double share = 1, int n = rounds) const {
    for (size_t i = 0; i < starts.size(); i++) {
      const Recurrence by_hand(starts[i], 0.125, n);
      CHECK(x.grad().at(int64_t(i)) == Approx(share * by_hand.by_start).epsilon(1e-11));
      CHECK(a.grad().at(int64_t(i)) == Approx(share * by_hand.by_a).epsilon(1e-11));
    }
  }
  void expect_values(int n = rounds) const {
    for (size_t i = 0; i < starts.size(); i++)
      CHECK(y.at(int64_t(i)) == Approx(Recurrence(starts[i], 0.125, n).value).epsilon(1e-12));
  }
};

size_t count_of(const qn::ir::Kernel& kernel, Op op) {
  size_t n = 0;
  qn::ir::walk(kernel.body, [&](const qn::ir::Inst* inst) { n += inst->is(op); });
  return n;
}

/// Bytes that a tape keeps of each round of an iteration: v, sin v and its slope, exp(-v²).
constexpr uint64_t row = 4 * 8, end_of_loop = 8;

}  // namespace

TEST_CASE("what the primal's launch has kept is not computed again") {
  auto kernel = qn::test::record([](qn::Field<double> x, qn::Field<double> y) {
    for (auto i : y) {
      Var<double> v = x[i];
      for (auto t : range(x.dim(0))) {
        (void)t;
        v = next(v, 1.0);
      }
      y[i] = v * v;
    }
  });
  qn::ir::finish_recording(*kernel);
  kernel->modes.checked = false;
  const auto reverse_of = [&](Augment augment) {
    return qn::autodiff::reverse(*kernel, {kernel->modes, {1, 2}}, {true, true}, {}, false, false,
                                 augment);
  };
  const Reverse plain = reverse_of(Augment::never), kept = reverse_of(Augment::where_it_pays);
  CHECK(count_of(*plain.kernel, Op::exp) == 1);
  CHECK(count_of(*plain.kernel, Op::loop) == 2);
  CHECK(plain.count);
  REQUIRE(kept.augmented);
  CHECK(count_of(*kept.kernel, Op::exp) == 0);
  CHECK(count_of(*kept.kernel, Op::loop) == 1);
  CHECK_FALSE(kept.count);
  REQUIRE(kept.augmented.sites.size() == 1);
  using Types = std::vector<qn::ir::Type>;
  CHECK(kept.augmented.sites[0].rows == Types(4, qn::ir::Type::f64));
  CHECK(kept.augmented.sites[0].ends == Types(1, qn::ir::Type::f64));
  CHECK(count_of(*kept.augmented.kernel, Op::store) == 1 + 4 + 1);
}

TEST_CASE("a loop of little work is computed again, unless nothing else will do") {
  auto kernel = qn::test::record([](qn::Field<double> x, qn::Field<double> y) {
    for (auto i : y) {
      Var<double> v = x[i];
      for (auto t : range(x.dim(0))) {
        (void)t;
        v = v * v;
      }
      y[i] = v;
    }
  });
  qn::ir::finish_recording(*kernel);
  kernel->modes.checked = false;
  const auto is_augmented = [&](Augment augment) {
    return bool(qn::autodiff::reverse(*kernel, {kernel->modes, {1, 2}}, {true, true}, {}, false,
                                      false, augment)
                    .augmented);
  };
  CHECK_FALSE(is_augmented(Augment::where_it_pays));
  CHECK(is_augmented(Augment::wherever_possible));
}

TEST_CASE("a tape keeps what loops carry in the primal's launch") {
  on_every_device([](const qn::Device& device) {
    const Fields f(device);
    for (int n : {0, 1, 7, rounds}) {
      f.clear();
      qn::Tape tape;
      f.run(n);
      // And no field: what is read stands in the rows. Components begin at multiples of some bytes.
      const uint64_t kept = std::max<uint64_t>(row * uint64_t(n) * 5, row) + end_of_loop * 5;
      CHECK(tape.memory() >= kept);
      CHECK(tape.memory() <= kept + 64);
      CHECK(tape.memory_for(1000).kept == 1000 * tape.memory());
      CHECK(tape.memory_for(1000).going_back == 0);
      f.expect_values(n);
      tape.backward();
      CHECK(tape.memory() == 0);
      f.expect_gradient(1, n);
    }
  });
}

TEST_CASE("launches on a tape that is the first to run them, and those behind it") {
  on_every_device([](const qn::Device& device) {
    const Fields f(device);
    for (int again = 0; again < 3; again++) {
      f.clear();
      qn::Tape tape;
      f.run(rounds);
      f.run(rounds);  // known
      f.y.grad().fill(1);
      tape.backward();
      f.expect_gradient();  // what the first wrote was overwritten
    }
    f.y.fill(0);
    f.run(rounds);
    f.run(rounds);
    f.expect_values();
  });
}

TEST_CASE("of two tapes one keeps what loops carry, and both go back") {
  on_every_device([](const qn::Device& device) {
    const Fields f(device);
    for (bool is_first : {true, false}) {
      std::optional<qn::Tape> tapes[2];
      tapes[0].emplace();
      tapes[1].emplace();
      f.y.fill(0);
      f.run(rounds);
      f.expect_values();
      CHECK(tapes[0]->memory() > tapes[1]->memory());
      tapes[is_first ? 1 : 0].reset();
      f.clear();
      tapes[is_first ? 0 : 1]->backward();
      f.expect_gradient();
    }
  });
}

TEST_CASE("one launch is gone back through again and again by what it has kept") {
  on_every_device([](const qn::Device& device) {
    const Fields f(device);
    f.clear();
    auto pull = qn::vjp(f.run)(rounds);
    f.expect_values();
    pull();
    f.expect_gradient();
    for (double share : {3.0, -0.5}) {
      f.clear();
      f.y.grad().fill(share);
      pull();
      f.expect_gradient(share);
    }
    // On a tape, which keeps it itself, somebody else's launch is gone back through as well.
    qn::Tape tape;
    f.x.copy_from(starts);
    auto within = qn::vjp(f.run)(rounds);
    {
      const qn::Tape ends = std::move(tape);
    }
    f.clear();
    within();
    f.expect_gradient();
  });
}

TEST_CASE("a value with its gradient comes from a launch that keeps what loops carry") {
  on_every_device([](const qn::Device& device) {
    const Fields f(device);
    qn::Kernel<double()> sum{[&]() -> F64 {
                               Var<double> all = 0.5;
                               for (auto i : f.x) {
                                 Var<double> v = f.x[i];
                                 for (auto t : range(rounds + 50)) {
                                   (void)t;
                                   v = next(v, f.a[i]);
                                 }
                                 all += v * v;
                               }
                               return all;
                             },
                             unchecked};
    auto r = qn::value_and_grad(sum, qn::wrt(f.x, f.a))();
    double expected = 0.5;
    for (size_t i = 0; i < starts.size(); i++) {
      const Recurrence by_hand(starts[i], 0.125, rounds + 50);
      expected += by_hand.value * by_hand.value;
      CHECK(f.x.grad().at(int64_t(i)) ==
            Approx(2 * by_hand.value * by_hand.by_start).epsilon(1e-10).margin(1e-300));
      CHECK(f.a.grad().at(int64_t(i)) == Approx(2 * by_hand.value * by_hand.by_a).epsilon(1e-11));
    }
    CHECK(double(r.value()) == Approx(expected).epsilon(1e-13));
  });
}

TEST_CASE("how much a launch keeps follows from where its fields' indices begin, too") {
  on_every_device([](const qn::Device& device) {
    const Fields f(device);
    const qn::Kernel<void(qn::Field<double>)> run{[&](qn::Field<double> from) {
                                                    for (auto i : f.y) {
                                                      Var<double> v = f.x[i];
                                                      for (auto t : range(from.first(0), 60)) {
                                                        (void)t;
                                                        v = next(v, f.a[i]);
                                                      }
                                                      f.y[i] = v;
                                                    }
                                                  },
                                                  unchecked};
    for (int first : {50, 10, 0}) {
      INFO("from " << first);
      f.clear();
      qn::Tape tape(qn::wrt(f.x, f.a));
      run(f.a.rebased({first}));
      CHECK(tape.memory() >= row * uint64_t(60 - first) * starts.size());
      tape.backward();
      f.expect_values(60 - first);
      f.expect_gradient(1, 60 - first);
    }
  });
}

TEST_CASE("an augmented launch does all else that the primal does") {
  on_every_device([](const qn::Device& device) {
    const Fields f(device);
    qn::Field<double, 2> trace{device, {starts.size(), rounds}};
    qn::Field<double> total{device, {1}};
    qn::Field<int> seen{device, {starts.size()}}, runs{device, {starts.size()}};
    for (size_t i = 0; i < starts.size(); i++) runs.set(i, starts[i] > 0);
    // In a branch; stores in the loop and behind it, an integer that is inverted, a count, a result.
    qn::Kernel<double(F64, I32)> run{[&](F64 scale, I32 n) -> F64 {
                                       Var<double> all = 0.0;
                                       for (auto i : f.y) {
                                         Var<double> v = scale * f.x[i];
                                         Var<uint32_t> s = cast<uint32_t>(i) + 7u;
                                         If(runs[i] != 0) {
                                           for (auto t : range(n)) {
                                             s = s * 1664525u + 1013904223u;
                                             v = next(v, f.a[cast<int>(s % 5u)]);
                                             trace(i, t) = v;
                                           }
                                         }
                                         f.y[i] = v * v;
                                         seen[i] = cast<int>(s >> 1);
                                         atomic_add(total[0], v);
                                         all += v;
                                       }
                                       return all;
                                     },
                                     unchecked};
    f.clear();
    const double scale = 0.75;
    f.a.copy_from(std::vector<double>{0.1, 0.2, 0.15, 0.05, 0.125});
    {
      const qn::Tape tape;
      run(scale, rounds);
      CHECK(tape.memory() > rounds * starts.size() * row);
    }
    total.fill(0);
    total.grad().fill(0.25);
    trace.grad().fill(0.5);
    auto pull = qn::vjp(run)(scale, rounds);
    const auto by_scale = pull(0.125);
    const std::vector<double> a = qn::to_vector(f.a);
    std::vector<double> by_a(5, 0.0);
    double sum = 0, expected_by_scale = 0;
    for (size_t i = 0; i < starts.size(); i++) {
      double v = scale * starts[i];
      uint32_t s = uint32_t(i) + 7;
      std::vector<double> before;
      std::vector<size_t> added;
      for (int t = 0; starts[i] > 0 && t < rounds; t++) {
        s = s * 1664525u + 1013904223u;
        before.push_back(v);
        added.push_back(s % 5);
        v = std::sin(v) * std::exp(-v * v) + a[s % 5];
        CHECK(trace.at({int64_t(i), t}) == Approx(v).epsilon(1e-11));
      }
      CHECK(f.y.at(int64_t(i)) == Approx(v * v).epsilon(1e-11));
      CHECK(seen.at(int64_t(i)) == int(s >> 1));
      sum += v;
      double by_v = 2 * v + 0.25 + 0.125;
      for (size_t t = before.size(); t-- > 0;) {
        by_v += 0.5;
        by_a[added[t]] += by_v;
        const double w = before[t];
        by_v *= (std::cos(w) - 2 * w * std::sin(w)) * std::exp(-w * w);
      }
      CHECK(f.x.grad().at(int64_t(i)) == Approx(scale * by_v).epsilon(1e-10).margin(1e-14));
      expected_by_scale += by_v * starts[i];
    }
    CHECK(total.at(0) == Approx(sum).epsilon(1e-11));
    CHECK(double(pull.result()) == Approx(sum).epsilon(1e-11));
    CHECK(by_scale.get<0>() == Approx(expected_by_scale).epsilon(1e-10));
    for (size_t k = 0; k < 5; k++)
      CHECK(f.a.grad().at(int64_t(k)) == Approx(by_a[k]).epsilon(1e-10));
  });
}

TEST_CASE("what a loop leaves behind in variables is computed again") {
  on_every_device([](const qn::Device& device) {
    const Fields f(device);
    // An array that the loop fills, and a sum of the kernel that it adds to.
    qn::Kernel<void(I32)> fill{[&](I32 n) {
                                 for (auto i : f.y) {
                                   Var<double> v = f.x[i];
                                   Var<Array<double, 8>> last;
                                   for (auto t : range(n)) {
                                     v = next(v, f.a[i]);
                                     last[t % 8] = v;
                                   }
                                   f.y[i] = v * sin(last[3]);
                                 }
                               },
                               unchecked};
    constexpr int n = 100;  // the last round that fills element 3 has number 99
    f.clear();
    qn::vjp(fill)(n)();
    for (size_t i = 0; i < starts.size(); i++) {
      const Recurrence by_hand(starts[i], 0.125, n);
      const double v = by_hand.value, slope = std::sin(v) + v * std::cos(v);
      CHECK(f.y.at(int64_t(i)) == Approx(v * std::sin(v)).epsilon(1e-12));
      CHECK(f.a.grad().at(int64_t(i)) == Approx(slope * by_hand.by_a).epsilon(1e-10));
    }

    qn::Field<double> z{device, {starts.size()}};
    qn::Kernel<void(I32)> add{[&](I32 rounds_of_all) {
                                Var<double> sum = 0.0;
                                for (auto i : f.y) {
                                  Var<double> v = f.x[i];
                                  for (auto t : range(rounds_of_all)) {
                                    (void)t;
                                    v = next(v, f.a[i]);
                                    sum += v * v;
                                  }
                                  f.y[i] = v;
                                }
                                for (auto i : z) z[i] = sin(0.001 * sum);
                              },
                              unchecked};
    f.clear();
    f.y.grad().fill(0);
    z.grad().fill(1);
    qn::vjp(add)(n)();
    double sum = 0;
    for (double start : starts)
      for (int t = 1; t <= n; t++) sum += std::pow(Recurrence(start, 0.125, t).value, 2);
    const double share = 0.001 * double(starts.size()) * std::cos(0.001 * sum);
    for (size_t i = 0; i < starts.size(); i++) {
      double expected = 0;
      for (int t = 1; t <= n; t++) {
        const Recurrence by_hand(starts[i], 0.125, t);
        expected += share * 2 * by_hand.value * by_hand.by_a;
      }
      CHECK(f.a.grad().at(int64_t(i)) == Approx(expected).epsilon(1e-9));
    }
  });
}

TEST_CASE("an augmented launch notes which round has replaced what the loop carries") {
  on_every_device([](const qn::Device& device) {
    const Fields f(device);
    for (int n : {0, 1, 2000}) {
      qn::Kernel<void()> least{[&] {
                                 for (auto i : f.y) {
                                   Var<double> v = 2.0, p = 1.0;
                                   for (auto t : range(n)) {
                                     (void)t;
                                     v = min(v, sin(f.x[i] * p) + exp(-p * f.x[i]));
                                     p *= 0.999;
                                   }
                                   f.y[i] = v;
                                 }
                               },
                               unchecked};
      f.clear();
      qn::Tape tape;
      least();
      CHECK((tape.memory() > 5 * 2000 * 8) == (n == 2000));
      tape.backward();
      for (size_t i = 0; i < starts.size(); i++) {
        double v = 2, slope = 0, p = 1;
        for (int t = 0; t < n; t++, p *= 0.999) {
          const double x = starts[i], found = std::sin(x * p) + std::exp(-p * x);
          if (found < v) v = found, slope = p * std::cos(x * p) - p * std::exp(-p * x);
        }
        CHECK(f.y.at(int64_t(i)) == Approx(v).epsilon(1e-13));
        CHECK(f.x.grad().at(int64_t(i)) == Approx(slope).epsilon(1e-9).margin(1e-12));
      }
    }
  });
}

TEST_CASE("an augmented launch draws the primal's random numbers") {
  on_every_device([](const qn::Device& device) {
    const Fields f(device);
    qn::Kernel<void()> noise{[&] {
                               for (auto i : f.y) {
                                 Var<double> v = f.x[i];
                                 for (auto t : range(f.x.dim(0))) {
                                   (void)t;
                                   v = next(v, random<double>() + f.a[i]);
                                 }
                                 f.y[i] = v;
                               }
                             },
                             unchecked};
    device.seed(5);
    noise();
    const std::vector<double> first = qn::to_vector(f.y);
    noise();
    const std::vector<double> second = qn::to_vector(f.y);
    device.seed(5);
    f.clear();
    {
      qn::Tape tape;
      noise();
      CHECK(tape.memory() > 0);
      const std::vector<double> found = qn::to_vector(f.y);
      for (size_t i = 0; i < found.size(); i++) CHECK(found[i] == Approx(first[i]).epsilon(1e-12));
      tape.backward();
    }
    noise();
    const std::vector<double> found = qn::to_vector(f.y);
    for (size_t i = 0; i < found.size(); i++) CHECK(found[i] == Approx(second[i]).epsilon(1e-12));
  });
}

TEST_CASE("a strict launch has the same bits when it keeps what loops carry") {
  on_every_device([](const qn::Device& device) {
    const Fields f(device);
    qn::Kernel<void()> run{[&] {
                             for (auto i : f.y) {
                               Var<double> v = f.x[i];
                               for (auto t : range(f.x.dim(0) * 4)) {
                                 (void)t;
                                 v = next(v, f.a[i] * v);
                               }
                               f.y[i] = v;
                             }
                           },
                           {.strict = true, .checked = false}};
    run();
    const std::vector<double> plain = qn::to_vector(f.y);
    f.y.fill(0);
    f.clear();
    qn::Tape tape;
    run();
    CHECK(tape.memory() > 5 * 20 * 8);
    CHECK(qn::to_vector(f.y) == plain);
    tape.backward();
  });
}

namespace {
/// Lets no launch happen.
struct Refusal : qn::runtime::LaunchObserver {
  void before(const qn::runtime::LaunchEvent& event) override {
    throw qn::Error(event.loc, "not now");
  }
};
}  // namespace

TEST_CASE("what has no room on a tape is computed again when one goes back") {
  {
    const qn::Device device("cpu");
    constexpr int64_t size = 40'000;
    qn::Field<double> x{device, {size}}, y{device, {size}};
    x.fill(0.5);
    qn::Kernel<void(I32)> run{[&](I32 n) {
                                for (auto i : y) {
                                  Var<double> v = x[i];
                                  for (auto t : range(n)) {
                                    (void)t;
                                    v = next(v, 0.125);
                                  }
                                  y[i] = v;
                                }
                              },
                              unchecked};
    constexpr uint64_t room = uint64_t(256) << 20, of_one = size * (row * 100 + end_of_loop);
    constexpr int n = 4;
    static_assert(of_one * 2 < room && of_one * 3 > room);
    x.grad().fill(0);
    qn::TapeMemory predicted;
    {
      qn::Tape tape;
      run(100);
      predicted = tape.memory_for(n);
    }
    CHECK(predicted.kept == 2 * of_one);
    CHECK(predicted.unknown == 1);  // those without room may want versions of fields, too
    CHECK(predicted.going_back == of_one);
    qn::Tape tape;
    {
      Refusal refusal;
      const qn::runtime::Observation observation(refusal);
      for (int k = 0; k < 3; k++) CHECK_THROWS_AS(run(100), qn::Error);
    }
    for (int k = 0; k < n; k++) {
      run(100);
      CHECK(tape.memory() == of_one * uint64_t(std::min(k + 1, 2)));
    }
    y.grad().fill(1);
    tape.backward();
    CHECK(x.grad().at(77) == Approx(Recurrence(0.5, 0.125, 100).by_start).epsilon(1e-11));
    x.grad().fill(0);
    qn::Tape large;
    run(300);  // more than there is room for at all
    CHECK(large.memory() == 0);
    y.grad().fill(1);
    large.backward();
    CHECK(x.grad().at(77) ==
          Approx(Recurrence(0.5, 0.125, 300).by_start).epsilon(1e-10).margin(1e-300));
  }
}

TEST_CASE("threads that launch beside each other have one room on a tape") {
  const qn::Device device("cpu");
  constexpr int64_t size = 40'000;
  constexpr uint64_t room = uint64_t(256) << 20;
  std::vector<qn::Field<double>> fields;
  std::vector<qn::Kernel<void(I32)>> kernels;
  for (int k = 0; k < 4; k++) {
    qn::Field<double> x{device, {size}};
    x.fill(0.5);
    fields.push_back(x);
    kernels.push_back(qn::Kernel<void(I32)>{[x](I32 n) {
                                              for (auto i : x) {
                                                Var<double> v = x[i];
                                                for (auto t : range(n)) {
                                                  (void)t;
                                                  v = next(v, 0.125);
                                                }
                                                x[i] = v;
                                              }
                                            },
                                            unchecked});
  }
  qn::Tape tape;
  for (int again = 0; again < 2; again++) {
    std::vector<std::thread> threads;
    for (const auto& kernel : kernels) threads.emplace_back([&kernel] { kernel(100); });
    for (std::thread& thread : threads) thread.join();
    // Of eight launches that keep 96 MB two have room; x is overwritten, so others may keep that.
    CHECK(tape.memory() > room / 2);
    CHECK(tape.memory() < room + 8 * 8 * size);
  }
}

TEST_CASE("a tape may end while another thread launches what it would keep") {
  const qn::Device device("cpu");
  const Fields f(device);
  f.run(rounds);
  std::atomic<bool> ends = false;
  std::atomic<int> launches = 0;
  std::thread other([&] {
    for (; !ends; launches++) f.run(rounds);
  });
  while (launches == 0) std::this_thread::yield();
  for (int k = 0; k < 300; k++) {
    const qn::Tape tape;
    const int before = launches;
    for (int n = 0; n < 1000 && launches < before + k % 3; n++) std::this_thread::yield();
  }
  ends = true;
  other.join();
  f.expect_values();
  f.clear();
  qn::vjp(f.run)(rounds)();
  f.expect_gradient();
}

namespace {
/// Launches something of its own before each launch, and notes which it knows.
struct Busy : qn::runtime::LaunchObserver {
  std::function<void()> launch;
  std::vector<bool> known;
  explicit Busy(std::function<void()> of) : launch(std::move(of)) {}
  void before(const qn::runtime::LaunchEvent& event) override {
    known.push_back(event.same != qn::runtime::other_arguments);
    launch();
  }
};
}  // namespace

TEST_CASE("an observer's own launches are gone back through, and told to nobody") {
  on_every_device([](const qn::Device& device) {
    const Fields f(device), of_observer(device);
    of_observer.clear();
    Busy busy([&] { qn::vjp(of_observer.run)(rounds)(); });
    {
      const qn::runtime::Observation observation(busy);
      f.run(rounds);
    }
    CHECK(busy.known.size() == 1);
    f.expect_values();
    of_observer.expect_gradient();
  });
}

TEST_CASE("launches are known that only tapes have seen") {
  on_every_device([](const qn::Device& device) {
    const Fields f(device);
    Busy busy([] {});
    const qn::runtime::Observation observation(busy);
    for (int k = 0; k < 3; k++) {
      const qn::Tape tape;
      f.run(rounds);
      CHECK(tape.memory() > rounds * row);
    }
    CHECK(busy.known == std::vector<bool>{false, true, true});
    f.run(rounds);
    f.expect_values();
  });
}
