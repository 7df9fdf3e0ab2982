// What a tape launches while it goes back, and what it passes.
#include <quern/autodiff.h>
#include <quern/runtime/observer.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "tests/autodiff/numbers.h"
#include "tests/end_to_end/devices.h"
#include "tests/message_of.h"

using Catch::Matchers::WithinRel;
using namespace qn::lang;

namespace {

/// The names of what each launch is passed while it lives.
struct Watch : qn::runtime::LaunchObserver {
  std::vector<std::vector<std::string>> passed;
  qn::runtime::Observation observation{*this, qn::runtime::Observation::kernels};
  void before(const qn::runtime::LaunchEvent& event) override {
    passed.emplace_back();
    for (const auto& p : event.parameters) passed.back().push_back(p.name);
  }
};

}  // namespace

TEST_CASE("a kernel that goes back is passed a field and its adjoints, each once") {
  on_every_device([](const qn::Device& device) {
    qn::Field<double> x{device, {5}}, y{device, {5}};
    x.fill(3);
    qn::Kernel square = [&] {
      for (auto i : x) y[i] = x[i] * x[i];
    };
    y.grad().fill(1);
    qn::Tape tape;
    square();
    const Watch watch;
    tape.backward();
    REQUIRE(watch.passed.size() == 1);
    CHECK(watch.passed[0].size() == 4);
    CHECK(std::ranges::count_if(watch.passed[0], [](const std::string& name) {
            return name.starts_with("the adjoints of");
          }) == 2);
    CHECK(x.grad().at(0) == 6);
  });
}

TEST_CASE("value and gradient come from one launch, unless the kernel does anything besides") {
  on_every_device([](const qn::Device& device) {
    qn::Field<double> x{device, {5}}, seen{device, {5}};
    x.fill(3);
    const auto launches = [&](const auto& both, double expected) {
      x.grad().fill(-1);
      const Watch watch;
      auto r = both();
      CHECK(r.value() == Approx(expected).epsilon(1e-14));
      CHECK(x.grad().at(4) == Approx(6).epsilon(1e-14));
      return std::ranges::count_if(watch.passed, [](const auto& names) { return !names.empty(); });
    };
    qn::Kernel<double()> pure{[&]() -> F64 {
                                Var<double> sum = 1.0;
                                for (auto i : x) sum += x[i] * x[i];
                                return sum - 2.0;
                              },
                              {.checked = false}};
    qn::Kernel<double()> writes{[&]() -> F64 {
                                  Var<double> sum = 1.0;
                                  for (auto i : x) {
                                    sum += x[i] * x[i];
                                    seen[i] = x[i];
                                  }
                                  return sum - 2.0;
                                },
                                {.checked = false}};
    const auto of_pure = launches(qn::value_and_grad(pure, qn::wrt(x)), 44);
    CHECK(launches(qn::value_and_grad(writes, qn::wrt(x)), 44) == of_pure + 1);
    CHECK(seen.at(2) == 3);
  });
}

TEST_CASE("value and gradient of the same fields again, in other memory and of other contents") {
  on_every_device([](const qn::Device& device) {
    qn::Field<double> x{device, {300}}, other{device, {300}};
    x.fill(2);
    other.fill(5);
    qn::Kernel<double(F64)> cubes{[&](F64 scale) -> F64 {
                                    Var<double> sum = 0;
                                    for (auto i : x) sum += scale * x[i] * x[i] * x[i];
                                    return sum;
                                  },
                                  {.checked = false}};
    auto differentiate = qn::value_and_grad(cubes, qn::wrt(x));
    const auto expect = [&](double scale, double at) {
      Watch watch;
      CHECK(differentiate(scale).value() == 300 * scale * at * at * at);
      CHECK(watch.passed.size() == 1);
      for (double found : qn::to_vector(x.grad())) CHECK(found == 3 * scale * at * at);
    };
    expect(1, 2);
    expect(2, 2);
    x.swap(other);
    expect(1, 5);
    expect(0.5, 5);
    x.swap(other);
    x.fill(3);
    expect(4, 3);
    {
      const auto twice = differentiate;
      CHECK(twice(1).value() == 300 * 27);
    }
    x.release();
    CHECK_THAT(qn::test::message_of([&] { differentiate(1); }), contains("was released at "));
  });
}

