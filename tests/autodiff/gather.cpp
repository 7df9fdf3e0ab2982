// Going back through stencils: adjoints against sums made by hand, one iteration after the other.
#include "autodiff/stencils/gather.h"

#include <quern/autodiff.h>
#include <quern/sample.h>

#include <algorithm>
#include <array>
#include <functional>
#include <random>

#include "autodiff/primal/activity.h"
#include "autodiff/reverse/reverse.h"
#include "quern/ir/lower.h"
#include "tests/autodiff/numbers.h"
#include "tests/dsl/record.h"
#include "tests/end_to_end/devices.h"

#include <quern/else.h>

using namespace qn::lang;

namespace {

std::vector<double> drawn(size_t n, unsigned seed) {
  std::mt19937 random{seed};
  std::uniform_real_distribution<double> number(0.5, 1.5);
  std::vector<double> v(n);
  for (double& e : v) e = number(random);
  return v;
}

/// What each iteration reads: calls read(index, factor) for each square that it adds, times a factor.
using Reads = std::function<void(int iteration, const std::function<void(int, double)>& read)>;

/// y_i = Σ factor · x[index]², for iterations [from, to), and what goes back through it. Indices of
/// both fields begin at `first`.
void expect_adjoints(const qn::Field<double>& x, const qn::Field<double>& y,
                     const qn::Kernel<void()>& f, int first, int from, int to, const Reads& reads) {
  const std::vector<double> at = drawn(x.size(), 1), w = drawn(y.size(), 2),
                            before = drawn(x.size(), 3);
  x.copy_from(at);
  y.grad().copy_from(w);
  x.grad().copy_from(before);
  std::vector<double> expected = before, value(y.size(), 0.0);
  for (int i = from; i < to; i++)
    reads(i, [&](int index, double factor) {
      const double v = at.at(size_t(index - first));
      value.at(size_t(i - first)) += factor * v * v;
      expected.at(size_t(index - first)) += 2 * factor * v * w.at(size_t(i - first));
    });
  qn::vjp(f)()();
  const std::vector<double> found = qn::to_vector(x.grad()), y_found = qn::to_vector(y);
  for (int i = from; i < to; i++)
    CHECK(y_found[size_t(i - first)] == Approx(value[size_t(i - first)]).epsilon(1e-13));
  for (size_t k = 0; k < expected.size(); k++) {
    INFO("element " << k << " of " << expected.size());
    CHECK(found[k] == Approx(expected[k]).epsilon(1e-13));
  }
}

F64 squared(F64 v) { return v * v; }

/// Loops of the reverse kernel, atomics that each iteration comes to but for one in each loop, and
/// what the last loop reads besides companions; loops with atomics in branches; arrays of terms. A third
/// field is no input.
struct Shape {
  int loops = 0, spare = 0, reads = 0, branching = 0, arrays = 0;
};
template <class F>
auto reverse_of(F&& record_kernel, size_t fields) {
  auto kernel = record_kernel();
  qn::ir::finish_recording(*kernel);
  qn::ir::Premises premises{kernel->modes, {}};
  for (size_t k = 0; k < fields; k++) premises.alias_classes.push_back(uint32_t(k + 1));
  std::vector<bool> inputs = qn::autodiff::inputs_of(*kernel);
  if (fields > 2) inputs[2] = false;
  return qn::autodiff::reverse(*kernel, premises, inputs);
}
template <class F>
Shape shape_of_reverse(F&& record_kernel, size_t fields) {
  const auto reverse = reverse_of(record_kernel, fields);
  Shape shape;
  for (const qn::ir::Binding& b : reverse.kernel->bindings)
    shape.arrays += b.companion.starts_with("terms");
  qn::ir::walk(reverse.kernel->body, [&](const qn::ir::Inst* inst) {
    if (!inst->is(qn::ir::Op::parallel)) return;
    shape.loops++;
    int atomics = 0;
    for (const qn::ir::Inst* i : *inst->region(0)) atomics += i->is(qn::ir::Op::atomic);
    shape.spare += std::max(0, atomics - 1);
    qn::ir::walk(inst->region(0),
                 [&](const qn::ir::Inst* i) { atomics -= i->is(qn::ir::Op::atomic); });
    shape.branching += atomics < 0;
    shape.reads = 0;
    qn::ir::walk(inst->region(0), [&](const qn::ir::Inst* i) {
      const bool reads = i->is(qn::ir::Op::load);
      shape.reads += reads && !reverse.kernel->bindings[i->binding()].is_derived();
    });
  });
  return shape;
}

}  // namespace

