// What steps in time carry, read and find again.
#include <quern/algorithms.h>
#include <quern/autodiff.h>
#include <quern/sparse.h>
#include <sys/mman.h>

#include <cmath>
#include <functional>

#include "tests/autodiff/numbers.h"
#include "tests/end_to_end/devices.h"
#include "tests/message_of.h"

using namespace quern;
using namespace quern::lang;
using quern::test::message_of;

namespace {

using Step = std::function<void(int)>;

/// A chain of numbers that steps move, and where they end: loss = Σ (k + 1) x_k.
struct Chain {
  explicit Chain(const qn::Device& device)
      : x(numbers(device, start)),
        y(numbers(device, {0, 0, 0, 0})),
        c(numbers(device, {1, 0.5, 0.25, 2})),
        loss(device) {}

  /// x̄, with all fields as they were.
  std::vector<double> gradient(const std::function<void(qn::Tape&)>& forward) {
    x.copy_from(start);
    y.fill(0);
    c.copy_from(std::vector<double>{1, 0.5, 0.25, 2});
    loss.fill(0);
    for (const auto& field : {x, y, c}) field.grad().fill(0);
    loss.grad().fill(1);
    qn::Tape tape;
    forward(tape);
    measure();
    tape.backward();
    return qn::to_vector(x.grad());
  }

  /// By steps() what a tape of all of them yields.
  void expect_same(const Step& step, int n = 6) {
    const std::vector<double> expected = gradient([&](qn::Tape&) {
      for (int t = 0; t < n; t++) step(t);
    });
    for (const int snapshots : {1, 2, 10}) {
      INFO(snapshots << " snapshots");
      CHECK(gradient([&](qn::Tape& tape) { qn::steps(tape, n, step, qn::state(x), snapshots); }) ==
            expected);
    }
  }
  void expect_refused(const Step& step, const std::string& why) {
    const std::string found = message_of(
        [&] { gradient([&](qn::Tape& tape) { qn::steps(tape, 6, step, qn::state(x), 2); }); });
    INFO(found);
    CHECK(found.find(why) != std::string::npos);
    CHECK(found.find("name it in state()") != std::string::npos);
  }

  const std::vector<double> start = {0.5, -0.75, 0.25, 1.5};
  qn::Field<double> x, y, c;
  qn::Field<double, 0> loss;
  qn::Kernel<void()> measure{[this] {
    for (auto i : x) loss() += (cast<double>(i) + 1) * x[i];
  }};
};

}  // namespace

TEST_CASE("steps find what they only read as it was, whatever has been written since") {
  on_every_device([](const qn::Device& device) {
    Chain chain(device);
    auto& [start, x, y, c, loss, measure] = chain;
    qn::Kernel step = [&] {
      for (auto i : x) x[i] = sin(x[i]) * c[i];
    };
    qn::Kernel turn = [&] {
      for (auto i : c) c[i] = 0.5 * c[i] * x[i];
    };
    const int n = 4;
    const auto blocks = [&](auto&& steps) {
      return chain.gradient([&](qn::Tape& tape) {
        for (int block = 0; block < 3; block++) {
          steps(tape);
          turn();
        }
      });
    };
    const std::vector<double> expected = blocks([&](qn::Tape&) {
      for (int t = 0; t < n; t++) step();
    });
    const std::vector<double> left = qn::to_vector(c);
    for (const int snapshots : {1, 2, 10}) {
      INFO(snapshots << " snapshots");
      CHECK(blocks([&](qn::Tape& tape) {
              qn::steps(tape, n, [&](int) { step(); }, qn::state(x), snapshots);
            }) == expected);
      CHECK(qn::to_vector(c) == left);
    }

    // By the host, behind the last launch, and through a view.
    const auto then_written = [&](auto&& write) {
      x.copy_from(start);
      c.copy_from(std::vector<double>{1, 0.5, 0.25, 2});
      x.grad().fill(0);
      loss.grad().fill(1);
      qn::Tape tape;
      qn::steps(tape, n, [&](int) { step(); }, qn::state(x), 2);
      measure();
      write();
      const std::vector<double> now = qn::to_vector(c);
      tape.backward();
      CHECK(qn::to_vector(c) == now);
      return qn::to_vector(x.grad());
    };
    const std::vector<double> once = then_written([] {});
    for (size_t k = 0; k < 4; k++) {  // the chain rule
      double v = start[k], slope = double(k) + 1;
      const double factor = std::vector<double>{1, 0.5, 0.25, 2}[k];
      for (int t = 0; t < n; t++) {
        slope *= std::cos(v) * factor;
        v = std::sin(v) * factor;
      }
      CHECK(once[k] == Approx(slope).epsilon(1e-12));
    }
    CHECK(then_written([&] { c.fill(7.0); }) == once);
    CHECK(then_written([&] { c.slice(0, 1, 3).fill(7.0); }) == once);
  });
}