TEST_CASE("such a launch counts where random numbers are drawn, and draws its own") {
  on_every_device([](const qn::Device& device) {
    qn::Field<double> x{device, {50}};
    x.fill(2);
    qn::Kernel<double()> noise{[&]() -> F64 {
                                 Var<double> sum = 0.0;
                                 for (auto i : x) sum += x[i] * random<double>();
                                 return sum;
                               },
                               {.checked = false}};
    device.seed(7);
    const double first = noise(), second = noise();
    device.seed(7);
    auto r = qn::value_and_grad(noise, qn::wrt(x))();
    CHECK(r.value() == Approx(first).epsilon(1e-13));
    double sum = 0;
    for (double g : qn::to_vector(x.grad())) sum += 2 * g;
    CHECK(sum == Approx(first).epsilon(1e-12));
    CHECK(double(noise()) == Approx(second).epsilon(1e-13));
  });
}

TEST_CASE("a tape by some fields computes nothing for others") {
  on_every_device([](const qn::Device& device) {
    qn::Field<double> x{device, {5}}, scale{device, {5}}, y{device, {5}}, other{device, {5}};
    qn::Field<double, 0> loss{device};
    x.fill(3);
    scale.fill(2);
    qn::Kernel prepare = [&] {
      for (auto i : other) other[i] = scale[i] * scale[i];
    };
    qn::Kernel apply = [&] {
      for (auto i : x) y[i] = other[i] * x[i] * x[i];
    };
    qn::Kernel measure = [&] {
      for (auto i : y) atomic_add(loss(), y[i]);
    };
    scale.grad().fill(-1);
    loss.grad().fill(1);
    qn::Tape tape{qn::wrt(x)};
    prepare();
    apply();
    measure();
    const Watch watch;
    tape.backward();
    CHECK(watch.passed.size() == 2);  // nothing varies in the first
    CHECK(x.grad().at(4) == 4 * 2 * 3);
    CHECK(scale.grad().at(0) == -1);
    for (const auto& names : watch.passed)
      CHECK(std::ranges::count_if(names, [](const std::string& name) {
              return name.starts_with("the adjoints of");
            }) == 2);
  });
}

TEST_CASE("a tape by some fields goes through steps, and through what is run with a pullback") {
  on_every_device([](const qn::Device& device) {
    qn::Field<double> start{device, {3}}, x{device, {3}}, rate{device, {3}}, z{device, {3}};
    start.fill(3);
    rate.fill(0.5);
    qn::Kernel begin = [&] {
      for (auto i : x) x[i] = start[i] * start[i];
    };
    qn::Kernel step = [&] {
      for (auto i : x) x[i] = rate[i] * x[i];
    };
    qn::Kernel copy = [&] {
      for (auto i : x) z[i] = x[i];
    };
    qn::Kernel copy_back = [&] {
      for (auto i : x) {
        x.grad()[i] += z.grad()[i];
        z.grad()[i] = 0.0;
      }
    };
    qn::Kernel last = [&] {
      for (auto i : x) x[i] = 3.0 * z[i];
    };
    rate.grad().fill(-1);
    start.grad().fill(0);
    x.grad().fill(1);
    qn::Tape tape{qn::wrt(start)};
    begin();
    qn::steps(tape, 4, [&](int) { step(); }, qn::state(x), 2);
    qn::with_pullback([&] { copy(); }, [&] { copy_back(); });
    last();
    tape.backward();
    CHECK(start.grad().at(1) == 3 * 0.0625 * 2 * 3);
    CHECK(rate.grad().at(0) == -1);
  });
}

TEST_CASE("gradients of a tape by some fields stay the same when it is made again") {
  on_every_device([](const qn::Device& device) {
    qn::Field<double> x{device, {4}}, sums{device, {2}};
    qn::Field<double, 0> loss{device};
    x.copy_from(std::vector<double>{1, 2, 3, 4});
    qn::Kernel clear = [&] {
      for (auto i : sums) sums[i] = 0.0;
    };
    qn::Kernel add = [&] {
      for (auto i : x) atomic_add(sums[i / 2], x[i] * x[i]);
    };
    qn::Kernel measure = [&] {
      for (auto i : sums) atomic_add(loss(), sums[i] * sums[i]);
    };
    for (int run = 0; run < 3; run++) {
      x.grad().fill(0);
      loss.grad().fill(1);
      qn::Tape tape{qn::wrt(x)};
      clear();  // nothing varies yet
      add();
      measure();
      tape.backward();
      CHECK(x.grad().at(3) == 2 * 25 * 2 * 4);
      CHECK(sums.grad().at(1) == 0);
      CHECK(loss.grad().at({}) == 0);
    }
  });
}

