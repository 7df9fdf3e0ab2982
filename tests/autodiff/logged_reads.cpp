// Adjoints of launches that read what they have written, and of local arrays.
#include <quern/autodiff.h>

#include <cmath>
#include <numbers>
#include <numeric>

#include "autodiff/reverse/reverse.h"
#include "quern/runtime/program.h"
#include "tests/autodiff/numbers.h"
#include "tests/dsl/record.h"
#include "tests/end_to_end/devices.h"
#include "tests/message_of.h"

using namespace quern;
using namespace quern::lang;
using quern::test::message_of;

namespace {
/// x̄ of a kernel by vjp, given the adjoints of y behind it.
template <class K>
std::vector<double> pulled(K& kernel, qn::Field<double>& x, qn::Field<double>& y,
                           const std::vector<double>& seed) {
  x.grad().fill(0);
  y.grad().copy_from(seed);
  qn::vjp(kernel)()();
  return qn::to_vector(x.grad());
}

/// The kernel's tangents of y along each unit vector are the rows of Jᵀ: of every entry.
template <class K>
void expect_transposed(K& kernel, qn::Field<double>& x, qn::Field<double>& y) {
  const std::vector<double> at = qn::to_vector(x), before = qn::to_vector(y);
  std::vector<std::vector<double>> forward;
  const auto n = int(at.size()), m = int(before.size());
  auto push = qn::jvp(kernel);
  for (int k = 0; k < n; k++) {
    x.copy_from(at);
    y.copy_from(before);
    x.dual().fill(0);
    y.dual().fill(0);
    x.dual().set(k, 1);
    push();
    forward.push_back(qn::to_vector(y.dual()));
  }
  double size = 0;
  for (int r = 0; r < m; r++) {
    x.copy_from(at);
    y.copy_from(before);
    std::vector<double> seed(size_t(m), 0);
    seed[size_t(r)] = 1;
    const std::vector<double> row = pulled(kernel, x, y, seed);
    for (int k = 0; k < n; k++) {
      INFO("∂y" << r << "/∂x" << k);
      CHECK(row[size_t(k)] == Approx(forward[size_t(k)][size_t(r)]).epsilon(1e-11).margin(1e-11));
      size += std::abs(row[size_t(k)]);
    }
  }
  CHECK(size > 0);
}
}  // namespace

TEST_CASE("adjoints of what a launch has written before it reads it") {
  on_every_device([](const qn::Device& device) {
    auto x = numbers(device, {1, 2, 3});
    auto y = numbers(device, {0, 0, 0});
    qn::Kernel twice = [&] {  // y = x⁴
      for (auto i : x) y[i] = x[i] * x[i];
      for (auto i : x) y[i] = y[i] * y[i];
    };
    CHECK(pulled(twice, x, y, {1, 1, 10}) == std::vector<double>{4, 32, 1080});
    CHECK(qn::to_vector(y) == std::vector<double>{1, 16, 81});
    x.copy_from(std::vector<double>{1, 2, 3});
    qn::Kernel neighbours = [&] {  // x = x², y_i = x_i x_{i+1}
      for (auto i : x) x[i] = x[i] * x[i];
      for (auto i : x) y[i] = x[i] * x[(i + 1) % 3];
    };
    // y = (x0² x1², x1² x2², x2² x0²)
    x.grad().fill(0);
    y.grad().copy_from(std::vector<double>{1, 0, 0});
    auto back = qn::vjp(neighbours)();
    x.copy_from(std::vector<double>{5, 5, 5});  // what comes behind the launch does not matter
    back();
    CHECK(qn::to_vector(x.grad()) == std::vector<double>{8, 4, 0});
  });
}

