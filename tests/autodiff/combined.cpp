// Derivatives of what iterations combine by min and max.
#include <quern/algorithms.h>
#include <quern/autodiff.h>

#include <cmath>
#include <limits>

#include "tests/autodiff/numbers.h"
#include "tests/end_to_end/devices.h"
#include "tests/message_of.h"

using namespace qn::lang;
using qn::test::message_of;

namespace {
constexpr double inf = std::numeric_limits<double>::infinity();
using Numbers = std::vector<double>;

qn::Field<int> integers(const qn::Device& device, const std::vector<int>& v) {
  qn::Field<int> x{device, {v.size()}};
  x.copy_from(v);
  return x;
}
}  // namespace

TEST_CASE("adjoints of an atomic min go to what was smallest: in equal parts where several are") {
  on_every_device([](const qn::Device& device) {
    auto x = numbers(device, {3, 1, std::nan(""), 5, 4, 4, 7});
    auto bin = integers(device, {0, 0, 0, 1, 1, 1, 2});
    // Bins: 1 of one iteration; 4 of two; what was there is smaller than 7; nobody comes.
    auto y = numbers(device, {inf, 6, -1, 8});
    qn::Kernel least = [&] {
      for (auto i : x) atomic_min(y[bin[i]], x[i]);
    };
    y.grad().copy_from(Numbers{10, 20, 30, 40});
    auto back = qn::vjp(least)();
    CHECK(qn::to_vector(y) == Numbers{1, 4, -1, 8});
    back();
    CHECK(qn::to_vector(x.grad()) == Numbers{0, 10, 0, 0, 10, 10, 0});
    CHECK(qn::to_vector(y.grad()) == Numbers{0, 0, 30, 40});

    y.copy_from(Numbers{inf, 6, -1, 8});
    x.dual().copy_from(Numbers{1, 2, 3, 4, 5, 6, 7});
    y.dual().copy_from(Numbers{1, 2, 3, 4});
    qn::jvp(least)();
    CHECK(qn::to_vector(y) == Numbers{1, 4, -1, 8});
    CHECK(qn::to_vector(y.dual()) == Numbers{2, (5.0 + 6.0) / 2, 3, 4});
  });
}

TEST_CASE("what an atomic max combines may be computed in branches and rounds") {
  on_every_device([](const qn::Device& device) {
    constexpr int n = 40;
    Numbers at;
    for (int k = 0; k < n; k++) at.push_back(std::sin(k * 1.7) + 0.01 * k);
    auto x = numbers(device, at);
    qn::Field<double, 2> y{device, {4, 3}};
    y.fill(-inf);
    y.grad().fill(1.0);
    qn::Kernel most = [&] {
      for (auto i : x) {
        for (auto r : range(i % 3)) {
          F64 v = x[i] * x[(i + 1) % n] + cast<double>(r);
          If(x[i] > 0.0) { atomic_max(y(i % 4, r), v); }
          atomic_max(y((i + 1) % 4, r), v * 0.5);
        }
      }
    };
    qn::vjp(most)()();

    // The same, one after another: what is largest, and whom by.
    double largest[4][3];
    int first[4][3];
    double slope[4][3];
    for (auto& row : largest)
      for (double& v : row) v = -inf;
    const auto offer = [&](int a, int b, double v, int i, double s) {
      if (v > largest[a][b]) largest[a][b] = v, first[a][b] = i, slope[a][b] = s;
    };
    for (int i = 0; i < n; i++)
      for (int r = 0; r < i % 3; r++) {
        const double v = at[size_t(i)] * at[size_t(i + 1) % n] + r;
        if (at[size_t(i)] > 0) offer(i % 4, r, v, i, 1);
        offer((i + 1) % 4, r, v * 0.5, i, 0.5);
      }
    Numbers expected(n, 0);
    for (int a = 0; a < 4; a++)
      for (int b = 0; b < 3; b++) {
        CHECK(y.at(a, b) == largest[a][b]);
        if (largest[a][b] == -inf) continue;
        const auto i = size_t(first[a][b]), j = (i + 1) % n;
        expected[i] += slope[a][b] * at[j];
        expected[j] += slope[a][b] * at[i];
      }
    for (int k = 0; k < n; k++) CHECK(x.grad().at(k) == Approx(expected[size_t(k)]).margin(1e-14));
    for (int a = 0; a < 4; a++)
      for (int b = 0; b < 3; b++) CHECK(y.grad().at(a, b) == (largest[a][b] == -inf ? 1 : 0));
  });
}

