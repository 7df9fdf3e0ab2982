// Samples between elements of fields on trees, beside the same of dense fields and plain C++.
#include <quern/sample.h>
#include <quern/sparse.h>

#include <cmath>

#include "tests/end_to_end/devices.h"

using namespace qn::lang;

namespace {

/// The uniform B-spline of a degree around 0, by the recursion of Cox and de Boor.
double b_spline(int degree, double x) {
  if (degree == 0) return x >= -0.5 && x < 0.5 ? 1 : 0;
  const double half = (degree + 1) / 2.0;
  return ((half + x) * b_spline(degree - 1, x + 0.5) + (half - x) * b_spline(degree - 1, x - 0.5)) /
         degree;
}

constexpr int n = 48, places = 300;

bool is_there(int i, int j) { return (i - 20) * (i - 20) + (j - 25) * (j - 25) < 200; }
double value_at(int i, int j) { return is_there(i, j) ? 0.25 * i * j - i : -3; }
double x_of(int k) { return 8 + k * 0.0873; }
double y_of(int k) { return 40 - k % 23 * 1.377; }

double expected(int degree, double x, double y) {
  double sum = 0;
  for (int i = int(x) - 3; i <= int(x) + 4; i++)
    for (int j = int(y) - 3; j <= int(y) + 4; j++)
      sum += b_spline(degree, x - i) * b_spline(degree, y - j) * value_at(i, j);
  return sum;
}

}  // namespace

TEST_CASE("samples and splines of fields on trees are those of dense fields") {
  on_every_device([](const qn::Device& device) {
    qn::Tree<2> tree{device, {qn::pointer(3), qn::pointer(4), qn::bitmasked(4)}};
    auto u = tree.field<double>(-3.0);
    qn::Field<double, 2> dense{device, {n, n}};
    qn::Field<double> x{device, {places}}, y{device, {places}};
    for (int k = 0; k < places; k++) x.set(k, x_of(k)), y.set(k, y_of(k));
    std::vector<double> values;
    for (int i = 0; i < n; i++)
      for (int j = 0; j < n; j++) values.push_back(value_at(i, j));
    dense.copy_from(values);
    qn::Kernel fill = [&] {
      for (auto [i, j] : dense) {
        If((i - 20) * (i - 20) + (j - 25) * (j - 25) < 200) { u(i, j) = dense(i, j); }
      }
    };
    fill();
    qn::Field<double, 2> on_tree{device, {3, places}}, beside{device, {3, places}};
    qn::Kernel look = [&] {
      for (auto k : x) {
        on_tree(0, k) = sample(u, x[k], y[k]);
        beside(0, k) = sample(dense, x[k], y[k]);
        on_tree(1, k) = bspline<2>(u, x[k], y[k]);
        beside(1, k) = bspline<2>(dense, x[k], y[k]);
        on_tree(2, k) = bspline<3>(u, vec(x[k], y[k]));
        beside(2, k) = bspline<3>(dense, vec(x[k], y[k]));
      }
    };
    look();
    int unlike = 0;
    for (int degree = 1; degree <= 3; degree++)
      for (int k = 0; k < places; k++) {
        const double found = on_tree.at(degree - 1, k);
        unlike += found != beside.at(degree - 1, k);
        CHECK(std::abs(found - expected(degree, x_of(k), y_of(k))) < 1e-11);
      }
    CHECK(unlike == 0);
  });
}

TEST_CASE("splines of one and three axes, of vectors, integers and borders") {
  on_every_device([](const qn::Device& device) {
    qn::Field<vec2> line{device, {5}};
    qn::Field<int, 3> cube{device, {4, 4, 4}};
    qn::Field<float> out{device, {6}};
    qn::Kernel k = [&] {
      for (auto i : line) line[i] = vec(cast<float>(i), 1.0f);
      for (auto [i, j, m] : cube) cube(i, j, m) = 100 * i + 10 * j + m;
      for (auto r : range(1)) {
        F32 t = 1.7f + cast<float>(r);
        Vec2 v = bspline<3>(line, t);
        out[0] = v.x;
        out[1] = v.y;
        out[2] = bspline<2>(line, 0.0f * t).x;  // 1/8 · 0, clamped, + 6/8 · 0 + 1/8 · 1
        out[3] = bspline<3>(cube, 1.5f, t, 1.25f);
        out[4] = bspline<2>(line, 0.0f * t, border::constant(vec2(8, 8))).x;
        out[5] = bspline<2>(line, t / 0.0f).y;
      }
    };
    k();
    CHECK(std::abs(out.at(0) - 1.7f) < 1e-6f);  // what is linear, splines reproduce
    CHECK(std::abs(out.at(1) - 1.0f) < 1e-6f);
    CHECK(std::abs(out.at(2) - 0.125f) < 1e-7f);
    CHECK(std::abs(out.at(3) - (150 + 17 + 1.25f)) < 1e-4f);
    CHECK(std::abs(out.at(4) - (8 / 8.0f + 1 / 8.0f)) < 1e-6f);
    CHECK(std::isnan(out.at(5)));
  });
}