TEST_CASE("a stencil's adjoints are gathered: no atomics but an element's own") {
  const Shape inside = shape_of_reverse(
      [] {
        return qn::test::record([](qn::Field<double> x, qn::Field<double> y) {
          for (auto i : range(1, 99)) y[i] = x[i - 1] * x[i - 1] + 3.0 * x[i] - sin(x[i + 1]);
        });
      },
      2);
  CHECK(inside.loops == 2);
  CHECK(inside.spare == 0);
  const Shape wraps = shape_of_reverse(
      [] {
        return qn::test::record([](qn::Field<double, 2> x, qn::Field<double, 2> y) {
          auto around = bordered(x, border::wrap);
          for (auto [i, j] : y) y(i, j) = around(i - 1, j) + around(i, j + 2) + around(i, j);
        });
      },
      2);
  // Two where the loop has an iteration for each element of x, and nothing is asked.
  CHECK(wraps.loops == 4);
  CHECK(wraps.spare == 0);
  CHECK(wraps.branching == 1);
  const auto of_index = [](const auto& index) {
    return shape_of_reverse(
        [&] {
          return qn::test::record([&](qn::Field<double> x, qn::Field<double> y) {
            for (auto i : range(8)) y[i] = x[i] + x[index(i)];
          });
        },
        2);
  };
  // In the version that does not close an atomic takes what goes around, in a branch but where all does.
  const auto closes = [&](int branching, const auto& index) {
    const Shape shape = of_index(index);
    return shape.loops == 4 && shape.branching == branching;
  };
  CHECK(closes(1, [](I32 i) { return I32((i + 1) % 8); }));
  CHECK(closes(0, [](I32 i) { return I32(((i + 1) % 8 + 8) % 8); }));  // never below 8 inside
  CHECK(closes(1, [](I32 i) { return I32((i + 7) % 8); }));
  CHECK(of_index([](I32 i) { return I32(i * 3 % 8); }).loops < 4);
  // Elements around need not be iterations: what those read may not be there.
  const Shape weighted = shape_of_reverse(
      [] {
        return qn::test::record([](qn::Field<double> x, qn::Field<double> y, qn::Field<double> w) {
          for (auto i : w) y[i] = w[i] * x[i] + w[i] * x[i + 1] * w[0];
        });
      },
      3);
  CHECK(weighted.loops == 2);
  CHECK(weighted.reads == 0);
  const Shape own = shape_of_reverse(
      [] {
        return qn::test::record([](qn::Field<double> x, qn::Field<double> y) {
          for (auto i : x) y[i] = x[i] * x[i];
        });
      },
      2);
  CHECK(own.loops == 1);
}

TEST_CASE("what is read of rows around is read of the field's where there are none") {
  // A vector of a row that is no memory, all of it masked, takes as long as a hundred others.
  const auto reverse = reverse_of(
      [] {
        return qn::test::record([](qn::Field<double, 2> x, qn::Field<double, 2> y) {
          auto u = bordered(x, border::clamp);
          for (auto [i, j] : x) {
            F64 down = u(i + 1, j) - x(i, j), right = u(i, j + 1) - x(i, j);
            y(i, j) = sqrt(down * down + right * right + 1.0);
          }
        });
      },
      2);
  int of_rows = 0, of_columns = 0;
  qn::ir::walk(reverse.kernel->body, [&](const qn::ir::Inst* inst) {
    if (!inst->is(qn::ir::Op::load) || !inst->parent->parent->is(qn::ir::Op::if_)) return;
    of_rows += inst->operand(0)->inst && inst->operand(0)->inst->is(qn::ir::Op::add);
    of_columns += inst->operand(1)->inst && inst->operand(1)->inst->is(qn::ir::Op::add);
  });
  CHECK(of_rows == 0);
  CHECK(of_columns == 1);  // vectors read these side by side
}

