// What a tape says that it keeps: counted by hand, and by what the device has allocated.
#include <quern/autodiff.h>

#include <algorithm>
#include <optional>

#include "dsl/objects.h"
#include "quern/runtime/observer.h"
#include "tests/end_to_end/devices.h"
#include "tests/message_of.h"

using namespace qn::lang;
using qn::test::message_of;

TEST_CASE("a tape tells the bytes of what launches have overwritten") {
  on_every_device([](const qn::Device& device) {
    constexpr int64_t size = 3000, bytes = 8 * size;
    constexpr int n = 7;
    qn::Field<double> x{device, {size}}, scale{device, {size}}, loss{device, {1}};
    x.fill(0.5);
    scale.fill(0.75);
    qn::Kernel step = [&] {
      for (auto i : x) x[i] = scale[i] * x[i] * x[i];
    };
    qn::Kernel look = [&] {
      for (auto i : x) atomic_add(loss[0], x[i] * x[i]);
    };
    const auto& on = device.object()->device;
    const auto run = [&](auto&& check_at_rest) {
      const auto check = [&](const qn::Tape& tape, int versions) {
        on->synchronize();  // so that one argument block a kernel is enough
        check_at_rest(tape, versions);
      };
      x.fill(0.5);
      loss.fill(0);
      x.grad().fill(0);
      scale.grad().fill(0);
      loss.grad().fill(1);
      qn::Tape tape;
      check(tape, 0);
      for (int t = 0; t < n; t++) {
        step();
        check(tape, t + 1);
      }
      look();
      check(tape, n);
      look();  // what both read is still x
      check(tape, n);
      x.fill(0);  // once for both
      check(tape, n + 1);
      tape.backward();
      check(tape, 0);
    };
    run([](const qn::Tape&, int) {});  // compiles, and allocates what stays
    const uint64_t before = on->allocated();
    run([&](const qn::Tape& tape, int versions) {
      CHECK(tape.memory() == uint64_t(versions) * bytes);
      // Where the host gets further ahead than in the first run, some more argument blocks are
      // kept.
      const auto more = int64_t(on->allocated()) - int64_t(before) - versions * bytes;
      CHECK((more >= 0 && more < bytes / 2));
    });
  });
}

TEST_CASE("a tape that ends gives back what it kept") {
  on_every_device([](const qn::Device& device) {
    qn::Field<float, 2> x{device, {80, 75}};
    x.fill(0.5f);
    qn::Kernel step = [&] {
      for (auto I : x) x[I] = x[I] * x[I];
    };
    step();
    x.grad().fill(0);
    const auto& on = device.object()->device;
    on->synchronize();
    const uint64_t before = on->allocated();
    {
      qn::Tape tape;
      step();
      on->synchronize();
      step();
      on->synchronize();
      CHECK(tape.memory() == 2 * 4 * 80 * 75);
      CHECK(on->allocated() - before == tape.memory());
    }
    CHECK(on->allocated() == before);
    CHECK(qn::state(x).bytes() == 4 * 80 * 75);
  });
}

TEST_CASE("a tape that was moved from has no memory to tell of") {
  qn::Tape tape;
  const qn::Tape moved = std::move(tape);
  CHECK(moved.memory() == 0);
  CHECK_THAT(message_of([&] { tape.memory(); }), contains("this Tape is none"));
}

namespace {

/// The most that its device has allocated when kernels are launched while it lives.
class Peak : public qn::runtime::LaunchObserver {
 public:
  explicit Peak(qn::runtime::Device& device) : device_(device) {
    observation_.emplace(*this, qn::runtime::Observation::kernels);
  }
  void before(const qn::runtime::LaunchEvent&) override {
    most_ = std::max(most_, device_.allocated());
  }
  void after(const qn::runtime::LaunchEvent&) noexcept override {
    most_ = std::max(most_, device_.allocated());
  }
  uint64_t most() const { return most_; }

 private:
  qn::runtime::Device& device_;
  uint64_t most_ = 0;
  std::optional<qn::runtime::Observation> observation_;
};

/// Launches whose derivatives want what they read, and such that do not.
struct Launches {
  qn::Field<double> x, y, z;
  qn::Field<double, 0> loss;
  qn::Kernel<void(qn::Field<double>, qn::Field<double>)> square, shift;
  qn::Kernel<void(qn::Field<double>)> measure;

