// Loops that look for the least or the nearest: the round that has it is gone back through alone.
#include "autodiff/plans/replacements.h"

#include <quern/autodiff.h>

#include <functional>
#include <limits>
#include <random>
#include <utility>

#include "autodiff/reverse/reverse.h"
#include "quern/ir/lower.h"
#include "tests/autodiff/numbers.h"
#include "tests/dsl/record.h"
#include "tests/end_to_end/devices.h"

#include <quern/else.h>

using namespace qn::lang;

namespace {

/// For each y[i], what a search over x makes of it; `n`: of how many elements.
using Search = std::function<F64(qn::Field<double> x, qn::Field<double> y, I32 i, I32 n)>;

const double not_a_number = std::numeric_limits<double>::quiet_NaN();

/// x and ȳ = 1 give these x̄; a third of y is that by each of three elements.
void expect(const Search& search, const std::vector<double>& at, const std::vector<double>& by_x,
            double by_y = 0) {
  on_every_device([&](const qn::Device& device) {
    auto x = numbers(device, at);
    qn::Field<double> start{device, {1}}, y{device, {1}};
    start.fill(1e3);
    qn::Field<int> count{device, {1}};
    count.fill(int(at.size()));
    for (const bool is_known : {true, false}) {  // rounds that are kept in arrays, and in rows
      qn::Kernel f = [&] {
        for (auto i : y) {
          const I32 n = is_known ? I32(int(at.size())) : I32(count[0]);
          y[i] = search(x, start, i, n);
        }
      };
      x.grad().fill(0.0);
      start.grad().fill(0.0);
      y.grad().fill(1.0);
      qn::vjp(f)()();
      for (size_t k = 0; k < by_x.size(); k++)
        CHECK(x.grad().at(int64_t(k)) == Approx(by_x[k]).epsilon(1e-13));
      CHECK(start.grad().at(0) == Approx(by_y));
    }
  });
}

/// How many loops go back through rounds of their own in what goes back through the search.
int loops_back(const Search& search) {
  auto kernel = qn::test::record([&](qn::Field<double> x, qn::Field<double> y) {
    for (auto i : y) y[i] = search(x, x, i, x.dim(0));
  });
  qn::ir::finish_recording(*kernel);
  const auto back = qn::autodiff::reverse(*kernel, {kernel->modes, {1, 2}}, {true, true});
  int loops = 0;
  qn::ir::walk(back.kernel->body,
               [&](const qn::ir::Inst* inst) { loops += inst->is(qn::ir::Op::loop); });
  return loops;
}

/// With a square in each round, and its first value from `start`.
template <class Update>
Search search_by(Update update) {
  return [=](qn::Field<double> x, qn::Field<double> start, I32 i, I32 n) -> F64 {
    Var<double> found = start[i];
    for (auto c : range(n)) {
      F64 square = x[c] * x[c];
      found = update(F64(found), square);
    }
    return 3 * found;
  };
}

}  // namespace

TEST_CASE("the least of many has its adjoint where it was found, in the first of equals") {
  const Search least = search_by([](F64 found, F64 v) { return min(found, v); });
  CHECK(loops_back(least) == 1);  // forward
  expect(least, {4, -2, 3, 2, 7}, {0, -12, 0, 0, 0});
  expect(least, {not_a_number, 5, not_a_number, 2}, {0, 0, 0, 12});
  expect(least, {}, {}, 3);
  expect(least, {40, 50}, {0, 0}, 3);  // none is below 1000
  const Search last = search_by([](F64 found, F64 v) { return min(v, found); });
  CHECK(loops_back(last) == 1);
  expect(last, {4, -2, 3, 2, 7}, {0, 0, 0, 12, 0});
  const Search quiet = search_by([](F64 found, F64 v) { return fmin(found, v); });
  CHECK(loops_back(quiet) == 1);
  expect(quiet, {4, not_a_number, 2, 3}, {0, 0, 12, 0});
}

TEST_CASE("the same of the largest") {
  const Search largest = search_by([](F64 found, F64 v) { return max(found, v); });
  CHECK(loops_back(largest) == 1);
  expect(largest, {1, 40, 2, -40}, {0, 240, 0, 0});
  const Search quiet = search_by([](F64 found, F64 v) { return fmax(v, found); });
  CHECK(loops_back(quiet) == 1);
  expect(quiet, {not_a_number, 50, -50, 1}, {0, 0, -300, 0});
}

TEST_CASE("what is found along with the nearest goes back with it") {
  // of x in pairs the second numbers of the pair whose first is nearest to 1
  const Search pair = [](qn::Field<double> x, qn::Field<double> start, I32 i, I32 n) -> F64 {
    Var<double> nearest = start[i], seen = 7.0;
    Var<int> which = -1;
    for (auto c : range(n / 2)) {
      F64 off = x[2 * c] - 1, square = off * off;
      If(square < nearest) {
        nearest = square;
        seen = x[2 * c + 1] * x[2 * c];
        which = c;
      }
    }
    return nearest + 10 * seen + cast<double>(which);
  };
  CHECK(loops_back(pair) == 1);
  expect(pair, {4, 1, 2.5, 6, -3, 8}, {0, 0, 3 + 60, 25, 0, 0});
  expect(pair, {100, 1}, {0, 0}, 1);
}