TEST_CASE("adjoints of a stencil inside its field") {
  on_every_device([](const qn::Device& device) {
    for (int n : {2, 3, 4, 100}) {
      qn::Field<double> x{device, {n}}, y{device, {n}};
      qn::Kernel f = [&] {
        for (auto i : range(1, n - 1))
          y[i] = squared(x[i - 1]) - 4.0 * squared(x[i]) + 0.5 * squared(x[i + 1]);
      };
      expect_adjoints(x, y, f, 0, 1, n - 1, [](int i, const auto& read) {
        read(i - 1, 1);
        read(i, -4);
        read(i + 1, 0.5);
      });
    }
  });
}

TEST_CASE("adjoints of a stencil whose indices are clamped or wrap") {
  on_every_device([](const qn::Device& device) {
    for (int n : {1, 2, 5, 64}) {
      qn::Field<double> x{device, {n}}, y{device, {n}};
      qn::Kernel clamped = [&] {
        for (auto i : x)
          y[i] =
              squared(x[max(i - 3, 0)]) - 2.0 * squared(x[i]) + 0.5 * squared(x[min(i + 1, n - 1)]);
      };
      expect_adjoints(x, y, clamped, 0, 0, n, [&](int i, const auto& read) {
        read(std::max(i - 3, 0), 1);
        read(i, -2);
        read(std::min(i + 1, n - 1), 0.5);
      });
      qn::Kernel wrapped = [&] {
        for (auto i : x) y[i] = squared(x[(i + 1) % n]) + 3.0 * squared(x[(i + 4 * n - 2) % n]);
      };
      expect_adjoints(x, y, wrapped, 0, 0, n, [&](int i, const auto& read) {
        read((i + 1) % n, 1);
        read((i + 4 * n - 2) % n, 3);
      });
      auto out = bordered(x, border::constant(7));
      qn::Kernel constant = [&] {
        for (auto i : x) y[i] = squared(out(i - 1)) + 3.0 * squared(out(i + 2));
      };
      x.grad().fill(0);
      const std::vector<double> at = drawn(size_t(n), 1), w = drawn(size_t(n), 2);
      x.copy_from(at);
      y.grad().copy_from(w);
      qn::vjp(constant)()();
      for (int k = 0; k < n; k++) {
        const double expected =
            2 * at[size_t(k)] *
            ((k + 1 < n ? w[size_t(k + 1)] : 0) + (k - 2 >= 0 ? 3 * w[size_t(k - 2)] : 0));
        CHECK(x.grad().at(k) == Approx(expected).epsilon(1e-13));
      }
    }
  });
}