TEST_CASE("adjoints of a value that rounds of a loop carry through a field") {
  // Taichi's issue 8802: its gradient is wrong for such loops without a word.
  on_every_device([](const qn::Device& device) {
    for (const int rounds : {0, 1, 7, 1000}) {
      auto x = numbers(device, {0.3, 0.7, 0.9});
      auto y = numbers(device, {1, 2, 3});
      qn::Kernel carried = [&] {
        for (auto i : x) {
          y[i] = 1.0;
          for ([[maybe_unused]] auto k : range(rounds + i))
            y[i] = y[i] * (1.0 - 0.001 * x[i] * y[i]);
        }
      };
      const std::vector<double> found = pulled(carried, x, y, {1, 1, 1});
      for (int i = 0; i < 3; i++) {
        const double at = std::vector{0.3, 0.7, 0.9}[size_t(i)];
        double v = 1, slope = 0;
        for (int k = 0; k < rounds + i; k++) {
          slope = slope * (1 - 0.002 * at * v) - 0.001 * v * v;
          v = v * (1 - 0.001 * at * v);
        }
        CHECK(y.at(i) == Approx(v).epsilon(1e-12));
        CHECK(found[size_t(i)] == Approx(slope).epsilon(1e-11));
      }
    }
  });
}

TEST_CASE("perfect plasticity in one dimension has its published gradient") {
  // Of Taichi's issue 8802, whose tape gives 4.8 times as much: 3.895472 is that of an independent
  // program, found again by central differences.
  on_every_device([](const qn::Device& device) {
    constexpr int n = 60;
    constexpr double stiffness = 1000, strength = 2;
    qn::Field<double, 0> strain{device}, flow{device};
    qn::Field<double> plastic{device, {n + 1}};
    strain.fill(0.0045);
    qn::Kernel plasticity = [&] {
      for ([[maybe_unused]] auto one : range(1))
        for (auto i : range(n)) {
          F64 turn = sin(2 * std::numbers::pi * cast<double>(i) / n);
          F64 trial = stiffness * (strain() * turn - plastic[i]);
          Var<double> d = 0.0;
          If(abs(trial) > strength) {
            d = (abs(trial) - strength) / stiffness;
            flow() = flow() + d;
          }
          plastic[i + 1] = plastic[i] + select(trial > 0.0, F64(d), -d);
        }
    };
    flow.grad().fill(1);
    qn::Tape tape;
    plasticity();
    tape.backward();
    CHECK(strain.grad().at({}) == Approx(3.895472).epsilon(2e-7));
  });
}

TEST_CASE("adjoints of a triangular system that is solved in place") {
  // (L y)_i = x_i, by rows, each of which reads those before it: ȳ is L⁻ᵀ's.
  on_every_device([](const qn::Device& device) {
    constexpr int n = 12;
    std::vector<double> at(n);
    std::iota(at.begin(), at.end(), 1.0);
    auto x = numbers(device, at);
    auto y = numbers(device, std::vector<double>(n, 0));
    qn::Kernel solve_in_place = [&] {
      for ([[maybe_unused]] auto one : range(1))
        for (auto i : range(n)) {
          Var<double> left = x[i];
          for (auto k : range(i)) left -= y[k] / (1.0 + cast<double>(i + k));
          y[i] = left / 2.0;
        }
    };
    std::vector<double> seed(n);
    for (int i = 0; i < n; i++) seed[size_t(i)] = std::cos(i);
    std::vector<double> expected = seed;  // Lᵀ z = ȳ, from the end
    for (int i = n - 1; i >= 0; i--) {
      for (int k = i + 1; k < n; k++) expected[size_t(i)] -= expected[size_t(k)] / (1.0 + i + k);
      expected[size_t(i)] /= 2;
    }
    const std::vector<double> found = pulled(solve_in_place, x, y, seed);
    for (size_t i = 0; i < n; i++) CHECK(found[i] == Approx(expected[i]).epsilon(1e-12));
  });
}

TEST_CASE("adjoints of sweeps in one launch, branches and views") {
  on_every_device([](const qn::Device& device) {
    auto x = numbers(device, {0.3, -0.7, 0.9, 1.1, -0.2});
    auto y = numbers(device, {0.5, 0.25, -1, 2, 1});
    qn::Kernel five = [&] {
      Var<int> t = 0;
      While(t < 5) {
        for (auto i : range(1, 4)) y[i] = sin(y[i]) * x[i] + 0.1 * x[i - 1];
        If(t % 2 == 0) {
          for (auto i : x) x[i] = x[i] * x[i] - 0.5 * y[4 - i];
        }
        t += 1;
      }
    };
    expect_transposed(five, x, y);
    auto odd = y.slice(0, 1, 5, 2), even = y.slice(0, 0, 5, 2);
    qn::Kernel through_views = [&] {
      for (auto i : odd) odd[i] = odd[i] * x[i] + even[i];
      for (auto i : even) even[i] = even[i] * odd[i % 2] * y[1] + x[i];
    };
    expect_transposed(through_views, x, y);
  });
}

