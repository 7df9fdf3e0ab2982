// What going back through loops and branches keeps, and that adjoints are right for each way.
#include "autodiff/plans/loop_plans.h"

#include <quern/autodiff.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "autodiff/reverse/reverse.h"
#include "quern/ir/lower.h"
#include "tests/autodiff/numbers.h"
#include "tests/dsl/record.h"
#include "tests/end_to_end/devices.h"
#include "tests/end_to_end/output.h"

#include <quern/else.h>

using namespace qn::lang;
using qn::autodiff::Reverse;
using qn::ir::Op;

namespace {

/// Of a kernel over two fields of doubles.
template <class F>
Reverse reverse_of(F&& body) {
  auto kernel = qn::test::record(std::forward<F>(body));
  qn::ir::finish_recording(*kernel);
  return qn::autodiff::reverse(*kernel, {kernel->modes, {1, 2}}, {true, true});
}

int count(const Reverse& reverse, Op op) {
  int n = 0;
  qn::ir::walk(reverse.kernel->body, [&](const qn::ir::Inst* inst) { n += inst->is(op); });
  return n;
}

bool is_contracted(const Reverse& reverse) {
  bool contracted = true;
  qn::ir::walk(reverse.kernel->body, [&](const qn::ir::Inst* inst) {
    if (inst->is(Op::mul) && qn::ir::is_float(inst->type()))
      contracted &= inst->kind != qn::ir::uncontracted;
  });
  return contracted;
}

/// ȳ = 1 gives these x̄.
void expect_adjoints(const qn::Kernel<void()>& f, const qn::Field<double>& x,
                     const qn::Field<double>& y, const std::vector<double>& expected) {
  y.grad().fill(1.0);
  x.grad().fill(0.0);
  qn::vjp(f)()();
  for (int64_t k = 0; k < int64_t(expected.size()); k++)
    CHECK(x.grad().at(k) == Approx(expected[size_t(k)]).epsilon(1e-12).margin(1e-300));
}

}  // namespace

TEST_CASE("a loop of sums keeps nothing, though what else it carries is wanted") {
  const Reverse reverse = reverse_of([](qn::Field<double> x, qn::Field<double> y) {
    for (auto i : y) {
      Var<double> sum = 0.0, power = 1.0;
      for (auto j : range(500)) {
        sum += x[j] * power;
        power *= 0.25 * cast<double>(i);
      }
      y[i] = sum * sum;
    }
  });
  CHECK(reverse.rows.empty());
  CHECK(!reverse.count);
  CHECK(count(reverse, Op::slot) == 0);
  CHECK(is_contracted(reverse));
}

TEST_CASE("adjoints of loops of sums: branches, inner loops, differences, elements of their own") {
  on_every_device([](const qn::Device& device) {
    auto x = numbers(device, {0.5, -0.25, 2});
    qn::Field<double> y{device, {2}};
    qn::Kernel f = [&] {
      for (auto i : y) {
        Var<double> sum = x[0];
        Var<double> power = 1.0;
        for (auto j : range(3)) {
          If(x[j] > 0) { sum += x[j] * power; }
          Else { sum = sum - sin(x[j]); }
          for (auto k : range(j)) sum += x[k] * x[j];
          power *= 2.0 + cast<double>(i);
        }
        y[i] = sum * sum;
      }
    };
    // s = x0 + x0 - sin x1 + x2 p² + x0 x1 + (x0 + x1) x2 with p = 2, 3
    std::vector<double> expected(3, 0.0);
    for (double p : {2.0, 3.0}) {
      const double s = 0.5 + 0.5 - std::sin(-0.25) + 2 * p * p - 0.125 + 0.25 * 2;
      expected[0] += 2 * s * (2 - 0.25 + 2);
      expected[1] += 2 * s * (-std::cos(-0.25) + 0.5 + 2);
      expected[2] += 2 * s * (p * p + 0.25);
    }
    expect_adjoints(f, x, y, expected);

    qn::Kernel stores = [&] {
      for ([[maybe_unused]] auto i : range(1))
        for (auto j : range(2)) y[j] = x[j] * x[j + 1];
    };
    expect_adjoints(stores, x, y, {-0.25, 0.5 + 2, -0.25});
    qn::Kernel last_wins = [&] {  // the order of rounds matters
      for ([[maybe_unused]] auto i : range(1))
        for (auto j : range(3)) y[j / 2] = x[j] * x[j];
    };
    expect_adjoints(last_wins, x, y, {0, -0.5, 4});
  });
}