TEST_CASE("adjoints of a stencil that a border clamps are sums, in strict kernels too") {
  const Shape clamped = shape_of_reverse(
      [] {
        return qn::test::record([](qn::Field<double, 2> x, qn::Field<double, 2> y) {
          auto u = bordered(x, border::clamp);
          for (auto [i, j] : x) y(i, j) = u(i, j) * u(i + 1, j) + u(i - 2, j + 1);
        });
      },
      2);
  CHECK(clamped.loops == 2);
  CHECK(clamped.spare == 0);
  CHECK(clamped.branching == 0);
  on_every_device([](const qn::Device& device) {
    for (bool strict : {false, true})
      for (const auto& [n, m] : {std::array{1, 1}, {1, 7}, {2, 2}, {3, 5}, {40, 33}}) {
        INFO(n << " x " << m << (strict ? ", strict" : ""));
        qn::Field<double, 2> x{device, {n, m}}, y{device, {n, m}};
        auto u = bordered(x, border::clamp);
        qn::Kernel f{[&] {
                       for (auto [i, j] : x)
                         y(i, j) = squared(u(i, j)) - 2.0 * squared(u(i - 3, j)) +
                                   0.5 * squared(u(i + 1, j - 2)) + 3.0 * squared(u(i, j + 1));
                     },
                     {.strict = strict}};
        const std::vector<double> at = drawn(size_t(n * m), 1), w = drawn(size_t(n * m), 2),
                                  before = drawn(size_t(n * m), 3);
        x.copy_from(at);
        y.grad().copy_from(w);
        x.grad().copy_from(before);
        qn::vjp(f)()();
        std::vector<double> expected = before;
        const auto add = [&](int i, int j, double term) {
          i = std::clamp(i, 0, n - 1), j = std::clamp(j, 0, m - 1);
          const auto k = size_t(i * m + j);
          expected[k] += 2 * term * at[k];
        };
        for (int i = 0; i < n; i++)
          for (int j = 0; j < m; j++) {
            const double seed = w[size_t(i * m + j)];
            add(i, j, seed);
            add(i - 3, j, -2 * seed);
            add(i + 1, j - 2, 0.5 * seed);
            add(i, j + 1, 3 * seed);
          }
        const std::vector<double> found = qn::to_vector(x.grad());
        for (size_t k = 0; k < found.size(); k++) {
          INFO("element " << k);
          CHECK(found[k] == Approx(expected[k]).epsilon(1e-12));
        }
      }
  });
}

TEST_CASE(
    "adjoints of a stencil that goes around, where its loop is the field's and where it is not") {
  on_every_device([](const qn::Device& device) {
    for (int n : {1, 2, 3, 40})
      for (int first : {0, -7}) {
        const qn::Layout placed = qn::aos.offset(first);
        qn::Field<double> x{device, {n}, placed}, y{device, {n}, placed},
            z{device, {n + 2}, placed};
        auto u = bordered(x, border::wrap);
        const auto at = [&](int i) { return first + ((i - first) % n + n) % n; };
        const auto reads = [&](int i, const auto& read) {
          read(at(i - 1), 1);
          read(at(i), -3);
          read(at(i + 2), 0.5);
        };
        const auto value = [&](I32 i) {
          return squared(u(i - 1)) - 3.0 * squared(u(i)) + 0.5 * squared(u(i + 2));
        };
        qn::Kernel own = [&] {
          for (auto i : x) y[i] = value(i);
        };
        expect_adjoints(x, y, own, first, first, first + n, reads);
        qn::Kernel other = [&] {
          for (auto i : y) y[i] = value(i);
        };
        expect_adjoints(x, y, other, first, first, first + n, reads);
        qn::Kernel part = [&] {
          for (auto i : range(first, first + n - 1)) y[i] = value(i);
        };
        expect_adjoints(x, y, part, first, first, first + n - 1, reads);
        qn::Kernel more = [&] {
          for (auto i : z) z[i] = value(i);
        };
        expect_adjoints(x, z, more, first, first, first + n + 2, reads);
        qn::Kernel choice = [&] {
          for (auto i : y) {
            Var<double> s = 0;
            If((i & 1) == 0) { s += squared(u(i - 1)); }
            Else { s -= 2.0 * squared(u(i + 1)); }
            y[i] = s;
          }
        };
        expect_adjoints(x, y, choice, first, first, first + n, [&](int i, const auto& read) {
          if (i % 2 == 0)
            read(at(i - 1), 1);
          else
            read(at(i + 1), -2);
        });
      }
    // Remainders of another number than the field's extent, of a sum that wraps around its own width, and
    // more terms than there are arrays for.
    qn::Field<double> x{device, {12}}, y{device, {12}};
    qn::Kernel f = [&] {
      for (auto i : x) y[i] = squared(x[(i + 1) % 9]) + 2.0 * squared(x[i]);
    };
    expect_adjoints(x, y, f, 0, 0, 12, [](int i, const auto& read) {
      read((i + 1) % 9, 1);
      read(i, 2);
    });
    qn::Field<int> far{device, {2}};
    for (int start : {-2147483646, -5}) {
      far.fill(start);
      qn::Kernel overflows = [&] {
        Var<double> t = 1;
        Var<int> u = far[0];
        for (auto r : serial(range(far[0], far[1]))) {
          t = t * 0.5 + cast<double>(r);
          u = u * 5 + 1;
        }
        for (auto i : x) {
          I32 k = ((i - u) % 12 + u + 1) % 12;
          y[i] = t * squared(x[select(k >= 0, k, k + 12)]);
        }
      };
      const auto sum = [](int a, int b) { return int(unsigned(a) + unsigned(b)); };
      expect_adjoints(x, y, overflows, 0, 0, 12, [&](int i, const auto& read) {
        const int k = sum(sum(sum(i, -start) % 12, start), 1) % 12;
        read(k >= 0 ? k : k + 12, 1);
      });
    }
    qn::Kernel wide = [&] {
      for (auto i : x.wide()) y[i] = squared(x[(i + 1) % int64_t(12)]) + 2.0 * squared(x[i]);
    };
    expect_adjoints(x, y, wide, 0, 0, 12, [](int i, const auto& read) {
      read((i + 1) % 12, 1);
      read(i, 2);
    });
    auto u = bordered(x, border::wrap);
    qn::Kernel many = [&] {
      for (auto i : x) {
        Var<double> s = 0;
        for (int k = -5; k < 6; k++) s += (k + 7.0) * squared(u(i + k));
        y[i] = s;
      }
    };
    expect_adjoints(x, y, many, 0, 0, 12, [](int i, const auto& read) {
      for (int k = -5; k < 6; k++) read((i + k + 12) % 12, k + 7);
    });
  });
}

