// Derivatives of kernels over fields on trees: values by hand and by plain C++.
#include <quern/autodiff.h>
#include <quern/autodiff/check.h>
#include <quern/else.h>
#include <quern/sparse.h>

#include <cmath>
#include <random>
#include <vector>

#include "dsl/objects.h"
#include "quern/runtime/device.h"
#include "tests/autodiff/numbers.h"
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

TEST_CASE("adjoints of stores go to what was stored on a tree") {
  on_every_device([](const qn::Device& device) {
    // y is overwritten in place and elsewhere: of what was there nothing is left. Units of four.
    qn::Tree<2> tree{device, {qn::pointer(16), qn::bitmasked(4), qn::dense(2)}};
    auto x = tree.field<double>(), y = tree.field<double>(7.0);
    const int n = 6;
    for (int k = 0; k < n; k++) {
      x.set(3 * k, 5 * k, 1.0 + k);
      y.set(3 * k, 5 * k, 2.0 + k);
    }
    const int64_t active = tree.active_count();
    qn::Kernel update = [&](F64 a) {
      for (auto [i, j] : x) {
        y(i, j) = a * x(i, j) * y(i, j);
        y(i + 40, j + 2) = x(i, j) + 1.0;
      }
    };
    for (int k = 0; k < n; k++) {
      y.grad().set(3 * k, 5 * k, 0.5 + k);
    }
    auto back = qn::vjp(update)(2.0);
    CHECK(tree.active_count() > active);
    for (int k = 0; k < n; k++) {
      CHECK(y.at(3 * k, 5 * k) == 2.0 * (1.0 + k) * (2.0 + k));
      y.grad().set(3 * k + 40, 5 * k + 2, 0.25);
    }
    const int64_t grown = tree.active_count();
    const double of_a = back().get<0>();
    double expected = 0;
    for (int k = 0; k < n; k++) {
      CHECK(x.grad().at(3 * k, 5 * k) == (0.5 + k) * 2.0 * (2.0 + k) + 0.25);
      CHECK(y.grad().at(3 * k, 5 * k) == (0.5 + k) * 2.0 * (1.0 + k));
      CHECK(y.grad().at(3 * k + 40, 5 * k + 2) == 0);
      expected += (0.5 + k) * (1.0 + k) * (2.0 + k);
    }
    CHECK(of_a == expected);
    CHECK(tree.active_count() == grown);
  });
}

TEST_CASE("gradients and second derivatives by fields on trees") {
  on_every_device([](const qn::Device& device) {
    qn::Tree<3> tree{device, {qn::hash(), qn::dense(4)}};  // all of a cell is active
    auto x = tree.field<double>();
    const int n = 5;
    for (int k = 0; k < n; k++) x.set(-4 * k, 100 * k, k, 0.5 + k);
    qn::Kernel energy = [&](F64 scale) -> F64 {
      Var<double> sum = 0;
      for (auto [i, j, k] : x) sum += scale * x(i, j, k) * x(i, j, k) * x(i, j, k) + x(i, j, k);
      return sum;
    };
    auto r = qn::value_and_grad(energy)(2.0);
    double value = 0, of_scale = 0;
    for (int k = 0; k < n; k++) {
      const double v = 0.5 + k;
      value += 2 * v * v * v + v;
      of_scale += v * v * v;
      CHECK(x.grad().at(-4 * k, 100 * k, k) == Approx(6 * v * v + 1).epsilon(1e-13));
    }
    CHECK(x.grad().at(-4, 100, 2) == 1.0);      // active with its cell
    CHECK(x.grad().at(-400, 100, 200) == 0.0);  // not active
    CHECK(r.value() == Approx(value).epsilon(1e-13));
    CHECK(r.get<0>() == Approx(of_scale).epsilon(1e-13));
    qn::value_and_grad(energy)(2.0);  // set, not added to
    CHECK(x.grad().at(0, 0, 0) == Approx(6 * 0.25 + 1).epsilon(1e-13));

    for (int k = 0; k < n; k++) x.dual().set(-4 * k, 100 * k, k, 1.0 + k);
    auto h = qn::hessian_vector(energy)({2.0, 0.0});
    double product = 0;
    for (int k = 0; k < n; k++) {
      const double v = 0.5 + k;
      CHECK(x.grad().at(-4 * k, 100 * k, k) == Approx(6 * v * v + 1).epsilon(1e-13));
      CHECK(x.grad().dual().at(-4 * k, 100 * k, k) == Approx(12 * v * (1.0 + k)).epsilon(1e-13));
      product += 3 * v * v * (1.0 + k);
    }
    CHECK(h.product<0>() == Approx(product).epsilon(1e-13));
  });
}

