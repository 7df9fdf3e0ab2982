// Derivatives of kernels over fields on trees: values by hand and by plain C++.
#include <quern/autodiff.h>
#include <quern/else.h>
#include <quern/sparse.h>

#include <cmath>
#include <vector>

#include "tests/end_to_end/devices.h"
#include "tests/message_of.h"

using namespace qn::lang;
using qn::test::message_of;

TEST_CASE("tangents of fields on a tree share what is active") {
  on_every_device([](const qn::Device& device) {
    qn::Tree<1> tree{device, {qn::pointer(64), qn::bitmasked(8)}};
    auto x = tree.field<double>(2.0), y = tree.field<double>();
    qn::Kernel put = [&](I32 n) {
      for (auto k : range(n)) x[5 * k] = cast<double>(k) + 1.0;
    };
    put(10);
    qn::Kernel square = [&]() -> F64 {
      Var<double> sum = 0;
      for (auto i : x) {
        y[i + 1] = x[i] * x[i];
        sum += x[i] * x[i + 5];
      }
      return sum;
    };
    for (int k = 0; k < 10; k++) x.dual().set(5 * k, 0.5 * k);
    const auto r = qn::jvp(square)();
    // The last element's neighbour is not active: it is the background, which varies with nothing.
    double sum = 10 * 2.0, tangent = 4.5 * 2.0;
    for (int k = 0; k < 9; k++) {
      sum += (k + 1.0) * (k + 2.0);
      tangent += 0.5 * k * (k + 2.0) + (k + 1.0) * 0.5 * (k + 1);
    }
    CHECK(r.value<0>() == sum);
    CHECK(r.tangent<0>() == tangent);
    for (int k = 0; k < 10; k++) {
      CHECK(y.at(5 * k + 1) == (k + 1.0) * (k + 1.0));
      CHECK(y.dual().at(5 * k + 1) == 2 * (k + 1.0) * 0.5 * k);
    }
    CHECK(y.dual().at(3) == 0);
    CHECK(tree.active_count() == 20);
  });
}

TEST_CASE("maxima of what a loop makes active have no tangents on trees") {
  on_every_device([](const qn::Device& device) {
    qn::Tree<1> tree{device, {qn::pointer(64), qn::bitmasked(8)}};
    auto x = tree.field<double>(), y = tree.field<double>();
    x.set(3, 2.0);
    x.set(9, -4.0);
    x.dual().set(3, 5.0);
    x.dual().set(9, 7.0);
    qn::Kernel least = [&]() -> F64 {
      Var<double> found = 1e9;
      for (auto i : x) atomic_min(found, x[i]);
      return found;
    };
    const auto r = qn::jvp(least)();
    CHECK(r.value<0>() == -4.0);
    CHECK(r.tangent<0>() == 7.0);
    qn::Kernel spread = [&]() -> F64 {
      Var<double> found = 1e9;
      for (auto i : x) {
        atomic_min(found, x[i]);
        y[i + 1] = 0.0;
      }
      return found;
    };
    CHECK(message_of([&] { qn::jvp(spread)(); }).find("is on a tree, and is changed") !=
          std::string::npos);
  });
}

TEST_CASE("adjoints of fields on a tree are on the same tree") {
  on_every_device([](const qn::Device& device) {
    qn::Tree<1> tree{device, {qn::pointer(64), qn::bitmasked(8)}};
    auto x = tree.field<double>(2.0);
    qn::Field<double, 0> loss{device};
    for (int k = 0; k < 10; k++) x.set(5 * k, k + 1.0);
    qn::Kernel measure = [&] {
      for (auto i : x) atomic_add(loss(), x[i] * x[i] * x[i + 5]);
    };
    qn::Tape tape;
    measure();
    loss.grad().fill(1.0);
    tape.backward();
    for (int k = 0; k < 10; k++) {
      const double v = k + 1.0, next = k < 9 ? k + 2.0 : 2.0;
      CHECK(x.grad().at(5 * k) == 2 * v * next + (k > 0 ? double(k * k) : 0));
    }
    CHECK(x.grad().at(50) == 0);  // the background, which varies with nothing
    CHECK(tree.active_count() == 10);
  });
}

namespace {
/// A wave that spreads: each step makes elements around the active ones active.
template <class Levels>
void check_spreading(const qn::Device& device, Levels levels, const qn::TreeOptions& options) {
  qn::Tree<1> tree{device, levels, options};
  auto x = tree.template field<double>(), y = tree.template field<double>();
  qn::Field<double, 0> loss{device};
  qn::Kernel step = [&](qn::Field<double> from, qn::Field<double> to) {
    for (auto i : from) {
      atomic_add(to[i - 3], 0.5 * from[i] * from[i]);
      atomic_add(to[i + 3], 0.25 * from[i] * from[i + 6]);
    }
  };
  qn::Kernel measure = [&](qn::Field<double> of) {
    for (auto i : of) atomic_add(loss(), of[i] * of[i]);
  };
  const int n = 400, middle = 200;
  std::vector<double> at(n, 0.0);
  for (int k = 0; k < 12; k++) {
    at[size_t(middle + 6 * k)] = 0.5 + 0.03 * k;
    x.set(middle + 6 * k, at[size_t(middle + 6 * k)]);
  }
  auto f = [&](const std::vector<double>& start) {
    std::vector<double> a = start, b(n, 0.0), c = start;
    const auto stepped = [&](const std::vector<double>& from, std::vector<double>& to) {
      for (int i = 10; i < n - 10; i++) {
        to[size_t(i - 3)] += 0.5 * from[size_t(i)] * from[size_t(i)];
        to[size_t(i + 3)] += 0.25 * from[size_t(i)] * from[size_t(i + 6)];
      }
    };
    stepped(a, b);
    stepped(b, a);
    std::vector<double> d = b;
    stepped(a, d);
    double sum = 0;
    for (double v : d) sum += v * v;
    return sum;
  };
  qn::Tape tape;
  step(x, y);
  step(y, x);
  step(x, y);
  measure(y);
  loss.grad().fill(1.0);
  const int64_t before = tree.active_count();
  tape.backward();
  CHECK(loss.at({}) == Approx(f(at)).epsilon(1e-12));
  CHECK(tree.active_count() == before);
  for (int k = 0; k < 12; k++) {
    std::vector<double> up = at, down = at;
    const double h = 1e-5;
    up[size_t(middle + 6 * k)] += h;
    down[size_t(middle + 6 * k)] -= h;
    CHECK(x.grad().at(middle + 6 * k) == Approx((f(up) - f(down)) / (2 * h)).epsilon(1e-7));
  }
}
}  // namespace

TEST_CASE("going back through launches that make elements active") {
  on_every_device([](const qn::Device& device) {
    using Levels = std::initializer_list<qn::TreeLevel>;
    check_spreading(device, Levels{qn::pointer(64), qn::bitmasked(8)}, {});
    check_spreading(device, Levels{qn::pointer(128), qn::pointer(2), qn::bitmasked(2)},
                    {.cells = 1});
    check_spreading(device, Levels{qn::hash(), qn::bitmasked(4)}, {.cells = 1});
  });
}