TEST_CASE("a While of sums goes back in its own order, whatever its rounds") {
  const auto squares = [](qn::Field<double> x, qn::Field<double> y) {
    for (auto i : y) {
      Var<double> sum = 0.0;
      Var<int> at = 0;
      While(at < 3 + i) {
        sum += x[at] * x[at];
        at += 1;
      }
      y[i] = sum;
    }
  };
  CHECK(reverse_of(squares).rows.empty());
  on_every_device([&](const qn::Device& device) {
    auto x = numbers(device, {1, 2, 3, 4, 5});
    qn::Field<double> y{device, {2}};
    qn::Kernel f = [&] { squares(x, y); };
    expect_adjoints(f, x, y, {4, 8, 12, 8, 0});
  });
}

TEST_CASE(
    "what is dear and wanted is kept beside what loops carry, and what is not wanted is not") {
  const auto damped = [](qn::Field<double> x, qn::Field<double> y) {
    for (auto i : x) {
      Var<double> v = x[i], sum = 0.0;
      for ([[maybe_unused]] auto k : range(8)) {
        v = exp(sin(v));
        sum += v;
      }
      y[i] = sum;
    }
  };
  const Reverse reverse = reverse_of(damped);
  CHECK(reverse.rows.empty());
  CHECK(count(reverse, Op::exp) == 1);   // kept, as exp's derivative is its value
  CHECK(count(reverse, Op::slot) == 2);  // v and exp; no array for the sum
  on_every_device([&](const qn::Device& device) {
    auto x = numbers(device, {0.3, -1.1});
    qn::Field<double> y{device, {2}};
    qn::Kernel f = [&] { damped(x, y); };
    std::vector<double> expected;
    for (double v : {0.3, -1.1}) {
      double slope = 1, sum = 0;
      for (int k = 0; k < 8; k++) {
        slope *= std::exp(std::sin(v)) * std::cos(v);
        v = std::exp(std::sin(v));
        sum += slope;
      }
      expected.push_back(sum);
    }
    expect_adjoints(f, x, y, expected);
  });
}

TEST_CASE("a branch passes on what is dear of its inside") {
  const auto chosen = [](qn::Field<double> x, qn::Field<double> y) {
    for (auto i : x) {
      Var<double> v = x[i];
      If(v > 0) { v = exp(v) * v; }
      Else { v = tanh(v); }
      y[i] = v;
    }
  };
  CHECK(count(reverse_of(chosen), Op::exp) == 1);
  on_every_device([&](const qn::Device& device) {
    auto x = numbers(device, {0.3, -1.1});
    qn::Field<double> y{device, {2}};
    qn::Kernel f = [&] { chosen(x, y); };
    expect_adjoints(f, x, y, {std::exp(0.3) * 1.3, 1 / std::pow(std::cosh(1.1), 2)});
  });
}