TEST_CASE("minima of several loops and of both kinds of what loops read afterwards") {
  on_every_device([](const qn::Device& device) {
    auto x = numbers(device, {3, 1, 2, 5});
    auto y = numbers(device, {inf, -inf}), z = numbers(device, {0, 0, 0, 0});
    qn::Kernel f = [&] {
      for (auto i : x) {
        atomic_min(y[0], x[i] * x[i]);
        z[i] = x[i];
      }
      for (auto i : x) atomic_max(y[1], x[i] - y[0]);        // 5 - 1
      for (auto i : x) atomic_min(y[0], x[i] - 2.0 * y[1]);  // 1 - 8
      for (auto i : x) z[i] = x[i] * y[0] + y[1];
    };
    z.grad().copy_from(Numbers{1, 2, 3, 4});
    auto back = qn::vjp(f)();
    CHECK(qn::to_vector(z) == Numbers{-17, -3, -10, -31});
    back();
    // y1 = x3 - x1², y0 = x1 - 2 x3 + 2 x1²; z_i = x_i y0 + y1
    const double of_y0 = 1 * 3 + 2 * 1 + 3 * 2 + 4 * 5, of_y1 = 10;
    CHECK(qn::to_vector(x.grad()) ==
          Numbers{-7, -7 * 2 + of_y0 * (1 + 4) + of_y1 * -2, -7 * 3, -7 * 4 - 2 * of_y0 + of_y1});
    CHECK(qn::to_vector(y.grad()) == Numbers{0, 0});

    y.copy_from(Numbers{inf, -inf});
    x.dual().copy_from(Numbers{1, 10, 100, 1000});
    qn::jvp(f)();
    const double y1 = 1000 - 2 * 10, y0 = 10 - 2 * 1000 + 4 * 10;
    CHECK(qn::to_vector(z.dual()) ==
          Numbers{-7 + 3 * y0 + y1, -70 + y0 + y1, -700 + 2 * y0 + y1, -7000 + 5 * y0 + y1});
  });
}

TEST_CASE("a minimum keeps its bits where it runs forward") {
  on_every_device([](const qn::Device& device) {
    qn::Field<float> x{device, {3}}, y{device, {3}};
    x.copy_from(std::vector<float>{-0.0f, -std::numeric_limits<float>::infinity(), 2.0f});
    y.copy_from(std::vector<float>{0.0f, 0.0f, std::nanf("")});
    x.dual().copy_from(std::vector<float>{3, 4, 5});
    qn::Kernel least = [&] {
      for (auto i : range(6)) atomic_min(y[i % 3], x[i % 3]);
    };
    qn::jvp(least)();
    CHECK((y.at(0) == 0 && std::signbit(y.at(0))));
    CHECK(y.at(1) == -std::numeric_limits<float>::infinity());
    CHECK(y.at(2) == 2);
    CHECK(qn::to_vector(y.dual()) == std::vector<float>{3, 4, 5});
  });
}