TEST_CASE("an element gets what goes around to it in one sum") {
  on_every_device([](const qn::Device& device) {
    constexpr int h = 6, w = 11;
    // The next number is 2 more: one at a time, the terms would be lost.
    constexpr double large = 1e16;
    qn::Field<double, 2> x{device, {h, w}}, y{device, {h, w}};
    auto u = bordered(x, border::wrap);
    qn::Kernel own = [&] {
      for (auto [i, j] : x) y(i, j) = u(i - 1, j) + u(i + 1, j) + u(i, j - 1) + u(i, j + 1);
    };
    qn::Kernel other = [&] {
      for (auto [i, j] : y) y(i, j) = u(i - 1, j) + u(i + 1, j) + u(i, j - 1) + u(i, j + 1);
    };
    for (const auto& f : {own, other}) {
      x.grad().fill(large);
      y.grad().fill(1);
      qn::vjp(f)()();
      for (double found : qn::to_vector(x.grad())) CHECK(found == large + 4);
    }
  });
}

TEST_CASE("adjoints of stencils in branches, and beside other reads") {
  on_every_device([](const qn::Device& device) {
    constexpr int n = 40;
    qn::Field<double> x{device, {n}}, y{device, {n}};
    qn::Field<int> to{device, {n}};
    std::vector<int> host(n);
    for (int k = 0; k < n; k++) host[size_t(k)] = k * 7 % 5;
    to.copy_from(host);
    qn::Kernel f = [&] {
      for (auto i : x) {
        Var<double> s = 0;
        If(i > 0 && i < n - 1) {
          s += squared(x[i - 1]) + squared(x[i + 1]);
          If(i % 3 == 0) { s += 2.0 * squared(x[i - 1]); }
        }
        else {
          s += 5.0 * squared(x[max(i - 1, 0)]);
        }
        s += squared(x[to[i]]) - 3.0 * squared(x[i]);
        for (auto k : range(i % 2)) s += squared(x[k]);
        y[i] = s;
      }
    };
    expect_adjoints(x, y, f, 0, 0, n, [&](int i, const auto& read) {
      if (i > 0 && i < n - 1) {
        read(i - 1, i % 3 == 0 ? 3 : 1);
        read(i + 1, 1);
      } else {
        read(std::max(i - 1, 0), 5);
      }
      read(host[size_t(i)], 1);
      read(i, -3);
      if (i % 2 == 1) read(0, 1);
    });
  });
}