TEST_CASE("an empty tree has adjoints") {
  on_every_device([](const qn::Device& device) {
    qn::Tree<1> tree{device, {qn::pointer(64), qn::bitmasked(8)}};
    auto x = tree.field<float>(3.0f);
    qn::Kernel energy = [&]() -> F32 {
      Var<float> sum = 0.0f;
      for (auto i : x) sum += x[i] * x[i + 1];
      return sum;
    };
    CHECK(qn::value_and_grad(energy)().value() == 0);
    CHECK(x.grad().at(5) == 0);
    CHECK(tree.active_count() == 0);
  });
}

TEST_CASE("adjoints of vectors and of views on trees") {
  on_every_device([](const qn::Device& device) {
    qn::Tree<1> tree{device, {qn::pointer(64), qn::bitmasked(8)}, {.offset = {-100}}};
    auto v = tree.field<qn::Vec<float, 3>>();
    auto w = tree.field<qn::Vec<float, 3>>();
    for (int k = 0; k < 6; k++) v.set(-90 + 9 * k, {1.0f, float(k), 2.0f});
    auto part = v.slice(0, -90, -60);  // of which index 0 is -90: the first four
    qn::Field<float, 0> loss{device};
    qn::Kernel square = [&] {
      for (auto i : part) w[i - 90] = part[i] * part[i].y;
    };
    qn::Kernel measure = [&] {
      for (auto i : w) atomic_add(loss(), w[i].x + 3.0f * w[i].y);
    };
    qn::Tape tape;
    square();
    measure();
    loss.grad().fill(1.0f);
    tape.backward();
    for (int k = 0; k < 6; k++) {
      const qn::Vec<float, 3> g = v.grad().at(-90 + 9 * k);
      CHECK(g[0] == (k < 4 ? float(k) : 0.0f));
      CHECK(g[1] == (k < 4 ? 1.0f + 6.0f * float(k) : 0.0f));
      CHECK(g[2] == 0.0f);
    }
    CHECK(part.grad().at(9)[1] == 7.0f);
  });
}

TEST_CASE("what has no adjoint on trees is refused") {
  on_every_device([](const qn::Device& device) {
    qn::Tree<1> tree{device, {qn::pointer(64), qn::bitmasked(8)}};
    auto x = tree.field<double>(), y = tree.field<double>();
    x.set(3, 2.0);
    x.set(20, 4.0);
    qn::Field<double, 0> loss{device};
    const auto refused = [&](auto& kernel, const std::string& why) {
      const std::string message = message_of([&] { qn::vjp(kernel)(); });
      INFO(message);
      CHECK(message.find(why) != std::string::npos);
    };
    qn::Kernel drop = [&] {
      for (auto i : x) {
        atomic_add(loss(), x[i]);
        deactivate(x, i);
      }
    };
    refused(drop, "what ends or appends elements of a tree has no adjoint");
    qn::Kernel spread_and_sum = [&] {
      for (auto i : x) y[i + 1] = x[i];
      for (auto i : y) atomic_add(loss(), y[i] + 1.0);
    };
    refused(spread_and_sum, "the same kernel makes some active at");
    qn::Kernel sweep = [&] {
      for (auto k : range(1)) {
        for (auto r : range(5)) x[k + r] = x[k + r] * x[k + r + 1] + x[k + r] * x[k + r];
      }
    };
    refused(sweep, "reads what it has written there itself");
    auto cells = tree.level(1).field<double>();
    qn::Kernel count = [&] {
      for (auto i : cells) atomic_add(loss(), cells[i]);
    };
    refused(count, "has the cells of a tree's level as elements");

    qn::Kernel energy = [&]() -> F64 {
      Var<double> sum = 0;
      for (auto i : x) sum += x[i];
      return sum;
    };
    CHECK(message_of([&] { qn::check_gradient(energy)(); }).find("would make all of them active") !=
          std::string::npos);
    CHECK(message_of([&] {
            qn::Tape tape;
            qn::steps(tape, 3, [&](int) { energy(); }, qn::state(x), 2);
          }).find("is on a tree") != std::string::npos);

    // Elements that end behind a launch take their adjoints along.
    qn::Kernel measure = [&] {
      for (auto i : x) atomic_add(loss(), x[i] * x[i]);
    };
    auto back = qn::vjp(measure)();
    tree.clear();
    CHECK(message_of([&] { back(); }).find("elements of a tree have ended or moved") !=
          std::string::npos);
  });
}

