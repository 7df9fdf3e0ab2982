// What tapes leave for the next ones: launches with the same fields pass the same again.
#include <quern/autodiff.h>
#include <quern/dlpack.h>
#include <quern/host.h>
#include <quern/runtime/observer.h>

#include <atomic>
#include <cmath>
#include <thread>
#include <vector>

#include "dsl/objects.h"
#include "tests/autodiff/numbers.h"
#include "tests/end_to_end/devices.h"
#include "tests/message_of.h"

using namespace qn::lang;
using qn::test::message_of;

namespace {

/// The numbers by which launches of this thread are known, while it lives.
struct Watch : qn::runtime::LaunchObserver {
  std::vector<qn::runtime::SameArguments> known;
  const std::thread::id by = std::this_thread::get_id();
  qn::runtime::Observation observation{*this, qn::runtime::Observation::kernels};
  void before(const qn::runtime::LaunchEvent& event) override {
    if (std::this_thread::get_id() == by) known.push_back(event.same);
  }
};

constexpr qn::Options unchecked = {.checked = false};

/// Twice y = s x², x = y, and of all the sum: gone back through, and computed at once.
struct Program {
  qn::Kernel<void(qn::Field<double>, qn::Field<double>, qn::Field<double>)> square{
      [](qn::Field<double> x, qn::Field<double> s, qn::Field<double> y) {
        for (auto i : x) y[i] = s[0] * x[i] * x[i];
      }};
  qn::Kernel<void(qn::Field<double>, qn::Field<double, 0>)> sum{
      [](qn::Field<double> x, qn::Field<double, 0> loss) {
        for (auto i : x) loss() += 3.0 * x[i];
      },
      unchecked};

  void run(const qn::Field<double>& x, const qn::Field<double>& s, const qn::Field<double>& y,
           const qn::Field<double, 0>& loss) const {
    square(x, s, y);
    square(y, s, x);
    sum(x, loss);
  }
};

struct Fields {
  Fields(const qn::Device& device, int size)
      : x(device, {size}), s(device, {1}), y(device, {size}), loss(device) {}
  /// Begins at `at`, and may end without going back.
  qn::Tape tape(const Program& program, double at, double by) const {
    x.fill(at);
    s.fill(by);
    for (const auto& f : {x, s, y}) f.grad().fill(0);
    loss.fill(0);
    loss.grad().fill(1);
    qn::Tape made(qn::wrt(x, s));
    program.run(x, s, y, loss);
    return made;
  }
  /// s (s x²)²: derivatives 4 s³ x³ and 3 s² x⁴.
  void expect(double at, double by) const {
    const double n = double(x.size());
    CHECK(loss.at({}) == Approx(3 * n * std::pow(by, 3) * std::pow(at, 4)).epsilon(1e-12));
    CHECK(x.grad().at(0) == Approx(3 * 4 * std::pow(by, 3) * std::pow(at, 3)).epsilon(1e-12));
    CHECK(x.grad().at(x.size() - 1) == x.grad().at(0));
    CHECK(s.grad().at(0) == Approx(3 * n * 3 * by * by * std::pow(at, 4)).epsilon(1e-12));
  }
  void check(const Program& program, double at, double by) const {
    tape(program, at, by).backward();
    expect(at, by);
  }

  qn::Field<double> x, s, y;
  qn::Field<double, 0> loss;
};

/// Of a tape of its own.
std::vector<qn::runtime::SameArguments> known_going_back(const Fields& fields,
                                                         const Program& program, double at) {
  qn::Tape tape = fields.tape(program, at, 0.75);
  const Watch watch;
  tape.backward();
  fields.expect(at, 0.75);
  return watch.known;
}

}  // namespace

TEST_CASE("a tape passes what the one before has passed, where fields are the same") {
  on_every_device([](const qn::Device& device) {
    const Program program;
    for (int size : {5, 5000}) {
      INFO(size);
      const Fields fields(device, size);
      std::vector<std::vector<qn::runtime::SameArguments>> known;
      for (int t = 0; t < 4; t++) known.push_back(known_going_back(fields, program, 0.5 + t));
      REQUIRE(known[0].size() == 3);
      for (size_t k = 0; k < 3; k++) {
        CHECK(known[0][k] == qn::runtime::other_arguments);
        CHECK(known[1][k] != qn::runtime::other_arguments);
        CHECK(known[2][k] == known[1][k]);
        CHECK(known[3][k] == known[1][k]);
      }
    }
  });
}

TEST_CASE("fields that are swapped from tape to tape pass what they have passed with that memory") {
  on_every_device([](const qn::Device& device) {
    const Program program;
    for (int size : {5, 5000}) {
      INFO(size);
      const Fields fields(device, size);
      std::vector<std::vector<qn::runtime::SameArguments>> known;
      for (int t = 0; t < 6; t++) {
        known.push_back(known_going_back(fields, program, 0.5 + t));
        qn::Field<double>(fields.x).swap(fields.y);
      }
      for (size_t k = 0; k < 3; k++)
        for (size_t t = 4; t < 6; t++) {
          CHECK(known[t][k] != qn::runtime::other_arguments);
          CHECK(known[t][k] == known[t - 2][k]);
        }
    }
  });
}

