// Which sums over rounds become loops of their own, by the reverse kernel.
#include <quern/autodiff.h>

#include "autodiff/primal/activity.h"
#include "autodiff/reverse/reverse.h"
#include "quern/ir/lower.h"
#include "tests/dsl/record.h"
#include "tests/end_to_end/devices.h"

using namespace qn::lang;

namespace {

/// Of the reverse kernel: parallel loops, those that add atomically in rounds, fields that
/// iterations keep values in.
struct Shape {
  int loops = 0, adding_in_rounds = 0, kept = 0;
  bool operator==(const Shape&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Shape& s) {
  return out << s.loops << " loops, " << s.adding_in_rounds << " add in rounds, " << s.kept
             << " kept";
}
/// `others`: fields that are no inputs.
template <class F>
Shape shape_of_reverse(F&& body, size_t fields, std::vector<size_t> others = {}) {
  auto kernel = qn::test::record(body);
  qn::ir::finish_recording(*kernel);
  qn::ir::Premises premises{kernel->modes, {}};
  for (size_t k = 0; k < fields; k++) premises.alias_classes.push_back(uint32_t(k + 1));
  std::vector<bool> inputs = qn::autodiff::inputs_of(*kernel);
  for (size_t k : others) inputs[k] = false;
  const auto reverse = qn::autodiff::reverse(*kernel, premises, inputs);
  Shape shape;
  for (const qn::ir::Binding& b : reverse.kernel->bindings)
    shape.kept += b.companion.starts_with("parts");
  qn::ir::walk(reverse.kernel->body, [&](const qn::ir::Inst* loop) {
    if (!loop->is(qn::ir::Op::parallel)) return;
    shape.loops++;
    bool adds = false;
    qn::ir::walk(loop->region(0), [&](const qn::ir::Inst* rounds) {
      if (!rounds->is(qn::ir::Op::loop)) return;
      qn::ir::walk(rounds->region(0),
                   [&](const qn::ir::Inst* i) { adds |= i->is(qn::ir::Op::atomic); });
    });
    shape.adding_in_rounds += adds;
  });
  return shape;
}

}  // namespace

TEST_CASE("iterations keep eight values for the loops behind, each in an array") {
  const auto layers = [](int number) {
    return [=](qn::Field<double, 2> x, qn::Field<double, 3> w, qn::Field<double, 2> y) {
      for (auto [b, o] : y) {
        Var<double> all = 0.0;
        for (int k = 0; k < number; k++) {
          Var<double> s = 0.0;
          for (auto i : range(x.dim(1))) s += x(b, i) * w(k, i, o);
          all += tanh(s);
        }
        y(b, o) = all;
      }
    };
  };
  const Shape few = shape_of_reverse(layers(8), 3), many = shape_of_reverse(layers(10), 3);
  CHECK(few.kept == 8);
  CHECK(few.adding_in_rounds == 0);
  CHECK(many.kept == 8);
  CHECK(many.adding_in_rounds == 1);
}

TEST_CASE("sums over iterations are loops of their own, where indices say which") {
  using F2 = qn::Field<double, 2>;
  const auto layer = [](auto&& activation, auto&& bound) {
    return [=](F2 x, F2 w, F2 y) {
      for (auto [b, o] : y) {
        Var<double> s = 0.0;
        for (auto i : range(bound(x, b))) s += x(b, i) * w(i, o);
        y(b, o) = activation(s);
      }
    };
  };
  const auto all = [](auto& x, auto) { return x.dim(1); };
  // Each sum is a loop, and one in pieces.
  CHECK(shape_of_reverse(layer([](auto& s) { return tanh(s); }, all), 3) == Shape{5, 0, 1});
  CHECK(shape_of_reverse(layer([](auto& s) { return max(s, 0.0); }, all), 3).adding_in_rounds == 0);
  CHECK(shape_of_reverse(layer([](auto& s) { return tanh(s); }, all), 3, {0}) == Shape{3, 0, 1});
  const auto convolution = [](auto&& bound) {
    return [=](qn::Field<double, 3> image, qn::Field<double, 3> weights, qn::Field<double, 3> y) {
      for (auto [n, i, j] : y) {
        Var<double> s = 0.0;
        for (auto c : range(4))
          for (auto a : range(bound(weights))) s += image(c, i + a, j) * weights(n, c, a);
        y(n, i, j) = s;
      }
    };
  };
  CHECK(shape_of_reverse(convolution([](auto&) { return 3; }), 3) == Shape{5, 0, 1});
  // Offsets of any number could be more than there are iterations.
  CHECK(shape_of_reverse(convolution([](auto& w) { return w.dim(2); }), 3) == Shape{3, 1, 1});
  CHECK(shape_of_reverse(convolution([](auto&) { return 17; }), 3) == Shape{3, 1, 1});
  // Nor does it pay where each round asks for its element, as too many are not written out.
  const auto by = [](int rounds) {
    return [=](F2 image, F2 weights, F2 y) {
      for (auto [i, j] : y) {
        Var<double> s = 0.0;
        for (auto a : range(rounds))
          for (auto k : range(rounds)) s += image(i + a, j + k) * weights(a, k);
        y(i, j) = s;
      }
    };
  };
  CHECK(shape_of_reverse(by(11), 3, {1}).adding_in_rounds == 0);
  CHECK(shape_of_reverse(by(12), 3, {1}).adding_in_rounds == 1);
  CHECK(shape_of_reverse(
            [](F2 x, F2 y) {
              for (auto [i, j] : grid(range(1, 9), range(1, 9))) {
                Var<double> s = 0.0;
                for (auto a : range(-1, 2)) s += x(i + a, j);
                y(i, j) = s;
              }
            },
            2) == Shape{2, 0, 1});
  // Elements of iterations in another order; numbers of rounds are known, and that no sum is cut.
  CHECK(shape_of_reverse(
            [](F2 x, F2 w, qn::Field<double, 3> y) {
              for (auto [b, o] : grid(range(5), range(6))) {
                Var<double> s = 0.0;
                for (auto i : range(7)) s += x(b, i) * w(i, o);
                y(o, 1, b) = tanh(s);
              }
            },
            3) == Shape{3, 0, 1});
  CHECK(shape_of_reverse(
            [](F2 x, qn::Field<double> w, F2 y) {
              for (auto [b, o] : y) {
                Var<double> s = 0.0;
                for (auto i : range(x.dim(1))) s += x(b, i) * w[i * 50 + o];
                y(b, o) = tanh(s);
              }
            },
            3) == Shape{5, 0, 1});
  // One round alone comes to an element.
  CHECK(shape_of_reverse(
            [](F2 x, F2 y) {
              for (auto [c, i] : y) {
                Var<double> s = 0.0;
                for (auto r : range(x.dim(1) / 64)) s += x(c, r * 64 + i) * x(c, r * 64 + i);
                y(c, i) = s;
              }
            },
            2) == Shape{1, 1, 0});
  CHECK(shape_of_reverse(
            [](F2 x, F2 y) {
              for (auto [i, j] : y) {
                Var<double> s = 0.0;
                for (auto a : range(3)) s += x(2 * i + a, j) * x(2 * i + a, j);
                y(i, j) = s;
              }
            },
            2) == Shape{2, 0, 1});
  // Elements far from each other are not those of one loop.
  const auto apart = [](int far) {
    return [=](F2 x, F2 w, F2 y) {
      for (auto [b, o] : y) {
        Var<double> s = 0.0;
        for (auto i : range(w.dim(0))) s += (x(b, i + 1) + x(b, i + 1 + far)) * w(i, o);
        y(b, o) = s;
      }
    };
  };
  CHECK(shape_of_reverse(apart(3), 3, {1}) == Shape{3, 0, 1});
  CHECK(shape_of_reverse(apart(3000), 3, {1}) == Shape{5, 0, 1});
  // Each iteration has rounds of its own.
  const auto triangle = [](auto&, auto b) { return b; };
  CHECK(shape_of_reverse(layer([](auto& s) { return tanh(s); }, triangle), 3) == Shape{1, 1, 0});
  // What no input is has no adjoints, but room for what iterations keep.
  CHECK(shape_of_reverse(
            [](F2 x, F2 w, F2 wanted) -> F64 {
              Var<double> sum = 0.0;
              for (auto [b, o] : grid(range(7), range(8))) {
                Var<double> s = -wanted(b, o);
                for (auto i : range(x.dim(1))) s += x(b, i) * w(i, o);
                sum += s * s;
              }
              return sum;
            },
            3, {0, 2}) == Shape{3, 0, 1});
  // Elements that an index is read for, or that all iterations share, are found otherwise.
  CHECK(shape_of_reverse(
            [](F2 x, F2 w, qn::Field<int> from, F2 y) {
              for (auto [b, o] : y) {
                Var<double> s = 0.0;
                for (auto i : range(9)) s += x(b, i) * w(from[o], i);
                y(b, o) = s;
              }
            },
            4, {0}) == Shape{1, 1, 0});
  CHECK(shape_of_reverse(
            [](F2 x, qn::Field<double> w, qn::Field<double> y) {
              for (auto b : y) {
                Var<double> s = 0.0;
                for (auto i : range(9)) s += x(b, i) * w[i];
                y[b] = s;
              }
            },
            3) == Shape{1, 1, 0});
}