TEST_CASE("adjoints of stencils where loops and fields have other extents or first indices") {
  on_every_device([](const qn::Device& device) {
    constexpr int n = 20;
    qn::Field<double> x{device, {n}}, faces{device, {n + 4}};
    qn::Kernel staggered = [&] {  // iterations that are no elements of x
      for (auto i : range(2, n + 2))
        faces[i] = squared(x[i - 1 - 1]) + 2.0 * squared(x[max(i - 3, 0)]);
    };
    expect_adjoints(x, faces, staggered, 0, 2, n + 2, [](int i, const auto& read) {
      read(i - 2, 1);
      read(std::max(i - 3, 0), 2);
    });
    qn::Kernel few = [&] {  // elements that no iteration reads
      for (auto i : range(8, 11)) faces[i] = squared(x[i + 4]) + 2.0 * squared(x[i + 6]);
    };
    expect_adjoints(x, faces, few, 0, 8, 11, [](int i, const auto& read) {
      read(i + 4, 1);
      read(i + 6, 2);
    });
    qn::Kernel none = [&] {
      for (auto i : range(9, 3)) faces[i] = squared(x[i - 1]) + 2.0 * squared(x[i + 1]);
    };
    expect_adjoints(x, faces, none, 0, 0, 0, [](int, const auto&) {});
    qn::Field<double> from{device, {n}, qn::offset(-3)}, to{device, {n}, qn::offset(-3)};
    qn::Kernel shifted = [&] {
      for (auto i : to)
        to[i] = squared(from[max(i - 1, -3)]) + 2.0 * squared(from[min(i + 1, n - 4)]);
    };
    expect_adjoints(from, to, shifted, -3, -3, n - 3, [](int i, const auto& read) {
      read(std::max(i - 1, -3), 1);
      read(std::min(i + 1, n - 4), 2);
    });
  });
}

TEST_CASE("adjoints of steps that are kept in one field") {
  on_every_device([](const qn::Device& device) {
    constexpr int n = 30, steps = 5;
    qn::Field<double, 2> u{device, {steps + 1, n}};
    qn::Kernel advance = [&](I32 t) {
      for (auto i : range(1, n - 1))
        u(t + 1, i) = 0.5 * u(t, i) * u(t, i) + 0.2 * u(t, i - 1) - 0.3 * u(t, i + 1);
    };
    const std::vector<double> at = drawn(n, 1), w = drawn(n, 2);
    for (int k = 0; k < n; k++) u.set(0, k, at[size_t(k)]);
    u.grad().fill(0);
    for (int k = 0; k < n; k++) u.grad().set(steps, k, w[size_t(k)]);
    {
      qn::Tape tape;
      for (int t = 0; t < steps; t++) advance(t);
      tape.backward();
    }
    // The same by hand.
    std::vector<std::vector<double>> v(steps + 1, std::vector<double>(n, 0.0)), a = v;
    v[0] = at;
    for (int t = 0; t < steps; t++)
      for (size_t i = 1; i + 1 < n; i++)
        v[size_t(t + 1)][i] = 0.5 * v[size_t(t)][i] * v[size_t(t)][i] + 0.2 * v[size_t(t)][i - 1] -
                              0.3 * v[size_t(t)][i + 1];
    a[steps] = w;
    for (size_t t = steps; t-- > 0;)
      for (size_t i = 1; i + 1 < n; i++) {
        a[t][i] += v[t][i] * a[t + 1][i];
        a[t][i - 1] += 0.2 * a[t + 1][i];
        a[t][i + 1] -= 0.3 * a[t + 1][i];
      }
    for (size_t k = 0; k < n; k++)
      CHECK(u.grad().at(0, int(k)) == Approx(a[0][k]).epsilon(1e-12).margin(1e-14));
  });
}