TEST_CASE("a tape by some fields within a kernel is an error") {
  const std::string message = qn::test::message_of([] {
    qn::Kernel k = [](qn::Field<float> x) {
      qn::Tape tape{qn::wrt(x)};
      for (auto i : x) x[i] = 0.0f;
    };
  });
  CHECK(message.find("launches.cpp:") != std::string::npos);
  CHECK(message.find("a tape") != std::string::npos);
}

TEST_CASE("a tape by the field parameter of a kernel that is recorded already is an error") {
  std::optional<qn::Field<double>> parameter;
  qn::Kernel f = [&](qn::Field<double> x) {
    parameter.emplace(x);
    for (auto i : x) x[i] = 1.0;
  };
  const int line = __LINE__ + 1;
  const std::string message = qn::test::message_of([&] { qn::Tape tape{qn::wrt(*parameter)}; });
  CHECK(message.find("launches.cpp:" + std::to_string(line) +
                     ": field number 0 of wrt() is a field parameter: a tape takes derivatives by "
                     "fields that are there") != std::string::npos);
}

TEST_CASE("a tape goes back through a launch whose small fields overlap") {
  on_every_device([](const qn::Device& device) {
    qn::Kernel chain = [](qn::Field<double> from, qn::Field<double> to) {
      for (auto i : serial(range(to.dim(0)))) to[i] = sin(from[i]);
    };
    for (int64_t size : {9, 900}) {  // copied when recorded; when overwritten
      INFO(size << " elements");
      qn::Field<double> x{device, {size}};
      x.set(0, 0.75);
      x.grad().fill(0);
      x.grad().set(size - 1, 1);
      {
        qn::Tape tape;
        chain(x.slice(0, 0, size - 1), x.slice(0, 1, size));
        tape.backward();
      }
      double v = 0.75, slope = 1;
      for (int64_t k = 1; k < size; k++) {
        slope *= std::cos(v);
        v = std::sin(v);
      }
      CHECK_THAT(x.at(size - 1), WithinRel(v, 1e-10));
      CHECK_THAT(x.grad().at(0), WithinRel(slope, 1e-9));
    }
  });
}

TEST_CASE("a tape goes back through the same launches of small fields again and again") {
  on_every_device([](const qn::Device& device) {
    constexpr int n = 40;
    qn::Field<double> x{device, {3}}, y{device, {3}}, scale{device, {3}}, loss{device, {1}};
    qn::Kernel grow = [](qn::Field<double> from, qn::Field<double> by, qn::Field<double> to) {
      for (auto i : from) to[i] = by[i] * from[i] * (1 - from[i]);
    };
    qn::Kernel look = [&] {
      for (auto i : x) atomic_add(loss[0], x[i]);
    };
    // x becomes s x (1 - x), again and again: what goes back takes a factor of s (1 - 2 x) each
    // time, and adds a term with x (1 - x) to the derivative by s.
    const std::vector<double> first = {0.3, 0.75, 0.9}, s = {2.5, 2.75, 3.0};
    for (const char* way : {"in place", "in turns", "by views"}) {
      INFO(way);
      const bool is_in_turns = way == std::string("in turns");
      const bool is_by_views = way == std::string("by views");
      x.copy_from(first);
      scale.copy_from(s);
      for (auto f : {x, y, scale, loss}) f.grad().fill(0);
      loss.grad().fill(1);
      {
        qn::Tape tape;
        for (int t = 0; t < n; t++) {
          if (is_in_turns)
            t % 2 == 0 ? grow(x, scale, y) : grow(y, scale, x);
          else if (is_by_views)
            for (int k = 0; k < 3; k++)
              grow(x.slice(0, k, k + 1), scale.slice(0, k, k + 1), x.slice(0, k, k + 1));
          else
            grow(x, scale, x);
        }
        look();
        tape.backward();
      }
      const std::vector<double> by_x = qn::to_vector(x.grad()),
                                by_scale = qn::to_vector(scale.grad());
      for (size_t k = 0; k < 3; k++) {
        std::vector<double> values = {first[k]};
        for (int t = 1; t < n; t++) values.push_back(s[k] * values.back() * (1 - values.back()));
        double adjoint = 1, of_scale = 0;
        for (int t = n; t-- > 0;) {
          of_scale += adjoint * values[size_t(t)] * (1 - values[size_t(t)]);
          adjoint *= s[k] * (1 - 2 * values[size_t(t)]);
        }
        CHECK_THAT(by_x[k], WithinRel(adjoint, 1e-9));
        CHECK_THAT(by_scale[k], WithinRel(of_scale, 1e-9));
      }
    }
  });
}