TEST_CASE("going back through a loop does not call the math library for slopes") {
  constexpr int rounds = 500;
  const auto bend = [](const auto& v, const auto& w) { return 1.2 * sin(v) + 0.3 * w + cos(w); };
  const Reverse reverse = reverse_of([&](qn::Field<double> x, qn::Field<double> y) {
    for (auto i : y) {
      Var<double> v = x[i];
      for ([[maybe_unused]] auto j : range(rounds)) v = bend(v, tanh(v)) + erf(0.5 * v);
      y[i] = v;
    }
  });
  const qn::ir::Inst* last = nullptr;
  qn::ir::walk(reverse.kernel->body, [&](const qn::ir::Inst* inst) {
    if (inst->is(Op::loop)) last = inst;
  });
  REQUIRE(last);
  int calls = 0;
  qn::ir::walk(last->region(0),
               [&](const qn::ir::Inst* inst) { calls += qn::ir::info(inst->op).library; });
  CHECK(calls == 0);
  CHECK(count(reverse, Op::cos) == 2);  // one of them is the primal's
  CHECK(count(reverse, Op::erf) == 1);
  on_every_device([&](const qn::Device& device) {
    const std::vector<double> at = {0.5, -0.25, 2};
    auto x = numbers(device, at);
    qn::Field<double> y{device, {3}};
    qn::Kernel f = [&] {
      for (auto i : y) {
        Var<double> v = x[i];
        for ([[maybe_unused]] auto j : range(rounds)) v = bend(v, tanh(v)) + erf(0.5 * v);
        y[i] = v;
      }
    };
    std::vector<double> expected;
    for (double v : at) {
      double slope = 1;
      for (int j = 0; j < rounds; j++) {
        const double w = std::tanh(v), w_slope = 1 / (std::cosh(v) * std::cosh(v));
        slope *= 1.2 * std::cos(v) + (0.3 - std::sin(w)) * w_slope +
                 std::exp(-0.25 * v * v) / std::sqrt(3.14159265358979323846);
        v = 1.2 * std::sin(v) + 0.3 * w + std::cos(w) + std::erf(0.5 * v);
      }
      expected.push_back(slope);
    }
    for (double slope : expected) CHECK(std::isfinite(slope));
    expect_adjoints(f, x, y, expected);
  });
}

TEST_CASE("rows that all iterations have alike need no cursor; others do") {
  const auto alike = [](qn::Field<double> x, qn::Field<double> y) {
    for (auto i : x) {
      Var<double> v = x[i];
      for (auto k : range(1, 1601, 2)) v = v - 0.001 * v * v * cast<double>(k % 3);
      y[i] = v;
    }
  };
  const Reverse reverse = reverse_of(alike);
  REQUIRE(reverse.rows.size() == 1);
  int cursors = 0;
  qn::ir::walk(reverse.kernel->body, [&](const qn::ir::Inst* inst) {
    cursors += inst->is(Op::atomic) && inst->elem == qn::ir::Type::i64;
  });
  CHECK(cursors == 0);
  CHECK(is_contracted(reverse));  // how many rows there are depends on no float
  const Reverse by_data = reverse_of([](qn::Field<double> x, qn::Field<double> y) {
    for (auto i : x) {
      Var<double> v = x[i];
      While(v > 1.0) { v = 0.5 * v * v; }
      y[i] = v;
    }
  });
  CHECK(by_data.rows.size() == 1);
  CHECK(!is_contracted(by_data));
  const auto by_counter = [](qn::Field<double> x, qn::Field<double> y) {
    for (auto i : y) {
      Var<double> v = x[i];
      Var<int> k = 0, left = 9;
      While(k < 3 + i && left > 0) {
        v = 0.5 * v * v;
        k += 1;
        left = left / 2;
      }
      y[i] = v * cast<double>(k);
    }
  };
  CHECK(reverse_of(by_counter).rows.size() == 1);
  CHECK(is_contracted(reverse_of(by_counter)));
  CHECK(!is_contracted(reverse_of([](qn::Field<double> x, qn::Field<double> y) {
    for (auto i : y) {
      Var<double> v = x[i];
      Var<int> k = 0;
      While(k < 20) {
        v = 0.5 * v * v;
        If(v < 0.1) { k += 10; }
        k += 1;
      }
      y[i] = v;
    }
  })));
  on_every_device([&](const qn::Device& device) {
    auto x = numbers(device, {0.3, -1.1, 0.8});
    qn::Field<double> y{device, {3}};
    qn::Kernel f = [&] { alike(x, y); };
    std::vector<double> expected;
    for (double v : {0.3, -1.1, 0.8}) {
      double slope = 1;
      for (int k = 1; k < 1601; k += 2) {
        slope *= 1 - 0.002 * v * (k % 3);
        v -= 0.001 * v * v * (k % 3);
      }
      expected.push_back(slope);
    }
    expect_adjoints(f, x, y, expected);
  });
}