TEST_CASE("adjoints of a filter with weights from a field, of vectors") {
  on_every_device([](const qn::Device& device) {
    constexpr int h = 9, w = 13;
    qn::Field<dvec2, 2> x{device, {h, w}}, y{device, {h, w}};
    qn::Field<double, 2> weight{device, {3, 3}};
    const std::vector<double> at = drawn(2 * h * w, 1), seed = drawn(2 * h * w, 2),
                              weights = drawn(9, 3);
    const auto vectors = [](const std::vector<double>& v) {
      std::vector<dvec2> all;
      for (size_t k = 0; k < v.size(); k += 2) all.push_back({v[k], v[k + 1]});
      return all;
    };
    x.copy_from(vectors(at));
    y.grad().copy_from(vectors(seed));
    weight.copy_from(weights);
    auto u = bordered(x, border::wrap);
    qn::Kernel f = [&] {
      for (auto [i, j] : x) {
        Var<dvec2> sum = dvec2(0, 0);
        for (int a = 0; a < 3; a++)
          for (int b = 0; b < 3; b++) {
            Val<dvec2> v = u(i + (a - 1), j + (b - 1));
            sum += weight(a, b) * v * v;
          }
        y(i, j) = sum;
      }
    };
    x.grad().fill(dvec2{0, 0});
    weight.grad().fill(0);
    qn::vjp(f)()();
    std::vector<double> of_x(at.size(), 0.0), of_weight(9, 0.0);
    for (int i = 0; i < h; i++)
      for (int j = 0; j < w; j++)
        for (int a = 0; a < 3; a++)
          for (int b = 0; b < 3; b++)
            for (int c = 0; c < 2; c++) {
              const int k = 2 * ((i + a - 1 + h) % h * w + (j + b - 1 + w) % w) + c;
              const double s = seed[size_t(2 * (i * w + j) + c)], v = at[size_t(k)];
              of_x[size_t(k)] += 2 * weights[size_t(3 * a + b)] * v * s;
              of_weight[size_t(3 * a + b)] += v * v * s;
            }
    for (int i = 0; i < h; i++)
      for (int j = 0; j < w; j++)
        for (int c = 0; c < 2; c++)
          CHECK(x.grad().at(i, j)[size_t(c)] ==
                Approx(of_x[size_t(2 * (i * w + j) + c)]).epsilon(1e-13));
    for (int a = 0; a < 3; a++)
      for (int b = 0; b < 3; b++)
        CHECK(weight.grad().at(a, b) == Approx(of_weight[size_t(3 * a + b)]).epsilon(1e-13));
  });
}

TEST_CASE("terms that follow from one quotient and what is read are not kept one by one") {
  const Shape length = shape_of_reverse(
      [] {
        return qn::test::record([](qn::Field<double, 2> x, qn::Field<double, 2> y) {
          auto u = bordered(x, border::clamp);
          for (auto [i, j] : x) {
            F64 here = x(i, j), down = u(i + 1, j) - here, right = u(i, j + 1) - here;
            y(i, j) = sqrt(down * down + right * right + 1.0);
          }
        });
      },
      2);
  CHECK(length.loops == 2);
  CHECK(length.arrays == 1);
  // Of what the loop writes itself nothing can be read again.
  const Shape written = shape_of_reverse(
      [] {
        return qn::test::record([](qn::Field<double> x, qn::Field<double> y) {
          for (auto i : range(1, 99)) {
            F64 d = x[i + 1] - y[i], e = x[i - 1] - y[i];
            y[i] = sqrt(d * d + e * e + 1.0);
          }
        });
      },
      2);
  CHECK(written.arrays == 2);
}