TEST_CASE("minima of views, of a component and of nobody") {
  on_every_device([](const qn::Device& device) {
    qn::Field<vec2> x{device, {4}};
    x.copy_from(std::vector<vec2>{{4, 1}, {3, 2}, {2, 3}, {1, 4}});
    qn::Field<float> all{device, {6}};
    all.fill(100.0f);
    auto y = all.slice(0, 2, 5);
    qn::Kernel least = [&](I32 count) {
      for (auto i : range(count)) {
        atomic_min(y[0], x[i].x);
        atomic_min(y[1], x[i].y);
      }
    };
    all.grad().copy_from(std::vector<float>{1, 2, 3, 4, 5, 6});
    qn::vjp(least)(0)();
    CHECK(qn::to_vector(all.grad()) == std::vector<float>{1, 2, 3, 4, 5, 6});
    qn::vjp(least)(3)();
    CHECK(qn::to_vector(all) == std::vector<float>{100, 100, 2, 1, 100, 100});
    CHECK(qn::to_vector(all.grad()) == std::vector<float>{1, 2, 0, 0, 5, 6});
    CHECK(x.grad().at(2).x == 3);
    CHECK(x.grad().at(0).y == 4);
    CHECK(x.grad().at(0).x == 0);
  });
}

TEST_CASE("what a loop reduces by min and max has derivatives") {
  on_every_device([](const qn::Device& device) {
    auto x = numbers(device, {3, 1, 2, 1, 5});
    qn::Kernel spread = [&](F64 floor) {
      Var<double> least = floor, most = -1.0;
      for (auto i : x) {
        atomic_min(least, x[i]);
        atomic_max(most, x[i] * x[i]);
      }
      Var<double> none = floor * 2.0;
      for (auto i : range(0)) atomic_min(none, x[i]);
      return result(Val<double>(least), Val<double>(most * least), Val<double>(none));
    };
    auto back = qn::vjp(spread)(7.0);
    CHECK(back.result().get<0>() == 1);
    CHECK(back.result().get<1>() == 25);
    CHECK(back.result().get<2>() == 14);
    CHECK(back(10.0, 1.0, 3.0).get<0>() == 6);  // of `none` alone
    // least has 10 + 25, in two halves; most has 1, times 2·5
    CHECK(qn::to_vector(x.grad()) == Numbers{0, 17.5, 0, 17.5, 10});

    x.dual().copy_from(Numbers{1, 10, 100, 1000, 10000});
    auto pushed = qn::jvp(spread)({0.5, 8.0});
    CHECK(pushed.value<0>() == 0.5);
    CHECK(pushed.value<1>() == 12.5);
    CHECK(pushed.tangent<0>() == 8);  // floor is the least
    CHECK(pushed.tangent<1>() == 0.5 * 2 * 5 * 10000 + 25 * 8);
    CHECK(pushed.tangent<2>() == 16);
  });
}

TEST_CASE("second derivatives of minima, of fields and of variables") {
  on_every_device([](const qn::Device& device) {
    auto x = numbers(device, {2, 0.5, -3});
    auto y = numbers(device, {inf});
    qn::Kernel f = [&]() -> F64 {
      for (auto i : x) atomic_min(y[0], x[i] * x[i] * x[i]);
      Var<double> most = -inf;
      for (auto i : x) atomic_max(most, x[i] * x[i] * y[0]);
      return y[0] * y[0] + most;
    };
    // y = x2³, most = x1²·x2³: f = x2⁶ + x1²·x2³
    const double a = 0.5, b = -3;
    const Numbers v = {7, 2, -1};
    x.dual().copy_from(v);
    auto r = qn::hessian_vector(f, qn::wrt(x))();
    CHECK(r.value() == std::pow(b, 6) + a * a * b * b * b);
    const Numbers gradient = {0, 2 * a * b * b * b, 6 * std::pow(b, 5) + a * a * 3 * b * b};
    const double h11 = 2 * b * b * b, h12 = 2 * a * 3 * b * b;
    const double h22 = 30 * std::pow(b, 4) + a * a * 6 * b;
    const Numbers product = {0, h11 * v[1] + h12 * v[2], h12 * v[1] + h22 * v[2]};
    for (int k = 0; k < 3; k++) {
      CHECK(x.grad().at(k) == Approx(gradient[size_t(k)]).epsilon(1e-13));
      CHECK(x.grad().dual().at(k) == Approx(product[size_t(k)]).epsilon(1e-13));
    }
  });
}