TEST_CASE("adjoints of local arrays") {
  on_every_device([](const qn::Device& device) {
    auto x = numbers(device, {0.3, -0.7, 0.9});
    auto y = numbers(device, {0, 0, 0});
    qn::Kernel recurrence = [&] {
      for (auto i : x) {
        Var<qn::Array<double, 8>> a;
        a[0] = x[i];
        a[1] = x[(i + 1) % 3];
        for (auto k : range(2, 8)) a[k] = a[k - 1] * a[k - 2] + x[i];
        for (auto k : range(8)) a[(k * 3) % 8] = a[k] * a[7 - k];
        Var<double> sum = 0;
        for (auto k : range(i, 8)) sum += a[k] * a[k];
        y[i] = sum;
      }
    };
    expect_transposed(recurrence, x, y);
  });
}

TEST_CASE("more rounds than were counted are reported, and go to rows that are there alone") {
  const auto device = quern::runtime::Device::open("cpu");
  auto kernel = test::record([](Field<double> x, Field<double> y) {
    for (auto i : x) {
      Var<double> v = x[i];
      for ([[maybe_unused]] auto k : range(100 + i)) v = v * v;
      y[i] = v;
    }
  });
  quern::ir::finish_recording(*kernel);
  autodiff::Reverse reverse = autodiff::reverse(*kernel, {kernel->modes, {1, 2}}, {true, true});
  REQUIRE(reverse.rows.size() == 1);
  quern::runtime::Program program(std::move(reverse.kernel));
  const auto field = [&](quern::ir::Type type, int64_t extent) {
    return quern::runtime::Argument{0, std::make_shared<quern::runtime::Storage>(
                                           device, std::vector<quern::ir::Storage>{{type, type}},
                                           std::vector{extent}, quern::Loc{})};
  };
  const auto launch = [&](int64_t rows) {
    auto x = field(quern::ir::Type::f64, 3), y = field(quern::ir::Type::f64, 3);
    program.launch(
        std::vector{x, y, x, y, field(quern::ir::Type::f64, rows), field(quern::ir::Type::i64, 1)},
        program.kernel().modes, {});
    device->synchronize();
  };
  launch(303);
  CHECK(message_of([&] { launch(302); }).find("had more rounds") != std::string::npos);
  CHECK(message_of([&] { launch(1); }).find("had more rounds") != std::string::npos);
}

TEST_CASE("adjoints of elements that an earlier round has written under another index") {
  on_every_device([](const qn::Device& device) {
    auto x = numbers(device, {0.3, -0.7, 0.9, 1.1, -0.2, 0.4});
    auto y = numbers(device, {0.5, 0.25, -1, 2, 1, 0.7});
    const auto expect = [&](auto kernel) { expect_transposed(kernel, x, y); };
    expect(qn::Kernel([&] {  // read x[i], write x[i + 1]
      for ([[maybe_unused]] auto one : range(1))
        for (auto i : range(5)) y[i + 1] = sin(y[i]) * x[i] + y[i + 1];
    }));
    expect(qn::Kernel([&] {  // written below first, so that nothing is read again
      for ([[maybe_unused]] auto one : range(1))
        for (auto i : range(5)) y[i] = y[i + 1] * y[i + 1] * x[i];
    }));
    expect(qn::Kernel([&] {  // nested, and with two distances
      for ([[maybe_unused]] auto one : range(1))
        for (auto k : range(1, 3))
          for (auto i : range(6 - k)) y[i + k] = y[i] * y[i + k] + x[i];
    }));
    expect(qn::Kernel([&] {  // the write stands behind the read, in a While
      for ([[maybe_unused]] auto one : range(1)) {
        Var<int> i = 5;
        While(i > 0) {
          Var<double> before = y[i];
          i -= 1;
          y[i] = before * y[i] + x[i];
        }
      }
    }));
    expect(qn::Kernel([&] {  // rounds of the kernel, iterations that shift
      Var<int> t = 0;
      While(t < 3) {
        for (auto i : range(5)) x[i] = y[i + 1] * y[i] + 0.3 * x[i];
        for (auto i : range(5)) y[i + 1] = x[i] + 0.5 * x[i] * x[i];
        t += 1;
      }
    }));
  });
}