TEST_CASE("adjoints of lists on trees") {
  on_every_device([](const qn::Device& device) {
    // Lists that were made before: what is in them is gone back through, appending is not.
    qn::Tree<2> tree{device, {qn::dense(8, 1), qn::dynamic(64, 4)}};
    auto mass = tree.field<double>();
    qn::Field<double, 0> loss{device};
    qn::Kernel fill = [&] {
      for (auto i : range(8)) {
        for (auto k : range(i)) append(mass, i, 1.0 + cast<double>(k));
      }
    };
    fill();
    qn::Kernel weigh = [&] {
      for (auto i : range(8)) {
        Var<double> sum = 0;
        for (auto k : range(cast<int>(length(mass, i)))) sum += mass(i, k) * mass(i, k);
        atomic_add(loss(), sum * sum);
      }
    };
    qn::Kernel double_all = [&] {
      for (auto [i, k] : mass) mass(i, k) = 2.0 * mass(i, k);
    };
    qn::Tape tape;
    double_all();
    weigh();
    loss.grad().fill(1.0);
    tape.backward();
    for (int i = 0; i < 8; i++) {
      double sum = 0;
      for (int k = 0; k < i; k++) sum += 4 * (1.0 + k) * (1.0 + k);
      for (int k = 0; k < i; k++) CHECK(mass.grad().at(i, k) == 2 * sum * 2 * 2 * (1.0 + k) * 2);
      CHECK(mass.grad().at(i, i) == 0);
    }
    qn::Kernel more = [&] {
      for (auto i : range(8)) append(mass, i, 1.0);
    };
    CHECK(message_of([&] { qn::vjp(more)(); }).find("has no adjoint") != std::string::npos);
  });
}