namespace {

/// H v of f at x by central differences of fourth order, in long double.
template <class F>
Numbers product_by_differences(F f, const Numbers& x, const Numbers& v) {
  const long double h = 1e-3L, weights[] = {1.0L / 12, -2.0L / 3, 0, 2.0L / 3, -1.0L / 12};
  Numbers product;
  for (size_t k = 0; k < x.size(); k++) {
    long double sum = 0;
    for (int a = -2; a <= 2; a++)
      for (int b = -2; b <= 2; b++) {
        std::vector<long double> at(x.begin(), x.end());
        for (size_t i = 0; i < x.size(); i++) at[i] += a * h * (long double)(v[i]);
        at[k] += b * h;
        sum += weights[a + 2] * weights[b + 2] * f(at);
      }
    product.push_back(double(sum / h / h));
  }
  return product;
}

}  // namespace

TEST_CASE("second derivatives of what is reduced where iterations have rounds of their own") {
  on_every_device([](const qn::Device& device) {
    const Numbers at = {0.3, -0.2, 0.9, 0.4, 0.1}, v = {1, 0.5, -1, 2, 0.25};
    const auto expect = [&](const auto& f, const qn::Field<double>& x, const auto& plain) {
      x.dual().copy_from(v);
      qn::hessian_vector(f, qn::wrt(x))();
      const Numbers product = product_by_differences(plain, at, v);
      for (int k = 0; k < 5; k++)
        CHECK(x.grad().dual().at(k) == Approx(product[size_t(k)]).epsilon(1e-7).margin(1e-8));
    };
    const auto chain = [](const auto& x, size_t i) {
      long double q = x[i];
      for (size_t j = i; j < 5; j++) q = std::sin(q + x[j]);
      return q;
    };
    auto x = numbers(device, at);
    qn::Kernel least = [&]() -> F64 {
      Var<double> worst = 1e9;
      for (auto i : x) {
        Var<double> q = x[i];
        for (auto j : range(i, 5)) q = sin(q + x[j]);
        atomic_min(worst, q);
      }
      return worst * worst;
    };
    expect(least, x, [&](const std::vector<long double>& p) {
      long double worst = 1e9L;
      for (size_t i = 0; i < 5; i++) worst = std::min(worst, chain(p, i));
      return worst * worst;
    });
    qn::Kernel most = [&]() -> F64 {
      Var<double> best = -1e9;
      for (auto i : x) {
        Var<double> q = x[i];
        Var<int> j = i;
        While(j < 5) {
          q = sin(q + x[j]);
          j += 1;
        }
        atomic_max(best, q);
      }
      return exp(best);
    };
    expect(most, x, [&](const std::vector<long double>& p) {
      long double best = -1e9L;
      for (size_t i = 0; i < 5; i++) best = std::max(best, chain(p, i));
      return std::exp(best);
    });
    qn::Kernel all = [&]() -> F64 {
      Var<double> product = 1;
      for (auto i : x) {
        Var<double> q = x[i];
        for (auto j : range(i, 5)) q = sin(q + x[j]);
        product *= q;
      }
      return product;
    };
    expect(all, x, [&](const std::vector<long double>& p) {
      long double product = 1;
      for (size_t i = 0; i < 5; i++) product *= chain(p, i);
      return product;
    });
  });
}