TEST_CASE("what is read atomically and written by nobody has adjoints where others are logged") {
  on_every_device([](const qn::Device& device) {
    auto x = numbers(device, {2, -3});
    qn::Field<double> y{device, {2}}, z{device, {2}};
    qn::Kernel f = [&] {
      for (auto i : x) y[i] = atomic_load(x[i]) * x[i];
      for (auto i : x) z[i] = y[1 - i] * y[1 - i];
    };
    z.grad().copy_from(std::vector<double>{1, 10});
    qn::vjp(f)()();
    // z_0 = x_1⁴, z_1 = x_0⁴
    CHECK(qn::to_vector(x.grad()) == std::vector<double>{10 * 4 * 8, 4 * -27});
  });
}

TEST_CASE("conditions of a While read what its rounds have written") {
  on_every_device([](const qn::Device& device) {
    // Halved until it is 1 at most: y = x / 2^rounds.
    const std::vector<double> at = {5, 0.5, 1.5, 40, 1};
    const std::vector<double> slopes = {0.125, 1, 0.5, 1.0 / 64, 1};
    const auto expect_slopes = [&](auto&& record, const std::vector<double>& expected) {
      auto y = numbers(device, at);
      qn::Field<int> taken{device, {int(at.size())}};
      qn::Kernel halve = [&] {
        for (auto i : y) record(y, taken, i);
      };
      y.grad().fill(1);
      qn::vjp(halve)()();
      CHECK(qn::to_vector(y.grad()) == expected);
      y.copy_from(at);
      y.dual().fill(1);
      qn::jvp(halve)();
      CHECK(qn::to_vector(y.dual()) == expected);
    };
    expect_slopes(
        [](auto& y, auto&, I32 i) {
          While(y[i] > 1.0) { y[i] = y[i] * 0.5; }
        },
        slopes);
    expect_slopes(
        [](auto& y, auto&, I32 i) {
          Var<int> rounds = 0;
          While(rounds < 20 && y[i] > 1.0) {
            y[i] = y[i] * 0.5;
            rounds += 1;
          }
        },
        slopes);
    expect_slopes(
        [](auto& y, auto&, I32 i) {  // by halves of a square: rounds by what another loop wrote
          for ([[maybe_unused]] auto turn : range(2)) While(y[i] > 1.0) {
              Var<double> v = y[i];
              y[i] = v * v / 8.0;
              If(y[i] > 4.0) { y[i] = y[i] / 8.0; }
            }
        },
        [&] {
          std::vector<double> expected;
          for (double v : at) {
            double slope = 1;
            while (v > 1) {
              slope *= 2 * v / 8;
              v = v * v / 8;
              if (v > 4) v /= 8, slope /= 8;
            }
            expected.push_back(slope);
          }
          return expected;
        }());
    expect_slopes(
        [](auto& y, auto& taken, I32 i) {  // integers that a round counts down in a field
          taken[i] = i;
          While(taken[i] > 0) {
            y[i] = y[i] * 0.5;
            taken[i] = taken[i] - 1;
          }
        },
        {1, 0.5, 0.25, 0.125, 0.0625});
  });
}