TEST_CASE(
    "a tape goes back through launches that read one large field by launches that are known") {
  struct Known : qn::runtime::LaunchObserver {
    int unknown = 0, all = 0;
    qn::runtime::Observation observation{*this, qn::runtime::Observation::kernels};
    void before(const qn::runtime::LaunchEvent& event) override {
      all++;
      unknown += event.same == qn::runtime::other_arguments;
    }
  };
  on_every_device([](const qn::Device& device) {
    constexpr int n = 1000, rounds = 20;  // elements that are too many to be copied at once
    qn::Field<double> w{device, {n}}, x{device, {n}};
    qn::Kernel apply = [&] {
      for (auto i : x) x[i] = w[i] * x[i];
    };
    qn::Kernel grow = [&] {
      for (auto i : w) w[i] += 0.25;
    };
    for (int twice = 0; twice < 2; twice++) {
      w.fill(1.25);
      x.fill(0.5);
      w.grad().fill(0);
      x.grad().fill(1);
      qn::Tape tape;
      for (int k = 0; k < rounds; k++) apply();
      grow();
      for (int k = 0; k < rounds; k++) apply();
      Known known;
      tape.backward();
      CHECK(known.all == 2 * rounds + 1);
      CHECK(known.unknown <=
            (twice ? 0 : 2) + 2);  // one of each kernel, and where the memory is another
      const double first = std::pow(1.25, rounds), second = std::pow(1.5, rounds);
      for (double found : qn::to_vector(x.grad()))
        CHECK_THAT(found, WithinRel(first * second, 1e-13));
      for (double found : qn::to_vector(w.grad()))
        CHECK_THAT(found, WithinRel(0.5 * rounds * first * second * (1 / 1.25 + 1 / 1.5), 1e-13));
    }
  });
}

TEST_CASE("a launch that a tape knows goes back where what it reads has come to vary since") {
  on_every_device([](const qn::Device& device) {
    qn::Field<double> x{device, {4}}, y{device, {4}}, z{device, {4}};
    qn::Field<double, 0> loss{device};
    qn::Kernel square = [&] {
      for (auto i : y) z[i] = y[i] * y[i];
    };
    qn::Kernel take = [&] {
      for (auto i : y) y[i] = 3.0 * x[i];
    };
    qn::Kernel look = [&] {
      for (auto i : z) atomic_add(loss(), z[i]);
    };
    x.fill(5);
    x.grad().fill(0);
    loss.grad().fill(1);
    qn::Tape tape{qn::wrt(x)};
    for (int k = 0; k < 4; k++) square();  // of constants
    take();
    for (int k = 0; k < 4; k++) square();
    look();
    tape.backward();
    CHECK(qn::to_vector(x.grad()) == std::vector<double>(4, 2 * 9 * 5));
  });
}

TEST_CASE("what the host writes between launches that a tape knows is an error at the next") {
  on_every_device([](const qn::Device& device) {
    qn::Field<double> x{device, {4}}, y{device, {4}};
    qn::Kernel square = [&] {
      for (auto i : x) y[i] = x[i] * x[i];
    };
    for (auto* written : {&x, &y}) {
      qn::Tape tape;
      for (int k = 0; k < 4; k++) square();
      written->fill(2);
      const std::string written_at = "launches.cpp:" + std::to_string(__LINE__ - 1);
      int line = 0, found = 0;
      CHECK_THAT(error_of([&] { line = __LINE__, square(); }, &found),
                 contains(written_at + ", between launches that a tape records"));
      CHECK(found == line);
    }
  });
}