TEST_CASE("the gradient of a total variation, whose weights may stand where adjoints will") {
  on_every_device([](const qn::Device& device) {
    for (const auto& [h, w] : {std::pair{1, 1}, {1, 6}, {5, 1}, {7, 9}, {40, 33}})
      for (const auto& [shares, checked] :
           {std::pair{false, true}, {true, true}, {false, false}, {true, false}}) {
        INFO(h << " x " << w << (shares ? ", in the adjoints" : "") << ", checked: " << checked);
        const size_t n = size_t(h) * size_t(w);
        const std::vector<double> at = drawn(n, 1), weights = drawn(n, 2);
        qn::Field<double, 2> x{device, {h, w}};
        x.copy_from(at);
        const qn::Field<double, 2> weight =
            shares ? x.grad() : qn::Field<double, 2>{device, {h, w}};
        weight.copy_from(weights);
        auto u = bordered(x, border::clamp);
        const auto variation = [&]() -> F64 {
          Var<double> sum = 0;
          for (auto [i, j] : x) {
            F64 here = x(i, j), down = u(i + 1, j) - here, right = u(i, j + 1) - here;
            sum += sqrt(down * down + right * right + 0.25) + weight(i, j) * down * right;
          }
          return sum;
        };
        qn::Kernel<double()> f{variation, {.checked = checked}};
        std::vector<double> expected(n, 0.0);
        for (int i = 0; i < h; i++)
          for (int j = 0; j < w; j++) {
            const auto k = size_t(i * w + j), below = size_t(std::min(i + 1, h - 1) * w + j),
                       beside = size_t(i * w + std::min(j + 1, w - 1));
            const double down = at[below] - at[k], right = at[beside] - at[k];
            const double length = std::sqrt(down * down + right * right + 0.25);
            const double of_down = down / length + weights[k] * right,
                         of_right = right / length + weights[k] * down;
            expected[below] += of_down;
            expected[beside] += of_right;
            expected[k] -= of_down + of_right;
          }
        qn::value_and_grad(f, qn::wrt(x))();
        const std::vector<double> found = qn::to_vector(x.grad());
        for (size_t k = 0; k < n; k++)
          CHECK(found[k] == Approx(expected[k]).epsilon(1e-12).margin(1e-12));
      }
  });
}

TEST_CASE("a strict kernel goes back through a stencil, with the same bits everywhere") {
  std::vector<double> first;
  on_every_device([&](const qn::Device& device) {
    constexpr int n = 1000;
    qn::Field<double> x{device, {n}}, y{device, {n}};
    qn::Kernel f{[&] {
                   for (auto i : range(2, n - 2))
                     y[i] = x[i - 2] * x[i] - x[i + 1] * x[i - 1] / 3.0 + x[i + 2] * 0.1;
                 },
                 {.strict = true}};
    x.copy_from(drawn(n, 1));
    y.grad().copy_from(drawn(n, 2));
    x.grad().fill(0);
    qn::vjp(f)()();
    const std::vector<double> found = qn::to_vector(x.grad());
    if (first.empty()) first = found;
    CHECK(found == first);
  });
}

TEST_CASE("second derivatives of a stencil") {
  on_every_device([](const qn::Device& device) {
    for (int n : {3, 50}) {
      const std::vector<double> at = drawn(size_t(n), 1), along = drawn(size_t(n), 2);
      auto x = numbers(device, at);
      auto u = bordered(x, border::wrap);
      qn::Kernel f = [&]() -> F64 {
        Var<double> sum = 0;
        for (auto i : x) sum += squared(u(i)) * squared(u(i + 1)) + 0.5 * u(i - 2) * u(i);
        return sum;
      };
      x.dual().copy_from(along);
      qn::hessian_vector(f, qn::wrt(x))();
      std::vector<double> expected(size_t(n), 0.0);
      for (int k = 0; k < n; k++) {
        const auto i = size_t(k), j = size_t((k + 1) % n), h = size_t((k + n - 2) % n);
        expected[i] += 2 * along[i] * at[j] * at[j] + 4 * at[i] * at[j] * along[j];
        expected[j] += 2 * along[j] * at[i] * at[i] + 4 * at[i] * at[j] * along[i];
        expected[i] += 0.5 * along[h];
        expected[h] += 0.5 * along[i];
      }
      for (int k = 0; k < n; k++)
        CHECK(x.grad().dual().at(k) == Approx(expected[size_t(k)]).epsilon(1e-13));
    }
  });
}