TEST_CASE("a While of the whole kernel asks what its loops have written") {
  on_every_device([](const qn::Device& device) {
    auto x = numbers(device, {3, 5, 0.5});
    qn::Field<double, 0> sum{device};
    qn::Kernel shrink = [&] {
      sum() = 9.0;
      While(sum() > 1.0) {
        sum() = 0.0;
        for (auto i : x) {
          x[i] = x[i] * x[i] / 8.0;
          sum() += x[i];
        }
      }
    };
    x.grad().fill(1);
    qn::vjp(shrink)()();
    const auto expected = [](double v, int rounds) {
      double slope = 1;
      for (int k = 0; k < rounds; k++, v = v * v / 8) slope *= v / 4;
      return slope;
    };
    // Sums of 4.3, 1.4 and 0.2: three rounds.
    CHECK(x.grad().at(0) == Approx(expected(3, 3)).epsilon(1e-13));
    CHECK(x.grad().at(1) == Approx(expected(5, 3)).epsilon(1e-13));
    CHECK(x.grad().at(2) == Approx(expected(0.5, 3)).epsilon(1e-13));
  });
}

TEST_CASE("what an iteration adds to elements of its own it may read") {
  on_every_device([](const qn::Device& device) {
    const std::vector<double> at = {0.5, -1, 2, 0.25, 1.5, -0.5, 1, 3};
    auto x = numbers(device, at);
    qn::Field<double> y{device, {8}};
    // y_j = (0.5 + x_i)², of each i that the loop has, j by what `place` says.
    const auto expect = [&](auto& kernel, const std::vector<std::pair<int, int>>& places) {
      y.fill(0.5);
      std::vector<double> seed(8, 0), expected(8, 0);
      for (const auto& [i, j] : places) {
        seed[size_t(j)] = j + 1;
        expected[size_t(i)] = 2 * (0.5 + at[size_t(i)]) * (j + 1);
      }
      CHECK(pulled(kernel, x, y, seed) == expected);
    };
    qn::Kernel stepped = [&] {
      for (auto i : range(1, 8, 3)) {
        y[i] += x[i];
        y[i] = y[i] * y[i];
      }
    };
    expect(stepped, {{1, 1}, {4, 4}, {7, 7}});
    qn::Kernel reversed = [&] {
      for (auto i : x) {
        y[7 - i] += x[i];
        y[7 - i] = y[7 - i] * y[7 - i];
      }
    };
    expect(reversed, {{0, 7}, {1, 6}, {2, 5}, {3, 4}, {4, 3}, {5, 2}, {6, 1}, {7, 0}});
    qn::Kernel odd = [&](I32 by) {
      for (auto i : range(3)) {
        y[2 * i + by] += x[i];
        y[2 * i + by] = y[2 * i + by] * y[2 * i + by];
      }
    };
    y.fill(0.5);
    x.grad().fill(0);
    y.grad().fill(1);
    qn::vjp(odd)(1)();
    CHECK(qn::to_vector(x.grad()) == std::vector<double>{2, -1, 5, 0, 0, 0, 0, 0});

    // Others may come to these.
    qn::Kernel halves = [&] {
      for (auto i : x) {
        y[i / 2] += x[i];
        y[i / 2] = y[i / 2] * 2.0;
      }
    };
    qn::Kernel by_rounds = [&] {
      for (auto i : range(3))
        for (auto k : range(3)) {
          y[2 * i + k] += x[i];
          y[2 * i + k] = y[2 * i + k] * 2.0;
        }
    };
    for (const auto& kernel : {halves, by_rounds}) {
      const std::string found = message_of([&] { qn::vjp(kernel)(); });
      INFO(found);
      CHECK(found.find("is read here while other iterations may add to it") != std::string::npos);
    }
  });
}

TEST_CASE("the only iteration of a loop reads what it has added itself") {
  on_every_device([](const qn::Device& device) {
    auto x = numbers(device, {1, 2, 3});
    qn::Field<double> sum{device, {1}}, y{device, {1}};
    qn::Kernel squares = [&] {
      for (auto i : range(1)) {
        for (auto j : range(3)) sum[0] += x[j] * x[j];
        y[i] = sum[0] * sum[0];
      }
    };
    sum.fill(1);
    y.grad().fill(1);
    qn::vjp(squares)()();
    CHECK(y.at(0) == 225);
    CHECK(qn::to_vector(x.grad()) == std::vector<double>{60, 120, 180});  // 2 · 15 · 2x
    CHECK(sum.grad().at(0) == 30);
  });
}