TEST_CASE("steps tell which elements of a field each of them writes") {
  on_every_device([](const qn::Device& device) {
    Chain chain(device);
    auto& [start, x, y, c, loss, measure] = chain;
    const int n = int(start.size());
    qn::Kernel halves = [&] {  // all of y by what loops over another field
      for (auto i : x) y[i] = 0.5 * x[i] * x[i];
      for (auto i : range(n)) x[i] = x[i] + 0.1 * y[(i + 1) % n];
    };
    chain.expect_same([&](int) { halves(); });
    qn::Kernel inner = [&] {  // whose ends nobody writes
      for (auto i : range(1, n - 1)) y[i] = x[i] * x[i];
    };
    qn::Kernel around = [&] {
      for (auto i : range(1, n - 1)) x[i] = x[i] + 0.1 * (y[i - 1] + y[i + 1]);
    };
    chain.expect_same([&](int) {
      inner();
      around();
    });
    qn::Kernel in_rounds = [&] {
      for ([[maybe_unused]] auto turn : serial(range(2))) {
        for (auto i : y) y[i] = sin(x[i]);
        for (auto i : x) x[i] = x[i] + 0.1 * y[i];
      }
    };
    chain.expect_same([&](int) { in_rounds(); });
    qn::Kernel sums = [&] {
      for (auto i : x) x[i] = x[i] + 0.01 * y[i];
    };
    chain.expect_same([&](int) {
      qn::inclusive_scan(x, y);
      sums();
    });

    qn::Kernel row = [&](I32 t) {  // a ring of two
      for (auto i : range(2)) y[2 * (t % 2) + i] = x[i] * x[i];
    };
    qn::Kernel rows = [&] {
      for (auto i : range(2)) x[i] = x[i] + 0.1 * (y[i] + y[2 + i]);
    };
    const auto ring = [&](int t) {
      row(t);
      rows();
    };
    chain.expect_refused(ring, "is read here (at ");
    qn::Kernel cyclic = [&](I32 t) {
      for ([[maybe_unused]] auto one : range(1)) y[t % n] = x[t % n] * x[t % n];
    };
    chain.expect_refused(
        [&](int t) {
          cyclic(t);
          sums();
        },
        "is written here (at ");
    qn::Kernel some = [&] {
      for (auto i : y) {
        If(x[i] > 0.0) { y[i] = x[i]; }
      }
    };
    chain.expect_refused(
        [&](int) {
          some();
          sums();
        },
        "part of what steps carry");
    qn::Kernel behind = [&] {  // a round reads what a later one writes
      for ([[maybe_unused]] auto one : range(1))
        for (auto k : serial(range(n))) {
          y[k] = x[k];
          x[k] = x[k] + 0.1 * y[(k + 1) % n];
        }
    };
    chain.expect_refused([&](int) { behind(); }, "is read here (at ");
    qn::Kernel late = [&](I32 t) {  // what an earlier step has read
      for (auto i : y) {
        If(t == 3) { y[i] = 1.0; }
      }
    };
    chain.expect_refused(
        [&](int t) {
          sums();
          late(t);
        },
        "a step has read what it held before");
    // With the ring in the state it is right.
    const auto by = [&](bool steps) {
      return chain.gradient([&](qn::Tape& tape) {
        if (steps) return qn::steps(tape, 5, ring, qn::state(x, y), 2);
        for (int t = 0; t < 5; t++) ring(t);
      });
    };
    CHECK(by(true) == by(false));
  });
}