TEST_CASE("a tape goes back through lists of integers that each step makes anew") {
  on_every_device([](const qn::Device& device) {
    // Numbers in eight cells of [0, 1): each moves by what is in its cell.
    constexpr int n = 24, steps = 3, cells = 8;
    std::vector<double> start;
    for (int k = 0; k < n; k++) start.push_back(std::fmod(0.37 + 0.618 * k, 1.0));
    qn::Tree<2> tree{device, {qn::dense(cells, 1), qn::dynamic(64, 4)}};
    auto list = tree.field<int>();
    auto x = numbers(device, start), moved = numbers(device, start);
    qn::Field<double, 0> loss{device};
    const auto cell = [](auto v) { return clamp(cast<int>(v * double(cells)), 0, cells - 1); };
    qn::Kernel clear = [&] {
      for (auto [c, k] : list) deactivate(list, c, k);
    };
    qn::Kernel build = [&] {
      for (auto p : x) append(list, cell(x[p]), p);
    };
    qn::Kernel move = [&] {
      for (auto p : x) {
        I32 c = cell(x[p]);
        Var<double> sum = 0;
        for (auto k : range(cast<int>(length(list, c)))) sum += x[list(c, k)];
        moved[p] = 0.9 * x[p] + 0.01 * sum;
      }
      for (auto p : x) x[p] = moved[p];
    };
    qn::Kernel measure = [&] {
      for (auto p : x) loss() += cast<double>(p + 1) * x[p];
    };
    // The matrix of each step is that of its cells.
    std::vector<double> at = start;
    std::vector<std::vector<int>> cell_of;
    for (int s = 0; s < steps; s++) {
      std::vector<int>& of = cell_of.emplace_back();
      double sum[cells] = {};
      for (double v : at) of.push_back(std::clamp(int(v * cells), 0, cells - 1));
      for (int p = 0; p < n; p++) sum[of[size_t(p)]] += at[size_t(p)];
      for (int p = 0; p < n; p++) at[size_t(p)] = 0.9 * at[size_t(p)] + 0.01 * sum[of[size_t(p)]];
    }
    std::vector<double> expected;
    for (int p = 0; p < n; p++) expected.push_back(p + 1);
    for (int s = steps - 1; s >= 0; s--) {
      double sum[cells] = {};
      for (int p = 0; p < n; p++) sum[cell_of[size_t(s)][size_t(p)]] += expected[size_t(p)];
      for (int p = 0; p < n; p++)
        expected[size_t(p)] = 0.9 * expected[size_t(p)] + 0.01 * sum[cell_of[size_t(s)][size_t(p)]];
    }

    for (const bool with_pullback : {false, true}) {
      x.copy_from(start);
      x.grad().fill(0);
      moved.grad().fill(0);
      loss.grad().fill(1);
      qn::Tape tape;
      for (int s = 0; s < steps; s++) {
        const auto renew = [&] {
          clear();
          build();
        };
        if (with_pullback)
          qn::with_pullback(renew, [] {});
        else
          renew();
        move();
      }
      measure();
      tape.backward();
      for (int p = 0; p < n; p++)
        CHECK(x.grad().at(p) == Approx(expected[size_t(p)]).epsilon(1e-12));
    }
  });
}

TEST_CASE("many launches on a tree that stays as it is") {
  on_every_device([](const qn::Device& device) {
    qn::Tree<1> tree{device, {qn::pointer(64), qn::bitmasked(8)}};
    auto x = tree.field<double>(), y = tree.field<double>();
    qn::Field<double, 0> loss{device};
    const int n = 40, steps = 6;
    for (int k = 0; k < n; k++) x.set(100 + k, 1.0 + 0.01 * k);
    qn::Kernel step = [&](qn::Field<double> from, qn::Field<double> to) {
      for (auto i : from) to[i] = 0.25 * from[i - 1] + 0.5 * from[i] + 0.25 * from[i + 1];
    };
    qn::Kernel measure = [&] {
      for (auto i : x) atomic_add(loss(), x[i] * x[i]);
    };
    qn::Tape tape;
    for (int k = 0; k < steps; k++) k % 2 ? step(y, x) : step(x, y);
    measure();
    loss.grad().fill(1.0);
    tape.backward();
    // The matrix is symmetric, so the gradient is 2 A^2s x.
    std::vector<double> a(n), b(n);
    for (int k = 0; k < n; k++) a[size_t(k)] = 1.0 + 0.01 * k;
    for (int s = 0; s < 2 * steps; s++) {
      for (int k = 0; k < n; k++)
        b[size_t(k)] = 0.25 * (k > 0 ? a[size_t(k - 1)] : 0) + 0.5 * a[size_t(k)] +
                       0.25 * (k + 1 < n ? a[size_t(k + 1)] : 0);
      std::swap(a, b);
    }
    for (int k = 0; k < n; k++)
      CHECK(x.grad().at(100 + k) == Approx(2 * a[size_t(k)]).epsilon(1e-12));
    CHECK(tree.active_count() == n);
    CHECK(tree.stats().lists_made == 1);
  });
}