TEST_CASE("a condition from outside of the loop is used in front of it, too") {
  const Search last = [](qn::Field<double> x, qn::Field<double> start, I32 i, I32 n) -> F64 {
    F64 first = start[i];
    Val<bool> is_large = first > 100;
    Var<double> scale = 3 * first, found = first;
    If(is_large) { scale = 0.5 * first * first; }
    for (auto c : range(n)) {
      If(is_large) { found = x[c] * x[c]; }
    }
    return found * scale;
  };
  // of x3² s² / 2 at s = 1000
  expect(last, {1, 2, 3}, {0, 0, 6 * 5e5}, 9e3);
}

TEST_CASE("rounds that do more than to replace what is carried are all gone back through") {
  const Search sum = [](qn::Field<double> x, qn::Field<double> start, I32 i, I32 n) -> F64 {
    Var<double> least = start[i], all = 0.0;
    for (auto c : range(n)) {
      least = min(least, x[c] * x[c]);
      all += least * x[c];
    }
    return all;
  };
  CHECK(loops_back(sum) == 2);
  expect(sum, {3, 2, 5}, {9 + 18, 4 + 4 * 7, 4});
  // two conditions: the least and the largest
  const Search two = [](qn::Field<double> x, qn::Field<double> start, I32 i, I32 n) -> F64 {
    Var<double> least = start[i], most = 0.0;
    for (auto c : range(n)) {
      least = min(least, x[c] * x[c]);
      most = max(most, x[c] * 2);
    }
    return least + most;
  };
  CHECK(loops_back(two) == 2);
  expect(two, {3, 2, 5}, {0, 4, 2});
  // it depends on what it replaces
  const Search half = [](qn::Field<double> x, qn::Field<double> start, I32 i, I32 n) -> F64 {
    Var<double> found = start[i];
    for (auto c : range(n)) found = min(found, 0.5 * found * x[c]);
    return found;
  };
  CHECK(loops_back(half) == 2);
  expect(half, {1, 4, 0.5}, {125, 0, 250}, 0.125);
}

TEST_CASE("a round that has found one goes back, however its condition is rounded again") {
  // Of two points as far from the origin: the order of terms decides, and whether they are contracted.
  on_every_device([](const qn::Device& device) {
    constexpr int pairs = 500;
    std::mt19937 random(1);
    std::uniform_real_distribution<float> uniform(0.1f, 1);
    std::vector<float> across, up;
    for (int k = 0; k < pairs; k++) {
      const float a = uniform(random), b = uniform(random);
      for (const auto& [x, y] : {std::pair{a, b}, {b, a}}) {
        across.push_back(x);
        up.push_back(y);
      }
    }
    qn::Field<float> x{device, {2 * pairs}}, y{device, {2 * pairs}}, weight{device, {2 * pairs}},
        seen{device, {pairs}};
    x.copy_from(across);
    y.copy_from(up);
    weight.fill(1.0f);
    qn::Kernel f = [&](I32 n) {
      for (auto i : seen) {
        Var<float> nearest = 1e9f, of_it = 0.0f;
        for (auto k : range(n)) {
          F32 dx = x[2 * i + k], dy = y[2 * i + k];
          F32 square = dx * dx + dy * dy;
          If(square < nearest) {
            nearest = square;
            of_it = atan(dx) * weight[2 * i + k];
          }
        }
        seen[i] = of_it;
      }
    };
    seen.grad().fill(1.0f);
    qn::vjp(f)(2)();
    int one = 0;
    for (int k = 0; k < pairs; k++)
      one += (weight.grad().at(2 * k) != 0) != (weight.grad().at(2 * k + 1) != 0);
    CHECK(one == pairs);
  });
}

TEST_CASE("a search in each round of another loop") {
  const Search sums = [](qn::Field<double> x, qn::Field<double> start, I32 i, I32 n) -> F64 {
    Var<double> sum = start[i];
    for (auto k : range(n)) {
      Var<double> least = 1e9;
      for (auto c : range(n)) {
        If(c != k) {
          F64 off = x[c] - x[k];
          least = min(least, off * off);
        }
      }
      sum += least * x[k];
    }
    return sum;
  };
  // 0 and 1 are each other's nearest, 1 is that of 4, and 4 that of 9
  const std::vector<double> x = {0, 1, 4, 9};
  std::vector<double> by(4, 0.0);
  for (const auto& [k, c] : {std::pair{0, 1}, {1, 0}, {2, 1}, {3, 2}}) {
    const double off = x[size_t(c)] - x[size_t(k)];
    by[size_t(k)] += off * off - 2 * off * x[size_t(k)];
    by[size_t(c)] += 2 * off * x[size_t(k)];
  }
  expect(sums, x, by, 1);
}