TEST_CASE("steps may launch tangents of a kernel that combines") {
  on_every_device([](const qn::Device& device) {
    Chain chain(device);
    auto& [start, x, y, c, loss, measure] = chain;
    qn::Kernel most = [&] {
      for (auto i : y) y[i] = 0.0;
      for (auto i : x) atomic_max(y[0], x[i]);
      for (auto i : x) x[i] = 0.9 * x[i] + 0.1 * y[0];
    };
    auto push = qn::jvp(most);
    qn::Kernel slopes = [&] {
      for (auto i : x) loss() += x.dual()[i] * x[i];
    };
    const auto gradient = [&](bool steps) {
      x.dual().copy_from(std::vector<double>{1, 2, -1, 0.5});
      x.dual().grad().fill(0);
      y.dual().fill(0);
      y.dual().grad().fill(0);
      return chain.gradient([&](qn::Tape& tape) {
        const Step step = [&](int) { push(); };
        if (steps)
          qn::steps(tape, 3, step, qn::state(x, x.dual()), 2);
        else
          for (int t = 0; t < 3; t++) step(t);
        slopes();
      });
    };
    const std::vector<double> plain = gradient(false);
    CHECK(gradient(true) == plain);
  });
}

TEST_CASE("what throws in steps leaves a tape that cannot be gone back through") {
  const qn::Device device("cpu");
  Chain chain(device);
  auto& [start, x, y, c, loss, measure] = chain;
  qn::Kernel step = [&] {
    for (auto i : x) x[i] = sin(x[i]);
  };
  for (const int last : {2, 5}) {
    qn::Tape tape;
    CHECK_THROWS_AS(qn::steps(
                        tape, 6,
                        [&](int t) {
                          step();
                          if (t == last) throw std::runtime_error("converged");
                        },
                        qn::state(x), 2),
                    std::runtime_error);
    const std::string found = message_of([&] { tape.backward(); });
    INFO(found);
    CHECK(found.find("threw, so its tape cannot be gone back through") != std::string::npos);
  }
  {
    qn::Tape tape;
    int line = 0;
    const auto outer = [&](int) {
      line = __LINE__ + 1;
      qn::steps(tape, 3, [&](int) { step(); }, qn::state(x), 2);
    };
    const std::string found = message_of([&] { qn::steps(tape, 3, outer, qn::state(x), 2); });
    INFO(found);
    CHECK(found.find("steps() within a step of another steps()") != std::string::npos);
    CHECK(found.find("steps_carried.cpp:" + std::to_string(line)) != std::string::npos);
  }
  {
    qn::Tape tape;
    const std::string found = message_of(
        [&] { qn::steps(tape, 3, [&](int) { step(); }, qn::state(x, y.slice(0, 0, 2)), 2); });
    INFO(found);
    CHECK(found.find("field number 2 of state() is a view") != std::string::npos);
  }
}

TEST_CASE("what may not be written is no reason to read it in steps") {
  on_every_device([](const qn::Device& device) {
    Chain chain(device);
    auto& [start, x, y, c, loss, measure] = chain;
    qn::Field<double> none{device, {0}};
    qn::Kernel use = [&] {
      for (auto i : x) x[i] = x[i] + 0.1 * y[0] * x[i];
    };
    qn::Kernel by_count = [&](I32 n) {  // an element that the loop's index does not name
      for ([[maybe_unused]] auto one : range(n)) y[0] = 0.25;
    };
    chain.expect_refused(
        [&](int t) {
          by_count(t == 2 ? 1 : 0);
          use();
        },
        "here (at ");
    qn::Kernel within = [&] {  // a loop in one without iterations
      for ([[maybe_unused]] auto one : none)
        for (auto k : serial(range(1))) y[k] = 0.25;
      for ([[maybe_unused]] auto one : range(1)) y[0] = y[0] + x[1];
    };
    chain.expect_refused([&](int) { within(); }, "here (at ");
    qn::Kernel certain = [&](I32 n) {
      for (auto i : range(n)) y[i] = 0.25 * x[i];
    };
    chain.expect_same([&](int) {
      certain(1);
      use();
    });
    // Many boxes, in each step the same.
    qn::Field<double> many{device, {60}};
    qn::Kernel rows = [&] {
      for (int k = 0; k < 60; k++)
        for ([[maybe_unused]] auto one : range(1)) many[k] = x[k % 4] * (1.0 + k);
    };
    qn::Kernel sum = [&] {
      for (auto i : x)
        for (auto k : range(60)) x[i] = x[i] + 1e-4 * many[k];
    };
    chain.expect_same([&](int) {
      rows();
      sum();
    });
  });
}