TEST_CASE("a loop that others are chosen over is left out where it has no adjoint") {
  const auto nearest = [](qn::Field<double> x, qn::Field<double> y) {
    for (auto i : y) {
      Var<double> least = 1e300;
      for (auto c : range(3)) {
        Var<double> square = 0.0;
        for (auto j : range(20)) {
          F64 off = x[3 * j + c] - cast<double>(i);
          square += off * off;
        }
        least = min(least, square);
      }
      y[i] = least;
    }
  };
  CHECK(count(reverse_of(nearest), Op::if_) == 1);
  on_every_device([&](const qn::Device& device) {
    std::vector<double> at;
    for (int k = 0; k < 60; k++) at.push_back(k % 3 + 0.01 * k);
    auto x = numbers(device, at);
    qn::Field<double> y{device, {3}};
    qn::Kernel f = [&] { nearest(x, y); };
    std::vector<double> expected(60, 0.0);
    for (int i = 0; i < 3; i++) {
      int best = 0;
      double least = 1e300;
      for (int c = 0; c < 3; c++) {
        double square = 0;
        for (int j = 0; j < 20; j++) square += std::pow(at[size_t(3 * j + c)] - i, 2);
        if (square < least) least = square, best = c;
      }
      for (int j = 0; j < 20; j++)
        expected[size_t(3 * j + best)] += 2 * (at[size_t(3 * j + best)] - i);
    }
    expect_adjoints(f, x, y, expected);
  });
}

TEST_CASE("an array that is filled before it is read is filled again, not logged") {
  const auto soft = [](qn::Field<double> x, qn::Field<double> y) {
    for (auto i : y) {
      Var<Array<double, 5>> term;
      for (auto c : range(5)) term[c] = x[c] * cast<double>(1 + i);
      Var<double> sum = 0.0;
      for (auto c : range(5)) sum += exp(F64(term[4 - c]));
      y[i] = log(sum);
    }
  };
  const Reverse reverse = reverse_of(soft);
  CHECK(!reverse.log.sizes);
  const Reverse again = reverse_of([](qn::Field<double> x, qn::Field<double> y) {
    for (auto i : y) {
      Var<Array<double, 5>> term;
      for (auto c : range(5)) term[c] = x[c] * x[c];
      F64 before = term[i];
      for (auto c : range(5)) term[c] = 2.0 * before;
      y[i] = before * term[i];
    }
  });
  CHECK(again.log.sizes);
  on_every_device([&](const qn::Device& device) {
    const std::vector<double> at = {0.1, -0.4, 0.7, 0.2, -0.9};
    auto x = numbers(device, at);
    qn::Field<double> y{device, {2}};
    qn::Kernel f = [&] { soft(x, y); };
    std::vector<double> expected(5, 0.0);
    for (int i = 1; i <= 2; i++) {
      double sum = 0;
      for (double v : at) sum += std::exp(i * v);
      for (size_t c = 0; c < 5; c++) expected[c] += i * std::exp(i * at[c]) / sum;
    }
    expect_adjoints(f, x, y, expected);
  });
}

TEST_CASE("what decides on the rounds of an inner loop is kept of the outer one") {
  on_every_device([](const qn::Device& device) {
    auto x = numbers(device, {0.9, -0.7});
    qn::Field<double> y{device, {2}};
    qn::Kernel f = [&] {
      for (auto i : x) {
        Var<double> v = x[i];
        Var<int> left = 3 + i;
        While(left > 0) {
          Var<int> k = 0;
          While(k < left) {
            v = v * (1.5 - 0.5 * v);
            k += 1;
          }
          left -= 1;
        }
        y[i] = v;
      }
    };
    std::vector<double> expected;
    for (int i = 0; i < 2; i++) {
      double v = i == 0 ? 0.9 : -0.7, slope = 1;
      for (int left = 3 + i; left > 0; left--)
        for (int k = 0; k < left; k++) {
          slope *= 1.5 - v;
          v *= 1.5 - 0.5 * v;
        }
      expected.push_back(slope);
    }
    expect_adjoints(f, x, y, expected);
  });
}