TEST_CASE("fields on trees that are swapped or grow along a tape") {
  on_every_device([](const qn::Device& device) {
    qn::Tree<1> tree{device, {qn::pointer(4096), qn::bitmasked(8)}, {.cells = 2}};
    auto x = tree.field<double>(), y = tree.field<double>();
    qn::Field<double, 0> loss{device};
    x.set(0, 3.0);
    qn::Kernel spread = [&](I32 by) {
      for (auto i : x) {
        for (auto k : range(1, by + 1)) y[i + 40 * k] = x[i] * cast<double>(k);
      }
    };
    qn::Kernel measure = [&] {
      for (auto i : y) atomic_add(loss(), y[i]);
    };
    {
      qn::Tape tape;
      spread(300);  // far more cells than there is room for
      measure();
      loss.grad().fill(1.0);
      tape.backward();
      CHECK(x.grad().at(0) == 300 * 301 / 2);
      CHECK(loss.at({}) == 3.0 * 300 * 301 / 2);
    }
    qn::Tape tape;
    measure();
    x.swap(y);
    CHECK(message_of([&] { tape.backward(); }).find("was swapped since") != std::string::npos);
  });
}

namespace {
/// ⟨w, J ẋ⟩ forward and ⟨Jᵀ w, ẋ⟩ back are the same, of a launch that makes elements active.
void check_products(const qn::Device& device, std::initializer_list<qn::TreeLevel> levels) {
  qn::Tree<2> tree{device, levels}, other{device, levels};
  auto x = tree.field<double>(0.75), y = other.field<double>();
  qn::Field<double> dense{device, {16}}, sums{device, {16}};
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  for (int k = 0; k < 60; k++)
    x.set(8 + int(random() % 40), 8 + int(random() % 20), normal(random));
  for (int k = 0; k < 16; k++) dense.set(k, normal(random));
  qn::Kernel f = [&](F64 a) -> F64 {
    Var<double> sum = 0;
    for (auto [i, j] : x) {
      F64 v = sin(x(i, j)) * x(i + 3, j) + a * x(i, j - 1) * dense[(i + j) % 16];
      atomic_add(y(i + 1, j - 2), v);
      If(is_active(x, i, j + 1)) { atomic_add(y(i, j + 1), v * v); }
      Else { atomic_add(sums[i % 16], v); }
      sum += v * x(i - 5, j + 4);
    }
    return sum;
  };
  qn::Kernel draw = [&](qn::Field<double, 2> of, qn::Field<double, 2> into, F64 phase) {
    for (auto [i, j] : of) into(i, j) = sin(phase + cast<double>(i * 31 + j * 17));
  };
  qn::Kernel product = [&](qn::Field<double, 2> of, qn::Field<double, 2> a,
                           qn::Field<double, 2> b) -> F64 {
    Var<double> sum = 0;
    for (auto [i, j] : of) sum += a(i, j) * b(i, j);
    return sum;
  };
  std::vector<double> along(16), weight(16);
  for (int k = 0; k < 16; k++) {
    along[size_t(k)] = normal(random);
    weight[size_t(k)] = normal(random);
  }
  draw(x, x.dual(), 0.5);
  dense.dual().copy_from(along);
  const double of_a = 0.3, w_of_sum = -0.8;
  const auto forward = qn::jvp(f)({1.7, of_a});
  const double tangent = forward.tangent<0>();
  draw(y, y.grad(), 2.5);
  double left = double(product(y, y.grad(), y.dual())) + w_of_sum * tangent;
  for (int k = 0; k < 16; k++) left += weight[size_t(k)] * sums.dual().at(k);

  // The launch runs again: nothing that it reads has changed.
  auto back = qn::vjp(f)(1.7);
  draw(y, y.grad(), 2.5);
  sums.grad().copy_from(weight);
  const double adjoint = back(w_of_sum).get<0>();
  double right = double(product(x, x.grad(), x.dual())) + of_a * adjoint;
  for (int k = 0; k < 16; k++) right += dense.grad().at(k) * along[size_t(k)];
  CHECK(std::abs(left) > 0.1);
  CHECK(left == Approx(right).epsilon(1e-11));
}
}  // namespace