TEST_CASE("old values of atomics are those of the order where iterations have one") {
  on_every_device([](const qn::Device& device) {
    auto x = numbers(device, {0.3, 0.7, 0.1, 0.9, 0.6}), y = numbers(device, {0, 0, 0, 0, 0});
    auto sum = numbers(device, {1});
    qn::Field<int> count{device, {1}};
    qn::Kernel in_order = [&] {  // a list of what passes
      for (auto i : serial(range(5))) If(x[i] > 0.5) {
          I32 place = atomic_add(count[0], 1);
          y[place] = x[i] * x[i];
        }
    };
    y.grad().copy_from(Numbers{1, 10, 100, 1000, 10000});
    qn::vjp(in_order)()();
    const Numbers expected = {0, 1.4, 0, 18, 120};
    for (int k = 0; k < 5; k++) CHECK(x.grad().at(k) == Approx(expected[size_t(k)]).epsilon(1e-14));

    qn::Kernel of_sums = [&]() -> F64 {
      Var<double> squares = 0;
      for (auto i : serial(range(5))) {
        F64 before = atomic_add(sum[0], x[i] * x[i]);
        squares += before * before;
      }
      return squares;
    };
    auto both = qn::value_and_grad(of_sums, qn::wrt(x));
    double partial[5], total = 1, value = 0;
    for (int k = 0; k < 5; k++) {
      partial[k] = total;
      value += total * total;
      total += x.at(k) * x.at(k);
    }
    CHECK(both().value() == Approx(value).epsilon(1e-14));
    for (int k = 0; k < 5; k++) {
      double slope = 0;
      for (int later = k + 1; later < 5; later++) slope += 2 * partial[later] * 2 * x.at(k);
      CHECK(x.grad().at(k) == Approx(slope).epsilon(1e-13).margin(1e-15));
    }
    qn::Kernel turns = [&]() -> F64 {  // what stood there goes on
      Var<double> all = 0;
      for (auto i : serial(range(5))) all += atomic_exchange(sum[0], x[i]) * cast<double>(i + 1);
      return all;
    };
    qn::value_and_grad(turns, qn::wrt(x))();
    for (int k = 0; k < 5; k++) CHECK(x.grad().at(k) == (k < 4 ? k + 2 : 0));

    qn::Kernel last = [&]() -> F64 {  // one that nobody asks for, and one that compares
      for (auto i : serial(range(5))) atomic_exchange(sum[0], x[i] * x[i]);
      F64 before = atomic_cas(sum[0], x[4] * x[4], 3.0 * x[1]);
      return 10.0 * before + sum[0];
    };
    qn::value_and_grad(last, qn::wrt(x))();
    for (int k = 0; k < 5; k++)
      CHECK(x.grad().at(k) == Approx(k == 4 ? 20 * 0.6 : k == 1 ? 3 : 0).epsilon(1e-14));
  });
}

TEST_CASE("what is subtracted from an element counts as its negative in both directions") {
  on_every_device([](const qn::Device& device) {
    auto x = numbers(device, {1, 2, 3}), y = numbers(device, {10, 20});
    qn::Kernel f = [&] {
      for (auto i : x) y[i % 2] -= x[i] * x[i];
    };
    y.grad().copy_from(Numbers{1, 10});
    qn::vjp(f)()();
    CHECK(qn::to_vector(y) == Numbers{0, 16});
    CHECK(qn::to_vector(x.grad()) == Numbers{-2, -40, -6});
    CHECK(qn::to_vector(y.grad()) == Numbers{1, 10});
    x.dual().copy_from(Numbers{1, 1, 2});
    y.dual().copy_from(Numbers{100, 100});
    qn::jvp(f)();
    CHECK(qn::to_vector(y.dual()) == Numbers{100 - 2 - 12, 100 - 4});
  });
}

TEST_CASE("outside of parallel loops each minimum is by itself") {
  on_every_device([](const qn::Device& device) {
    auto x = numbers(device, {4, 4, 5}), y = numbers(device, {4});
    qn::Kernel f = [&] {
      atomic_min(y[0], x[0]);
      atomic_min(y[0], x[1]);  // the last that is smallest
      atomic_min(y[0], x[2]);
    };
    y.grad().copy_from(Numbers{3});
    qn::vjp(f)()();
    CHECK(qn::to_vector(x.grad()) == Numbers{0, 3, 0});
    CHECK(y.grad().at(0) == 0);
    x.dual().copy_from(Numbers{1, 2, 3});
    y.dual().fill(7.0);
    qn::jvp(f)();
    CHECK(y.dual().at(0) == 2);
  });
}