TEST_CASE("steps end the elements of a tree before they make others") {
  on_every_device([](const qn::Device& device) {
    Chain chain(device);
    auto& [start, x, y, c, loss, measure] = chain;
    qn::Tree<1> tree{device, {qn::pointer(4), qn::bitmasked(4)}};
    auto seen = tree.field<int>(), marks = tree.field<int>();
    qn::Kernel end = [&] {
      for (auto i : seen) deactivate(seen, i);
    };
    qn::Kernel mark = [&] {
      for (auto i : x) {
        If(x[i] > 0.3) { seen[i] = i + 1; }
      }
    };
    qn::Kernel move = [&] {
      for (auto i : x) x[i] = x[i] * (0.9 + 0.01 * cast<double>(seen[i]));
    };
    qn::Kernel ask = [&] {
      for (auto i : x) x[i] = select(is_active(seen, i), 0.9, 1.1) * x[i];
    };
    for (qn::Kernel<void()> use : {qn::Kernel<void()>(move), qn::Kernel<void()>(ask)}) {
      chain.expect_same([&](int) {
        qn::with_pullback(
            [&] {
              end();
              mark();
            },
            [] {});
        use();
      });
      const std::string found = message_of([&] {
        chain.gradient([&](qn::Tape& tape) {
          qn::steps(
              tape, 6,
              [&](int) {
                mark();
                use();
              },
              qn::state(x), 2);
        });
      });
      INFO(found);
      CHECK(found.find("a loop over it that ends all elements") != std::string::npos);
    }
  });
}

TEST_CASE("steps refuse fields that change as they are gone back through") {
  const qn::Device device("cpu");
  Chain chain(device);
  auto& [start, x, y, c, loss, measure] = chain;
  const auto of_grad = c.grad();
  qn::Kernel reads = [&] {
    for (auto i : x) x[i] = sin(x[i]) * c[i] + 0.0 * of_grad[i];
  };
  const auto says = [&](const Step& step, const char* what) {
    const std::string found = message_of([&] {
      chain.gradient([&](qn::Tape& tape) { qn::steps(tape, 4, step, qn::state(x), 2); });
    });
    INFO(found);
    CHECK(found.find(what) != std::string::npos);
  };
  says([&](int) { reads(); }, "read the grad() of a field");
  qn::Kernel plain = [&] {
    for (auto i : x) x[i] = x[i] * c[i];
  };
  says(
      [&](int) {
        plain();
        c.swap(y);
      },
      "was swapped since steps() began");
}

TEST_CASE("steps do not write wrapped memory that they only read") {
  const qn::Device device("cpu");
  constexpr int n = 512;
  void* const page =
      mmap(nullptr, n * sizeof(double), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(page != MAP_FAILED);
  std::fill_n(static_cast<double*>(page), n, 0.5);
  {
    auto half = qn::Field<double>::wrap(device, static_cast<double*>(page), {n});
    qn::Field<double> x{device, {n}};
    x.fill(1);
    x.grad().fill(1);
    REQUIRE(mprotect(page, n * sizeof(double), PROT_READ) == 0);
    qn::Kernel step = [&] {
      for (auto i : x) x[i] = x[i] * half[i];
    };
    qn::Tape tape(qn::wrt(x));
    qn::steps(tape, 3, [&](int) { step(); }, qn::state(x), 2);
    tape.backward();
    CHECK(x.grad().at(n - 1) == 0.125);
  }
  munmap(page, n * sizeof(double));
}