TEST_CASE("products with a Jacobian on trees agree forward and back") {
  on_every_device([](const qn::Device& device) {
    check_products(device, {qn::pointer(8), qn::bitmasked(8)});
    check_products(device, {qn::pointer(16), qn::pointer(2), qn::bitmasked(2)});
    check_products(device, {qn::hash(), qn::bitmasked(4)});
    check_products(device, {qn::bitmasked(64)});
  });
}

TEST_CASE("what is active may be asked beside writes of other fields") {
  on_every_device([](const qn::Device& device) {
    qn::Tree<2> tree{device, {qn::dense(4, 1), qn::dynamic(32, 8)}};
    auto near = tree.field<int>();
    auto x = numbers(device, {0.5, 1.5, 2.5, 3.5, 4.5});
    qn::Field<double, 0> loss{device};
    qn::Kernel put = [&] {
      for (auto p : range(6)) append(near, p % 4, p);
    };
    put();  // two in the first two lists, one in the others
    qn::Kernel measure = [&] {
      loss() = 0.0;
      for (auto i : range(4)) {
        loss() += x[length(near, i)] * x[i];
        If(is_active(near, i, 1)) { loss() += x[4]; }
      }
    };
    loss.grad().fill(1.0);
    x.grad().fill(0.0);
    qn::vjp(measure)()();
    // x2 (x0 + x1) + x1 (x2 + x3) + 2 x4
    CHECK(qn::to_vector(x.grad()) == std::vector<double>{2.5, 2.5 + 6, 2 + 1.5, 1.5, 2});
  });
}

TEST_CASE("a tape tells what it keeps of trees") {
  on_every_device([](const qn::Device& device) {
    qn::Tree<1> tree{device, {qn::pointer(1024), qn::bitmasked(8)}, {.cells = 100}};
    auto x = tree.field<double>(), y = tree.field<double>();
    qn::Field<double, 0> loss{device};
    x.set(0, 3.0);
    qn::Kernel measure = [&] {
      for (auto i : x) atomic_add(loss(), x[i] * x[i]);
    };
    qn::Kernel spread = [&] {
      for (auto i : x) y[i + 50] = x[i];
    };
    const uint64_t elements = (100 + 2) * 8 * sizeof(double);
    qn::Tape tape;
    measure();
    CHECK(tape.memory() == 0);  // nothing has changed
    spread();
    // The elements of x are as they were, and of the tree the table has changed, and more.
    CHECK(tape.memory() >= 1024 * sizeof(uint32_t));
    CHECK(tape.memory() < 1024 * sizeof(uint32_t) + elements + 20000);
    loss.grad().fill(1.0);
    tape.backward();
    CHECK(x.grad().at(0) == 6.0);
  });
}

TEST_CASE("a gradient on a tree keeps nothing of it for the next one") {
  on_every_device([](const qn::Device& device) {
    qn::Tree<1> tree{device, {qn::pointer(64), qn::dense(64)}};
    auto x = tree.field<double>();
    qn::Kernel put = [&] {
      for (auto i : range(640)) x[i] = 1.0;
    };
    put();
    qn::Kernel<double()> squares{[&]() -> F64 {
                                   Var<double> sum = 0;
                                   for (auto i : x) sum += x[i] * x[i];
                                   return sum;
                                 },
                                 {.checked = false}};
    qn::Kernel halve = [&] {
      for (auto i : x) x[i] = 0.5 * x[i];
    };
    auto differentiate = qn::value_and_grad(squares);
    const auto& on = device.object()->device;
    for (int k = 0; k < 3; k++) {
      const double at = std::ldexp(1.0, -k);
      CHECK(differentiate().value() == 640 * at * at);
      CHECK(x.grad().at(17) == 2 * at);
      const uint64_t before = on->allocated();
      halve();
      // Where the host gets ahead, some more argument blocks are kept.
      if (k > 0) CHECK(on->allocated() - before < 640 * sizeof(double) / 2);
    }
  });
}