TEST_CASE("the rounds of an inner loop depend on none of what it carries") {
  const auto halved = [](qn::Field<double> x, qn::Field<double> y) {
    for (auto i : y) {
      Var<double> v = 0.0;
      for (auto a : range(i + 2))
        for (auto b : range(a + 1)) v = 0.5 * v + x[b] * x[b];
      y[i] = v;
    }
  };
  CHECK(reverse_of(halved).rows.empty());
  on_every_device([&](const qn::Device& device) {
    auto x = numbers(device, {3, 5});
    qn::Field<double> y{device, {1}};
    qn::Kernel f = [&] { halved(x, y); };
    // v = (x0² / 2 + x0²) / 2 + x1²
    expect_adjoints(f, x, y, {2 * 3 * 0.75, 2 * 5});
  });
}

TEST_CASE("what the test of a While adds to has adjoints, though its rounds only add up") {
  on_every_device([](const qn::Device& device) {
    auto x = numbers(device, {3, 5});
    qn::Field<double> y{device, {2}}, tested{device, {2}};
    qn::Kernel f = [&] {
      for (auto i : x) {
        Var<double> sum = 0.0;
        Var<int> k = 0;
        const auto goes_on = [&] {
          atomic_add(tested[i], x[i] * x[i]);
          return k < 3;
        };
        While(goes_on()) {
          sum += 2.0 * x[i];
          k += 1;
        }
        y[i] = sum;
      }
    };
    tested.grad().fill(10.0);
    expect_adjoints(f, x, y, {4 * 10 * 2 * 3 + 3 * 2, 4 * 10 * 2 * 5 + 3 * 2});
  });
}

TEST_CASE("what only comparisons ask for is not gone back through") {
  // Which of them is the least is found twice, from loops whose rounds are kept; once, for what
  // varies with the least, it is gone back through.
  const Reverse reverse = reverse_of([&](qn::Field<double> x, qn::Field<double> y) {
    Var<double> least = 1e9;
    for (auto i : x) {
      Var<double> v = x[i];
      for (auto j : range(i, 5)) v = sin(v + x[j]);
      atomic_min(least, v);
    }
    y[0] = least;
  });
  REQUIRE(reverse.count);
  CHECK(reverse.count->results.size() == 1);  // loops with rows
  int sweeps = 0;
  qn::ir::walk(reverse.kernel->body, [&](const qn::ir::Inst* inst) {
    sweeps += inst->is(Op::atomic) && qn::ir::is_float(inst->elem);
  });
  CHECK(sweeps == 2);  // of x[i] and of x[j]
  const Reverse none = reverse_of([&](qn::Field<double> x, qn::Field<double> y) {
    for (auto i : x) {
      Var<double> v = x[i];
      for (auto j : range(i, 5)) v = sin(v + x[j]);
      If(v > 0.5) { y[i] = 1.0; }
    }
  });
  CHECK_FALSE(none.count);
  CHECK(count(none, Op::atomic) == 0);
}

TEST_CASE("loops have as many rounds as a loop before has reduced") {
  on_every_device([](const qn::Device& device) {
    const std::vector<double> at = {0.3, 0.7, 0.1, 0.9, 0.6};
    auto x = numbers(device, at);
    qn::Kernel counted = [&]() -> F64 {
      Var<double> sum = 0;
      Var<int> n = 0;
      for (auto i : x) n += 1;
      for (auto i : x) {
        Var<double> q = x[i];
        for (auto j : range(n)) q = sin(q);
        sum += q;
      }
      return sum;
    };
    qn::value_and_grad(counted, qn::wrt(x))();
    for (int k = 0; k < 5; k++) {
      double q = at[size_t(k)], slope = 1;
      for (int j = 0; j < 5; j++) slope *= std::cos(q), q = std::sin(q);
      CHECK(x.grad().at(k) == Approx(slope).epsilon(1e-13));
    }
    qn::Kernel bounded = [&]() -> F64 {
      Var<double> most = 0, sum = 0;
      for (auto i : x) most += x[i];
      for (auto i : x) {
        Var<double> q = x[i];
        While(q < most) { q = q * 1.5; }
        sum += q;
      }
      return sum;
    };
    qn::value_and_grad(bounded, qn::wrt(x))();
    for (int k = 0; k < 5; k++) {
      double slope = 1;
      while (slope * at[size_t(k)] < 2.6) slope *= 1.5;
      CHECK(x.grad().at(k) == Approx(slope).epsilon(1e-13));
    }
  });
}