  Launches(const qn::Device& device, int64_t size)
      : x{device, {size}},
        y{device, {size}},
        z{device, {size}},
        loss{device},
        square{[](qn::Field<double> from, qn::Field<double> to) {
          for (auto i : from) to[i] = from[i] * from[i];
        }},
        shift{[](qn::Field<double> from, qn::Field<double> to) {
          for (auto i : from) to[i] = from[i] + 1.0;
        }},
        measure{[this](qn::Field<double> of) {
          for (auto i : of) atomic_add(loss(), of[i] * of[i]);
        }} {
    for (const auto& f : {x, y, z}) f.fill(0.5);
  }
};

/// What a tape of one time predicts of n times is what a tape of n times keeps.
template <class F>
void expect_predicted(const char* what, F&& launches, uint64_t kept_by_one, uint64_t by_each_more) {
  INFO(what);
  for (int n : {1, 2, 5}) {
    const qn::TapeMemory predicted = [&] {
      qn::Tape one;
      launches();
      const qn::TapeMemory m = one.memory_for(n);
      CHECK(one.memory_for(1).kept == one.memory());
      return m;
    }();
    qn::Tape all;
    for (int k = 0; k < n; k++) launches();
    INFO(n << " times");
    CHECK(predicted.kept == all.memory());
    CHECK(predicted.kept == kept_by_one + uint64_t(n - 1) * by_each_more);
    CHECK(predicted.unknown == 0);
  }
}

}  // namespace

TEST_CASE("what a tape will keep follows from one time") {
  on_every_device([](const qn::Device& device) {
    constexpr int64_t size = 2500;
    constexpr uint64_t bytes = 8 * size;
    const Launches of(device, size);
    const auto &x = of.x, &y = of.y, &z = of.z;
    const auto &square = of.square, &shift = of.shift;
    const auto& measure = of.measure;
    expect_predicted("in place", [&] { square(x, x); }, bytes, bytes);
    expect_predicted("in turns", [&] { square(x, y), square(y, x); }, bytes, 2 * bytes);
    expect_predicted("read alone", [&] { square(x, y), measure(x); }, 0, 0);
    expect_predicted("not wanted", [&] { shift(x, x); }, 0, 0);
    expect_predicted("wanted behind a write", [&] { shift(x, y), measure(y); }, 0, bytes);
    expect_predicted(
        "wanted twice", [&] { square(x, z), measure(x), shift(z, x), measure(x); }, bytes, bytes);
    expect_predicted(
        "written twice", [&] { square(x, x), measure(x), shift(x, x), square(x, y); }, 2 * bytes,
        2 * bytes);
    expect_predicted(
        "a view", [&] { square(x.slice(0, 0, 10), y.slice(0, 0, 10)), shift(y, x); }, bytes, bytes);

    {
      qn::Tape tape;
      measure(x);
      qn::with_pullback([&] { shift(x, x); }, [] {});
      const qn::TapeMemory predicted = tape.memory_for(3);
      CHECK(tape.memory() == bytes);
      CHECK(predicted.kept == 3 * bytes);
      CHECK(predicted.unknown == 1);  // what the pullback needs
    }
    {
      qn::Tape tape;
      qn::steps(tape, 4, [&](int) { square(x, x); }, qn::state(x), 2);
      CHECK(tape.memory_for(1).unknown == 1);
    }
  });
}

TEST_CASE("what a tape will keep of small fields, which it copies at once") {
  on_every_device([](const qn::Device& device) {
    constexpr int64_t size = 20;
    constexpr uint64_t bytes = 8 * size;
    const Launches of(device, size);
    const auto &x = of.x, &y = of.y, &z = of.z;
    const auto &square = of.square, &shift = of.shift;
    const auto& measure = of.measure;
    expect_predicted("in place", [&] { square(x, x); }, bytes, bytes);
    expect_predicted("in turns", [&] { square(x, y), square(y, x); }, 2 * bytes, 2 * bytes);
    expect_predicted("read alone", [&] { square(x, y), measure(x); }, bytes, 0);
    expect_predicted("not wanted", [&] { shift(x, x); }, 0, 0);
    expect_predicted("wanted behind a write", [&] { shift(x, y), measure(y); }, bytes, bytes);
    expect_predicted(
        "wanted twice", [&] { square(x, z), measure(x), shift(z, x), measure(x); }, 2 * bytes,
        bytes);
    expect_predicted(
        "a view", [&] { square(x.slice(0, 0, 10), y.slice(0, 0, 10)), square(x, y); }, bytes, 0);
  });
}

