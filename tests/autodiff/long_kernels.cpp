// Kernels of thousands of operations are gone back through by code that compiles in about as much more
// time.
#include <quern/autodiff.h>

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "autodiff/reverse/reverse.h"
#include "quern/ir/lower.h"
#include "tests/autodiff/numbers.h"
#include "tests/dsl/record.h"
#include "tests/end_to_end/devices.h"

using namespace qn::lang;

namespace {

/// d y / d x of what the kernel below computes, forward.
double slope(double x, int steps) {
  double a = x, b = 0.3 * x, of_a = 1, of_b = 0.3;
  for (int k = 0; k < steps; k++) {
    const double below = b * b + 2;
    of_a = 0.99 * of_a - 0.02 * b * of_b / (below * below);
    a = 0.99 * a + 0.01 / below;
    of_b -= 0.02 * a * of_a;
    b -= 0.01 * a * a;
  }
  return of_a * b + a * of_b;
}

/// Of what goes back through a kernel with five operations a step, the first time: seconds.
double first_way_back(const qn::Device& device, int steps) {
  const std::vector<double> at = {0.3, -0.7, 1.1, 0.2};
  auto x = numbers(device, at);
  qn::Field<double> y{device, {4}};
  qn::Kernel f = [&] {
    for (auto i : x) {
      Var<double> a = x[i], b = 0.3 * x[i];
      for (int k = 0; k < steps; k++) {
        a = a * 0.99 + 0.01 / (b * b + 2.0);
        b = b - 0.01 * a * a;
      }
      y[i] = a * b;
    }
  };
  f();
  y.grad().fill(1.0);
  auto back = qn::vjp(f)();
  const auto start = std::chrono::steady_clock::now();
  back();
  x.grad().at(0);  // waits
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  for (size_t k = 0; k < at.size(); k++)
    CHECK(x.grad().at(int64_t(k)) == Approx(slope(at[k], steps)).epsilon(1e-11));
  return taken.count();
}

/// To make what goes back through a kernel with three operations a step, of whose results a branch
/// is made: seconds.
double to_make(int steps) {
  auto kernel = qn::test::record([&](qn::Field<double> x) {
    for (auto i : x) {
      Var<double> a = x[i], b = 0.3 * x[i];
      for (int k = 0; k < steps; k++) {
        a = a * 0.99 + b;
        b = b * a;
      }
      If(a > b) { x[i] = a; }
    }
  });
  qn::ir::finish_recording(*kernel);
  const auto start = std::chrono::steady_clock::now();
  qn::autodiff::reverse(*kernel, {kernel->modes, {1}}, {true});
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  return taken.count();
}

/// To make what goes back through a kernel that reads so many elements around the iteration's own,
/// of which all before vary with what follows: seconds.
double to_make_stencil(int elements) {
  auto kernel = qn::test::record([&](qn::Field<double> x, qn::Field<double> y) {
    for (auto i : y) {
      Var<double> a = x[i];
      for (int k = 0; k < elements; k++) a = a * x[i + k] + x[i];
      y[i] = a;
    }
  });
  qn::ir::finish_recording(*kernel);
  const auto start = std::chrono::steady_clock::now();
  qn::autodiff::reverse(*kernel, {kernel->modes, {1, 2}}, {true, true});
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  return taken.count();
}

/// Makes what goes back through a loop whose number of rounds and whose counter are twice so many
/// integer operations away from what the kernel finds.
void make_behind_integers(int operations) {
  auto kernel = qn::test::record([&](qn::Field<double> x, qn::Field<int> seed) {
    for (auto i : x) {
      Var<int> n = seed[0], amount = seed[1];
      for (int k = 0; k < operations; k++) {
        n = (n ^ k) * 5;
        amount = (amount ^ k) * 3;
      }
      Var<double> a = x[i];
      Var<int> counter = 0;
      for (auto round : range(n & 7)) {
        a = a * a * 0.5 + x[i];
        counter += amount;
      }
      x[i] = a * cast<double>(counter);
    }
  });
  qn::ir::finish_recording(*kernel);
  qn::autodiff::reverse(*kernel, {kernel->modes, {1, 2}}, {true, false});
}

/// Runs it on a thread with a stack of so many bytes. Yields what it threw, or nothing.
std::string run_on_stack(size_t bytes, std::function<void()> run) {
  struct Job {
    std::function<void()> run;
    std::string thrown;
  } job{std::move(run), ""};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  REQUIRE(pthread_attr_setstacksize(&attributes, bytes) == 0);
  pthread_t thread;
  const auto start = [](void* argument) -> void* {
    Job& given = *static_cast<Job*>(argument);
    try {
      given.run();
    } catch (const std::exception& e) {
      given.thrown = e.what();
    }
    return nullptr;
  };
  REQUIRE(pthread_create(&thread, &attributes, start, &job) == 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  return job.thrown;
}

}  // namespace

TEST_CASE("what rounds follow from may be far away: no function calls itself along the way") {
  CHECK(run_on_stack(1 << 20, [] { make_behind_integers(10'000); }) == "");
}

TEST_CASE("a derivative is made in proportion to the kernel's length") {
  double some = 1e9, many = 1e9;
  for (int k = 0; k < 3; k++) {
    some = std::min(some, to_make(1000 + k));
    many = std::min(many, to_make(8000 + k));
  }
  INFO("1,000 steps " << some << " s, 8,000 steps " << many << " s");
  CHECK(many < 90 * some);  // 8 by length, 30 with caches and a busy machine; it was 175
}

TEST_CASE("a stencil's derivative is made in proportion to its elements") {
  double some = 1e9, many = 1e9;
  for (int k = 0; k < 3; k++) {
    some = std::min(some, to_make_stencil(250 + k));
    many = std::min(many, to_make_stencil(2000 + k));
  }
  INFO("250 elements " << some << " s, 2,000 elements " << many << " s");
  CHECK(many < 24 * some);  // 8 by length, 13 with caches; it was 70
}

TEST_CASE("the way back through long code takes the CPU's compiler in proportion to its length") {
  const std::vector<std::string> names = device_names();
  if (std::ranges::find(names, "cpu") == names.end()) {
    SUCCEED("the CPU is not asked for");
    return;
  }
  const qn::Device device("cpu");
  double some = 1e9, many = 1e9;  // the least of those that no other process has disturbed
  for (int k = 0; k < 3; k++) {
    some = std::min(some, first_way_back(device, 60 + k));
    many = std::min(many, first_way_back(device, 480 + k));
  }
  INFO("60 steps " << some << " s, 480 steps " << many << " s");
  CHECK(many < 30 * some);  // 8 by length; it was 120
}