TEST_CASE("minima whose derivative is not known are refused at their line") {
  const qn::Device device("cpu");
  auto x = numbers(device, {1, 2, 3}), y = numbers(device, {9, 9, 9});
  const auto refused = [](auto& kernel, int line, const char* what) {
    for (const std::string& found :
         {message_of([&] { qn::vjp(kernel)(); }), message_of([&] { qn::jvp(kernel)(); })}) {
      INFO(found);
      CHECK(found.find("combined.cpp:" + std::to_string(line) + ": ") != std::string::npos);
      CHECK(found.find(what) != std::string::npos);
    }
  };
  int line = 0;
  qn::Kernel tested = [&] {
    for (auto i : x) {
      If(x[i] < atomic_load(y[0])) {
        line = __LINE__ + 1;
        atomic_min(y[0], x[i]);
      }
    }
  };
  refused(tested, line, "what is combined depends on what is read at");
  qn::Kernel changed = [&] {
    for (auto i : x) {
      line = __LINE__ + 1;
      atomic_max(y[0], x[i]);
      x[i] = 0.0;
    }
  };
  refused(changed, line, "which the loop changes at");
  qn::Kernel both = [&] {
    for (auto i : x) {
      line = __LINE__ + 1;
      atomic_max(y[i % 2], x[i]);
      atomic_add(y[i % 3], x[i]);
    }
  };
  refused(both, line, "the loop changes the same elements otherwise");
  qn::Field<int> count{device, {1}};
  qn::Kernel numbered = [&] {
    for (auto i : x) {
      I32 place = atomic_add(count[0], 1);
      line = __LINE__ + 1;
      atomic_max(y[0], x[i] * cast<double>(place));
    }
  };
  refused(numbered, line, "what is combined follows from what is changed at");
  qn::Kernel old = [&] {
    for (auto i : x) {
      line = __LINE__ + 1;
      F64 before = atomic_min(y[0], x[i]);
      x[i] = before;
    }
  };
  refused(old, line, "the old value of an atomic min");
  qn::Kernel exchanged = [&] {
    line = __LINE__ + 1;
    for (auto i : x) atomic_exchange(y[0], x[i]);
  };
  refused(exchanged, line, "an atomic exchange of floats");
  qn::Kernel swapped = [&] {
    line = __LINE__ + 1;
    for (auto i : x) atomic_cas(y[0], 9.0, x[i]);
  };
  refused(swapped, line, "an atomic cas of floats");
}

TEST_CASE("fields that overlap are refused where minima run forward") {
  const qn::Device device("cpu");
  auto all = numbers(device, {1, 2, 3, 9}), other = numbers(device, {9});
  auto x = all.slice(0, 0, 3);
  qn::Kernel least = [](qn::Field<double> from, qn::Field<double> to) {
    for (auto i : range(3)) atomic_min(to[to.dim(0) - 1], from[i]);
  };
  auto push = qn::jvp(least);
  all.dual().fill(5.0);
  push(x, other);
  CHECK(other.dual().at(0) == 5);
  CHECK(message_of([&] { push(x, all); }).find("overlap") != std::string::npos);
}

TEST_CASE("a tape goes back through minima and through their tangents") {
  on_every_device([](const qn::Device& device) {
    auto x = numbers(device, {2, -1, 3}), y = numbers(device, {inf}), z = numbers(device, {0});
    qn::Kernel least = [&] {
      for (auto i : x) atomic_min(y[0], x[i] * x[i] * x[i]);
    };
    qn::Kernel measured = [&](qn::Field<double> tangent) { z[0] = y[0] * tangent[0]; };
    x.dual().copy_from(Numbers{5, 7, 9});
    auto push = qn::jvp(least);
    z.grad().fill(1.0);
    qn::Tape tape;
    push();
    measured(y.dual());
    tape.backward();
    // z = x³ · 3x² ẋ at x = -1, ẋ = 7
    CHECK(z.at(0) == -21);
    CHECK(qn::to_vector(x.grad()) == Numbers{0, 15 * 7, 0});
    CHECK(qn::to_vector(x.dual().grad()) == Numbers{0, -3, 0});
  });
}