TEST_CASE("launches of integers are passed over, whatever their atomics yield") {
  on_every_device([](const qn::Device& device) {
    constexpr int n = 12, cells = 4;
    std::vector<double> at;
    for (int k = 0; k < n; k++) at.push_back(0.25 * k + 0.1);
    auto x = numbers(device, at);
    qn::Field<int> found{device, {cells}};
    qn::Field<int, 2> list{device, {cells, n}};
    qn::Field<double, 0> loss{device};
    // Each element is put into the list of its cell; a loop over x asks for its extent.
    qn::Kernel fill = [&] {
      for (auto i : x) list(i % cells, atomic_add(found[i % cells], 1)) = i;
    };
    qn::Kernel measure = [&] {
      for (auto c : found)
        for (auto k : range(found[c])) loss() += x[list(c, k)] * x[list(c, k)] * cast<double>(c);
    };
    loss.grad().fill(1.0);
    x.grad().fill(0.0);
    qn::Tape tape;
    fill();
    measure();
    tape.backward();
    for (int k = 0; k < n; k++)
      CHECK(x.grad().at(k) == Approx(2 * at[size_t(k)] * (k % cells)).margin(1e-14));
    found.fill(0);
    qn::vjp(fill)()();  // does nothing
    for (int c = 0; c < cells; c++) CHECK(found.at(c) == n / cells);
  });
}

TEST_CASE("what was recorded before a launch failed cannot be gone back through") {
  on_every_device([](const qn::Device& device) {
    auto x = numbers(device, {3, 3, 3});
    qn::Kernel five = [&] {
      for (auto i : x) x[i] = x[i] * 5.0;
    };
    qn::Kernel expect_little = [&] {
      for (auto i : x) check(x[i] < 1.0, "{} is much", x[i]);
    };
    const auto synchronize = [&] { qn::Device(device).synchronize(); };
    {
      qn::Tape tape;
      five();
      expect_little();
      five();
      CHECK_THAT(qn::test::message_of(synchronize), contains("15 is much"));
      CHECK(x.at(0) == 15);  // the second one did nothing
      int line = 0, found = 0;
      CHECK_THAT(error_of([&] { line = __LINE__, tape.backward(); }, &found),
                 contains("a launch has failed since"));
      CHECK(found == line);
    }
    {
      x.grad().fill(1.0);
      auto back = qn::vjp(expect_little)();
      CHECK_THROWS_AS(synchronize(), qn::Error);
      CHECK_THAT(qn::test::message_of([&] { back(); }), contains("a launch has failed since"));
    }
    // What begins behind it goes well.
    x.grad().fill(1.0);
    qn::Tape tape;
    five();
    tape.backward();
    CHECK(x.grad().at(0) == 5);
  });
}

TEST_CASE("a snapshot of what there was before a tape is a constant to it") {
  on_every_device([](const qn::Device& device) {
    auto x = numbers(device, {1, 2, 3});
    qn::Field<double, 0> loss{device};
    const auto before = x.snapshot();
    qn::Kernel move = [&] {
      for (auto i : x) x[i] = x[i] * x[i];
    };
    qn::Kernel away = [&] {  // of x² from x as it was
      for (auto i : x) loss() += (x[i] - before[i]) * (x[i] - before[i]);
    };
    const auto gradient = [&](qn::Tape tape) {
      move();
      away();
      tape.backward();
      return qn::to_vector(x.grad());
    };
    // d/dx (x² - c)² = 4 x (x² - c) at c = x
    for (const bool all : {true, false}) {
      x.copy_from(std::vector<double>{1, 2, 3});
      x.grad().fill(0);
      loss.grad().fill(1);
      CHECK(gradient(all ? qn::Tape() : qn::Tape(qn::wrt(x))) == std::vector<double>{0, 16, 72});
    }
    qn::Tape tape;
    move();
    const auto since = x.snapshot();
    qn::Kernel use = [&] {
      for (auto i : x) loss() += x[i] * since[i];
    };
    CHECK_THAT(qn::test::message_of([&] { use(); }), contains("a snapshot is read only"));
  });
}