TEST_CASE("sums that are computed again have no order, but where they decide") {
  const auto regrouped = [](const Reverse& reverse) {
    int n = 0;
    qn::ir::walk(reverse.kernel->body, [&](const qn::ir::Inst* inst) {
      n += inst->is(Op::add) && (inst->kind & qn::ir::reassociate);
    });
    return n;
  };
  // The adjoints of x[j] are those of elements: no sum over rounds is one of adjoints.
  const auto squashed = [&](auto use) {
    return reverse_of([=](qn::Field<double> x, qn::Field<double> y) {
      for (auto i : y) {
        Var<double> sum = 0;
        for (auto j : range(16)) sum += x[16 * i + j];
        use(y, i, sum);
      }
    });
  };
  const auto smooth = squashed([](auto y, auto i, auto& sum) { y[i] = tanh(sum); });
  CHECK(regrouped(smooth) == 1);
  const auto compared =
      squashed([](auto y, auto i, auto& sum) { y[i] = select(sum > 1.0, tanh(sum), sin(sum)); });
  CHECK(regrouped(compared) == 0);
  const auto index = squashed(
      [](auto y, auto i, auto& sum) { y[i] = tanh(sum) * cast<double>(cast<int>(exp(sum))); });
  CHECK(regrouped(index) == 0);
  // Of a gradient with its value neither: the value is that of the kernel.
  const auto of_value = [&](bool with_values) {
    auto kernel = qn::test::record([](qn::Field<double> x) -> F64 {
      Var<double> all = 0;
      for (auto i : range(4)) {
        Var<double> sum = 0;
        for (auto j : range(16)) sum += x[16 * i + j];
        all += tanh(sum);
      }
      return all;
    });
    qn::ir::finish_recording(*kernel);
    return regrouped(qn::autodiff::reverse(*kernel, {kernel->modes, {1}}, {true}, {}, with_values));
  };
  CHECK(of_value(false) == 2);  // one is of adjoints, of the value
  CHECK(of_value(true) == 1);
}

TEST_CASE("QUERN_DUMP=derivatives says what is kept, by line") {
  int line = 0;
  const auto body = [&](qn::Field<double> x, qn::Field<double> y) {
    line = __LINE__ + 1;
    for (auto i : y) {
      Var<double> v = x[i], sum = 0.0;
      for (auto j : range(500)) sum += x[j] * x[j];
      for (auto k : range(8)) v = exp(v) * x[k];
      Var<int> n = 0;
      While(v > 0.5) {
        If(v > 2.0) { v = exp(-v); }
        Else { v = v * x[n]; }
        n += 1;
      }
      Var<double> last = 0.0;
      While(n > 0) {
        n -= 1;
        last = 0.5 * last + x[n] * x[n];
      }
      While(last > 0.5) last = 0.5 * last;
      y[i] = sum * v * last;
    }
  };
  const char* old = std::getenv("QUERN_DUMP");
  const std::string kept = old ? old : "";
  setenv("QUERN_DUMP", "derivatives", 1);
  const std::string text = output_of([&] { reverse_of(body); }, stderr);
  old ? setenv("QUERN_DUMP", kept.c_str(), 1) : unsetenv("QUERN_DUMP");
  const std::string file = qn::Loc::here().file;
  std::string expected;
  const auto says = [&](int lines, const std::string& what) {
    expected += file + ":" + std::to_string(line + lines) + ": " + what + "\n";
  };
  const auto exp_of = [&](int lines) { return "exp of line " + std::to_string(line + lines); };
  const std::string from_end = "a loop is gone back through from its end; ";
  const std::string counter = "; found from the next round: 1 of 2 carried values";
  says(2, "a loop of sums is gone back through in its own order; nothing is kept");
  says(3, from_end + "8 bytes a round are kept in arrays of 8 elements: 0 of 1 carried values, " +
              exp_of(3));
  says(5,
       from_end + "8 bytes a round are kept in rows of a field: 1 of 2 carried values" + counter);
  says(6, "a branch passes on: " + exp_of(6));
  says(11, from_end + "nothing is kept" + counter);
  says(15, from_end + "nothing is kept");
  CHECK(text == expected);
}