TEST_CASE("one loop reduces sums and products and minima and reads what it has written itself") {
  on_every_device([](const qn::Device& device) {
    auto x = numbers(device, {3, 0.5, 2}), y = numbers(device, {0, 0, 0});
    qn::Kernel f = [&] {
      Var<double> least = 9.0, sum = 0.0, product = 1.0, most = -9.0;
      for (auto i : x) {
        y[i] = x[i] * x[i];
        atomic_min(least, x[i]);
        sum += y[i];
        atomic_mul(product, x[i]);
        atomic_max(most, x[i] * x[i]);
      }
      return result(Val<double>(least * sum), Val<double>(product * most));
    };
    auto back = qn::vjp(f)();
    CHECK(back.result().get<0>() == 0.5 * 13.25);
    CHECK(back.result().get<1>() == 3 * 9);
    back(1.0, 10.0);
    // least is x1, most x0²
    const double of[] = {0.5 * 6 + 10 * (1 * 9 + 3 * 6), 13.25 + 0.5 * 1 + 10 * 6 * 9,
                         0.5 * 4 + 10 * 1.5 * 9};
    for (int k = 0; k < 3; k++) CHECK(x.grad().at(k) == Approx(of[k]).epsilon(1e-14));
    const Numbers v = {1, -2, 4};
    x.dual().copy_from(v);
    auto r = qn::jvp(f)();
    CHECK(r.tangent<0>() + 10 * r.tangent<1>() ==
          Approx(of[0] * v[0] + of[1] * v[1] + of[2] * v[2]).epsilon(1e-14));
  });
}

TEST_CASE("products that a loop reduces have derivatives, at zeros too") {
  on_every_device([](const qn::Device& device) {
    const Numbers cases[] = {{2, -3, 0.5, 4}, {2, 0, 0.5, 4}, {0, 0, 0.5, 4}, {0, 0, 0, 4}, {7}};
    for (const Numbers& at : cases) {
      auto x = numbers(device, at);
      const size_t n = at.size();
      Numbers v;
      for (size_t k = 0; k < n; k++) v.push_back(1.0 + double(k * k));
      qn::Kernel f = [&](F64 scale) -> F64 {
        Var<double> product = scale;
        for (auto i : x) atomic_mul(product, x[i]);
        return product;
      };
      for (const double scale : {3.0, 0.0}) {
        // Products of all but one and of all but two, which take no division.
        const auto without = [&](size_t a, size_t b) {
          double p = scale;
          for (size_t k = 0; k < n; k++) p *= k == a || k == b ? 1 : at[k];
          return p;
        };
        double all = 1;
        for (double factor : at) all *= factor;
        x.dual().copy_from(v);
        const double along = 5;
        auto r = qn::jvp(f)({scale, along});
        double tangent = all * along;
        for (size_t k = 0; k < n; k++) tangent += v[k] * without(k, k);
        CHECK(r.value<0>() == Approx(scale * all));
        CHECK(r.tangent<0>() == Approx(tangent));

        auto h = qn::hessian_vector(f, qn::wrt(x))(scale);
        CHECK(h.value() == Approx(scale * all));
        for (size_t k = 0; k < n; k++) {
          double product = 0;
          for (size_t j = 0; j < n; j++) product += j == k ? 0 : v[j] * without(k, j);
          CHECK(x.grad().at(int(k)) == Approx(without(k, k)));
          CHECK(x.grad().dual().at(int(k)) == Approx(product));
        }
        auto back = qn::vjp(f)(scale);
        CHECK(back(2.0).get<0>() == Approx(2 * all));
      }
    }
  });
}