TEST_CASE("what a tape will keep of memory that others may write") {
  for (const char* name : {"cpu", "interpreter"}) {
    const qn::Device device(name);
    std::vector<double> mine(300, 0.5);
    auto x = qn::Field<double>::wrap(device, mine.data(), {300});
    qn::Field<double, 0> loss{device};
    qn::Kernel measure = [&] {
      for (auto i : x) atomic_add(loss(), x[i] * x[i]);
    };
    expect_predicted("wrapped", [&] { measure(), measure(); }, 2 * 8 * 300, 2 * 8 * 300);
  }
}

TEST_CASE("what going back takes for a time is known before") {
  on_every_device([](const qn::Device& device) {
    constexpr int64_t size = 4000;
    constexpr uint64_t bytes = 8 * size;
    qn::Field<double> x{device, {size}}, y{device, {size}};
    qn::Field<int> rounds{device, {size}};
    std::vector<int> drawn;
    for (int k = 0; k < size; k++) drawn.push_back(k % 7 + 40);
    rounds.copy_from(drawn);
    const auto& on = device.object()->device;
    const auto expect = [&](const char* what, const auto& kernel, uint64_t least, int unknown) {
      INFO(what);
      uint64_t predicted = 0, taken = 0;
      for (int run = 0; run < 2; run++) {  // the first compiles, and allocates what stays
        x.fill(0.5);
        y.fill(0.5);
        qn::Tape tape;
        kernel();
        const qn::TapeMemory m = tape.memory_for(1);
        CHECK(tape.memory_for(1000).going_back == m.going_back);
        CHECK(m.kept == tape.memory());
        CHECK(m.unknown == unknown);
        on->synchronize();
        const uint64_t before = on->allocated();
        Peak peak(*on);
        tape.backward();
        predicted = m.going_back;
        taken = peak.most() - before;
      }
      CHECK(predicted >= least);
      CHECK(taken >= predicted);
      CHECK(taken < predicted + bytes / 2);  // argument blocks
    };
    qn::Kernel plain = [&] {
      for (auto i : x) y[i] = x[i] * sin(x[i]);
    };
    expect("computed again", plain, 0, 0);

    qn::Kernel recurrence = [&] {
      for (auto i : serial(range(1, int(size)))) x[i] = x[i] * sin(x[i - 1]);
    };
    expect("a recurrence", recurrence, 2 * bytes, 0);  // a copy, and a row for each read

    qn::Kernel by_scalar = [&](I32 n) {
      for (auto i : x) {
        Var<double> v = x[i];
        for ([[maybe_unused]] auto k : range(n)) v = sin(v) * x[i];
        y[i] = v;
      }
    };
    expect("rounds by a scalar", [&] { by_scalar(40); }, 40 * bytes, 0);

    qn::Kernel by_data = [&] {
      for (auto i : x) {
        Var<double> v = x[i];
        for ([[maybe_unused]] auto k : range(rounds[i])) v = sin(v) * x[i];
        y[i] = v;
      }
    };
    expect("rounds by data", by_data, 40 * bytes, 1);
  });
}

TEST_CASE("what a tape will take is asked of one that records, for a time or more") {
  const qn::Device device("cpu");
  qn::Field<double> x{device, {10}};
  x.fill(0.5);
  qn::Kernel square = [&] {
    for (auto i : x) x[i] = x[i] * x[i];
  };
  qn::Tape tape;
  square();
  int line = 0, found = 0;
  CHECK_THAT(error_of([&] { line = __LINE__, tape.memory_for(0); }, &found),
             contains("the memory of a tape of 0 times its launches"));
  CHECK(found == line);
  tape.backward();
  CHECK_THAT(error_of([&] { line = __LINE__, tape.memory_for(2); }, &found),
             contains("the tape was gone back through already, at "));
  CHECK(found == line);
  const qn::Tape moved = std::move(tape);
  CHECK_THAT(error_of([&] { line = __LINE__, tape.memory_for(2); }, &found),
             contains("this Tape is none"));
  CHECK(found == line);
}