TEST_CASE("fields end with their owners, whatever tapes have passed") {
  on_every_device([](const qn::Device& device) {
    const auto& on = device.object()->device;
    const Program program;
    Fields(device, 5).check(program, 0.5, 0.75);
    on->synchronize();
    const uint64_t before = on->allocated();
    constexpr uint64_t small =
        100'000;  // argument blocks, and what is kept at once of a few numbers
    for (int size : {5, 100'000}) {
      Fields(device, size).check(program, 0.5, 0.75);
      on->synchronize();
      CHECK(on->allocated() <= before + small);
    }
  });
}

TEST_CASE("fields that were swapped, released or made anew between tapes are passed as they are") {
  on_every_device([](const qn::Device& device) {
    const Program program;
    for (int size : {5, 5000}) {
      INFO(size);
      const Fields a(device, size), b(device, size), c(device, size);
      for (int t = 0; t < 3; t++) {
        a.check(program, 0.5 + t, 0.75);
        b.check(program, 1.5 - t, 0.5);
        c.check(program, 0.25 * t, 0.5);
        qn::Field<double>(a.x).swap(b.x);
      }
      qn::Field<double>(c.s).release();
      CHECK(message_of([&] { program.run(c.x, c.s, c.y, c.loss); }).find("was released at") !=
            std::string::npos);
      for (int t = 0; t < 6; t++) {  // more than are kept in mind, often at the same addresses
        const Fields others(device, size + t % 2);
        others.check(program, 0.5, 0.5 + t);
      }
      a.check(program, 0.75, 0.25);
    }
  });
}

TEST_CASE("what is given up, or lives beside another with the same fields, leaves the next right") {
  on_every_device([](const qn::Device& device) {
    const Program program;
    for (int size : {5, 5000}) {
      INFO(size);
      const Fields f(device, size);
      const auto expect_slope = [&](const auto& back, double expected) {
        f.x.grad().fill(0);
        f.y.grad().fill(1);
        f.loss.grad().fill(2);
        back();
        CHECK(f.x.grad().at(size - 1) == expected);
      };
      for (int t = 0; t < 3; t++) {
        {
          const qn::Tape given_up = f.tape(program, 3, 2);
        }
        f.x.fill(0.5);
        f.s.fill(1.5);
        const auto first = qn::vjp(program.square)(f.x, f.s, f.y);
        const auto sum = qn::vjp(program.sum)(f.x, f.loss);
        f.x.fill(0.25);
        const auto second = qn::vjp(program.square)(f.x, f.s, f.y);
        const auto again = qn::vjp(program.sum)(f.x, f.loss);
        expect_slope(first, 2 * 1.5 * 0.5);
        expect_slope(again, 6);
        expect_slope(second, 2 * 1.5 * 0.25);
        expect_slope(sum, 6);
        f.check(program, 0.5, 0.75 + t);
      }
    }
  });
}

TEST_CASE(
    "several threads go back through one kernel, each with its own fields, then with others'") {
  on_every_device([](const qn::Device& device) {
    const Program program;
    constexpr int threads = 3;
    std::vector<Fields> fields;
    for (int k = 0; k < threads; k++) fields.emplace_back(device, 5 + 2000 * (k % 2));
    for (int turn = 0; turn < threads; turn++) {
      std::vector<std::thread> running;
      std::vector<int> wrong(threads, 0);
      for (int k = 0; k < threads; k++)
        running.emplace_back([&, k] {
          const Fields& f = fields[size_t((k + turn) % threads)];
          for (int t = 0; t < 20; t++) {
            const double at = 0.5 + 0.125 * (t % 4);
            f.x.fill(at);
            f.s.fill(0.75);
            f.y.grad().fill(1);
            f.x.grad().fill(0);
            qn::vjp(program.square)(f.x, f.s, f.y)();  // a tape would record the others' launches
            wrong[size_t(k)] += f.x.grad().at(f.x.size() - 1) != 2 * 0.75 * at;
          }
        });
      for (auto& thread : running) thread.join();
      for (int w : wrong) CHECK(w == 0);
    }
  });
}

namespace {
/// Another library's tensor of eight doubles, which is to end on the thread that made it.
struct Lent {
  explicit Lent(double* memory) {
    managed.tensor = {
        memory, qn::dlpack::Where::host, 0, 1, {qn::dlpack::Kind::floating, 64, 1}, shape, nullptr,
        0};
    managed.manager = this;
    managed.deleter = [](qn::dlpack::Managed* m) {
      auto* lent = static_cast<Lent*>(m->manager);
      lent->is_elsewhere = std::this_thread::get_id() != lent->by;
      lent->has_ended = true;
    };
  }
  int64_t shape[1] = {8};
  qn::dlpack::Managed managed{};
  const std::thread::id by = std::this_thread::get_id();
  bool is_elsewhere = false;
  std::atomic<bool> has_ended = false;
};
}  // namespace

TEST_CASE("whoever lends memory hears of its end on the thread that ends it") {
  const qn::Device device{"cpu"};
  const Program program;
  std::atomic<bool> stop = false;
  std::vector<std::thread> others;
  for (int k = 0; k < 2; k++)
    others.emplace_back([&] {
      const Fields f(device, 8);
      while (!stop) {
        const qn::Field<double> x{device, {8}};  // so that others' lists are looked at
        qn::vjp(program.square)(x, f.s, f.y);
      }
    });
  const Fields f(device, 8);
  std::vector<double> memory(8, 1);
  int late = 0, elsewhere = 0;
  for (int round = 0; round < 40'000; round++) {
    Lent lent(memory.data());
    {
      const auto x = qn::from_dlpack<double, 1>(device, &lent.managed);
      qn::vjp(program.square)(x, f.s, f.y);
    }
    late += !lent.has_ended;
    while (!lent.has_ended) std::this_thread::yield();
    elsewhere += lent.is_elsewhere;
  }
  stop = true;
  for (auto& thread : others) thread.join();
  CHECK(late == 0);
  CHECK(elsewhere == 0);
}
