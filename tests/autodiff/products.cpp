// Derivatives of products that iterations combine by atomics on elements.
#include <quern/autodiff.h>
#include <quern/sparse.h>

#include <cmath>

#include "tests/autodiff/numbers.h"
#include "tests/end_to_end/devices.h"
#include "tests/message_of.h"

using namespace qn::lang;
using qn::test::message_of;

namespace {
using Numbers = std::vector<double>;

qn::Field<int> integers(const qn::Device& device, const std::vector<int>& v) {
  qn::Field<int> x{device, {v.size()}};
  x.copy_from(v);
  return x;
}

/// Factors by element, and what was there before.
struct Factors {
  Numbers x;
  std::vector<int> bin;
  Numbers y;

  /// The product of an element's factors but for two of them; -1: what was there before.
  double without(int element, int a, int b) const {
    double product = a == -1 || b == -1 ? 1 : y[size_t(element)];
    for (int k = 0; k < int(x.size()); k++)
      if (bin[size_t(k)] == element && k != a && k != b) product *= x[size_t(k)];
    return product;
  }
  double of(int element) const { return without(element, -2, -2); }
  double without(int element, int a) const { return without(element, a, a); }
};

/// No zero, one, two, three; an old value that is 0 alone and with others; one factor; none.
const Factors elements = {{2, -3, 0.5, 7, 0, -2, 0, 3, 0, 0, 0, 0, 1.5, -2.5, 0, 5, -4, 6},
                          {0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 5, 5, 6, 0},
                          {-1.5, 2, 3, 4, 0, 0, 8, 9, 0}};

Numbers drawn(size_t n, double phase) {
  Numbers v;
  for (size_t k = 0; k < n; k++) v.push_back(std::sin(double(k) * 1.7 + phase) + 0.25);
  return v;
}

double dot(const Numbers& a, const Numbers& b) {
  double sum = 0;
  for (size_t k = 0; k < a.size(); k++) sum += a[k] * b[k];
  return sum;
}

void check_close(const Numbers& found, const Numbers& expected) {
  REQUIRE(found.size() == expected.size());
  for (size_t k = 0; k < found.size(); k++) {
    INFO(k);
    CHECK(found[k] == Approx(expected[k]).epsilon(1e-13).margin(1e-13));
  }
}
}  // namespace

TEST_CASE("an atomic product varies by each factor times the others, at zeros too") {
  on_every_device([](const qn::Device& device) {
    const Factors& at = elements;
    auto x = numbers(device, at.x), y = numbers(device, at.y);
    auto bin = integers(device, at.bin);
    qn::Kernel multiply = [&] {
      for (auto i : x) atomic_mul(y[bin[i]], x[i]);
    };
    Numbers products;
    for (int e = 0; e < 9; e++) products.push_back(at.of(e));
    const Numbers v = drawn(at.x.size(), 1), of_old = drawn(9, 2), w = drawn(9, 3);

    Numbers of_x, of_y, tangents;
    for (int k = 0; k < int(at.x.size()); k++)
      of_x.push_back(w[size_t(at.bin[size_t(k)])] * at.without(at.bin[size_t(k)], k));
    for (int e = 0; e < 9; e++) {
      of_y.push_back(w[size_t(e)] * at.without(e, -1));
      double tangent = of_old[size_t(e)] * at.without(e, -1);
      for (int k = 0; k < int(at.x.size()); k++)
        if (at.bin[size_t(k)] == e) tangent += v[size_t(k)] * at.without(e, k);
      tangents.push_back(tangent);
    }
    y.grad().copy_from(w);
    auto back = qn::vjp(multiply)();
    check_close(qn::to_vector(y), products);
    back();
    const Numbers x_adjoints = qn::to_vector(x.grad()), y_adjoints = qn::to_vector(y.grad());
    check_close(x_adjoints, of_x);
    check_close(y_adjoints, of_y);

    y.copy_from(at.y);
    x.dual().copy_from(v);
    y.dual().copy_from(of_old);
    qn::jvp(multiply)();
    check_close(qn::to_vector(y), products);
    const Numbers pushed = qn::to_vector(y.dual());
    check_close(pushed, tangents);
    CHECK(dot(pushed, w) == Approx(dot(v, x_adjoints) + dot(of_old, y_adjoints)).epsilon(1e-13));
  });
}

TEST_CASE("factors of an atomic product may be computed in branches and rounds") {
  on_every_device([](const qn::Device& device) {
    constexpr int n = 40;
    Numbers at;
    for (int k = 0; k < n; k++) at.push_back(k == 17 || k == 30 ? 0 : 1.2 * std::sin(k * 1.7));
    auto x = numbers(device, at);
    qn::Field<double, 2> y{device, {4, 3}};
    y.fill(1.5);
    y.grad().fill(1.0);
    qn::Kernel multiply = [&] {
      for (auto i : x) {
        for (auto r : range(i % 3)) {
          F64 v = x[i] * x[(i + 1) % n] + 0.5 * cast<double>(r);
          If(x[i] > 0.0) { atomic_mul(y(i % 4, r), v); }
          atomic_mul(y((i + 1) % 4, r), v - 0.25);
        }
      }
    };
    qn::vjp(multiply)()();

    // The same, one after another: each factor with its slope by x[i]·x[i + 1].
    struct Factor {
      double v;
      int i;
    };
    std::vector<Factor> factors[4][3];
    for (int i = 0; i < n; i++)
      for (int r = 0; r < i % 3; r++) {
        const double v = at[size_t(i)] * at[size_t(i + 1) % n] + 0.5 * r;
        if (at[size_t(i)] > 0) factors[i % 4][r].push_back({v, i});
        factors[(i + 1) % 4][r].push_back({v - 0.25, i});
      }
    Numbers expected(n, 0);
    for (int a = 0; a < 4; a++)
      for (int b = 0; b < 3; b++) {
        const auto& all = factors[a][b];
        double of_old = 1;
        for (const Factor& f : all) of_old *= f.v;
        CHECK(y.at(a, b) == Approx(1.5 * of_old));
        CHECK(y.grad().at(a, b) == Approx(of_old));
        for (size_t k = 0; k < all.size(); k++) {
          double others = 1.5;
          for (size_t j = 0; j < all.size(); j++) others *= j == k ? 1 : all[j].v;
          const auto i = size_t(all[k].i), next = (i + 1) % n;
          expected[i] += others * at[next];
          expected[next] += others * at[i];
        }
      }
    for (int k = 0; k < n; k++)
      CHECK(x.grad().at(k) == Approx(expected[size_t(k)]).epsilon(1e-11).margin(1e-14));
  });
}

TEST_CASE("products of several loops, of one iteration and of none, that loops read afterwards") {
  on_every_device([](const qn::Device& device) {
    auto x = numbers(device, {3, -1, 2, 5}), y = numbers(device, {2, 7, 0.5, 9});
    auto z = numbers(device, {0, 0, 0, 0});
    qn::Kernel f = [&](I32 count) {
      for (auto i : x) {
        atomic_mul(y[0], x[i] * x[i]);
        atomic_min(y[3], x[i]);
        z[i] = x[i];
        If(i == 0) { y[2] = 4.0; }
      }
      for (auto i : range(1)) atomic_mul(y[1], x[i] - y[0]);
      for (auto i : range(count)) atomic_mul(y[0], x[i]);
      for (auto i : x) z[i] = z[i] * y[0] + y[1] + y[3];
    };
    z.grad().copy_from(Numbers{1, 2, 3, 4});
    auto back = qn::vjp(f)(0);
    const double y0 = 2 * 9 * 1 * 4 * 25, y1 = 7 * (3 - y0);
    CHECK(qn::to_vector(z) ==
          Numbers{3 * y0 + y1 - 1, -y0 + y1 - 1, 2 * y0 + y1 - 1, 5 * y0 + y1 - 1});
    back();
    const double of_y1 = 10, of_y0 = 3 - 2 + 6 + 20 - of_y1 * 7;
    check_close(qn::to_vector(x.grad()),
                {y0 + of_y0 * 2 * y0 / 3 + of_y1 * 7, 2 * y0 + of_y0 * 2 * y0 / -1 + 10,
                 3 * y0 + of_y0 * 2 * y0 / 2, 4 * y0 + of_y0 * 2 * y0 / 5});
    check_close(qn::to_vector(y.grad()), {of_y0 * y0 / 2, of_y1 * (3 - y0), 0, 0});

    y.copy_from(Numbers{2, 7, 0.5, 9});
    x.dual().copy_from(Numbers{1, 0, 0, 0});
    y.dual().copy_from(Numbers{0, 1, 10, 100});
    qn::jvp(f)(1);
    // y0 is a multiple of x0², and then times x0 once more; y1 = 7 (x0 - y0) between
    const double first = 2 * y0 / 3, second = y0 + 3 * first;
    CHECK(y.at(0) == 3 * y0);
    check_close(qn::to_vector(y.dual()), {second, 7 * (1 - first) + (3 - y0), 0, 0});
    CHECK(z.dual().at(1) == Approx(-second + 7 * (1 - first) + (3 - y0)));
  });
}

TEST_CASE("products of views, of a component and of floats") {
  on_every_device([](const qn::Device& device) {
    qn::Field<vec2> x{device, {4}};
    x.copy_from(std::vector<vec2>{{4, 1}, {3, 0}, {2, 3}, {1, 4}});
    qn::Field<float> all{device, {6}};
    all.fill(0.5f);
    auto y = all.slice(0, 2, 5);
    qn::Kernel multiply = [&](I32 count) {
      for (auto i : range(count)) {
        atomic_mul(y[0], x[i].x);
        atomic_mul(y[1], x[i].y);
      }
    };
    all.grad().copy_from(std::vector<float>{1, 2, 3, 4, 5, 6});
    qn::vjp(multiply)(0)();
    CHECK(qn::to_vector(all.grad()) == std::vector<float>{1, 2, 3, 4, 5, 6});
    qn::vjp(multiply)(3)();
    CHECK(qn::to_vector(all) == std::vector<float>{0.5f, 0.5f, 12, 0, 0.5f, 0.5f});
    CHECK(qn::to_vector(all.grad()) == std::vector<float>{1, 2, 72, 0, 5, 6});
    CHECK(x.grad().at(0).x == 9);
    CHECK(x.grad().at(1).x == 12);
    CHECK(x.grad().at(2).x == 18);
    CHECK(x.grad().at(0).y == 0);
    CHECK(x.grad().at(1).y == 6);
    CHECK(x.grad().at(3).y == 0);
  });
}

TEST_CASE("components of an element are multiplied each by itself") {
  on_every_device([](const qn::Device& device) {
    auto x = numbers(device, {3, -2, 4});
    qn::Field<vec2> y{device, {2}};
    y.copy_from(std::vector<vec2>{{1, 2}, {3, 4}});
    qn::Kernel multiply = [&] {
      for (auto i : x) {
        atomic_mul(y[i % 2].x, cast<float>(x[i]));
        atomic_mul(y[0].y, cast<float>(x[i] * x[i]));
      }
    };
    y.grad().copy_from(std::vector<vec2>{{1, 10}, {100, 1000}});
    qn::vjp(multiply)()();
    CHECK(y.at(0).x == 12);
    CHECK(y.at(0).y == 2 * 9 * 4 * 16);
    CHECK(y.at(1).x == -6);
    CHECK(y.at(1).y == 4);
    // y0.x = x0 x2; y1.x = 3 x1; y0.y = 2 (x0 x1 x2)²
    check_close(qn::to_vector(x.grad()),
                {4 + 10.0 * 1152 * 2 / 3, 300 - 10.0 * 1152, 3 + 10.0 * 1152 / 2});
    CHECK(y.grad().at(0).x == 12);
    CHECK(y.grad().at(0).y == 5760);
    CHECK(y.grad().at(1).x == -200);
    CHECK(y.grad().at(1).y == 1000);
  });
}

TEST_CASE("outside of parallel loops each product is by itself") {
  on_every_device([](const qn::Device& device) {
    auto x = numbers(device, {4, 0, 5}), y = numbers(device, {3});
    qn::Kernel f = [&] {
      atomic_mul(y[0], x[0]);
      atomic_mul(y[0], x[1]);
      atomic_mul(y[0], x[2]);
    };
    y.grad().copy_from(Numbers{2});
    qn::vjp(f)()();
    CHECK(y.at(0) == 0);
    CHECK(qn::to_vector(x.grad()) == Numbers{0, 120, 0});
    CHECK(y.grad().at(0) == 0);
    y.copy_from(Numbers{3});
    x.dual().copy_from(Numbers{1, 2, 3});
    y.dual().fill(7.0);
    qn::jvp(f)();
    CHECK(y.dual().at(0) == 3 * 4 * 2 * 5);
  });
}

TEST_CASE("second derivatives of atomic products, at zeros too") {
  on_every_device([](const qn::Device& device) {
    const Factors& at = elements;
    const Numbers weights = drawn(9, 4), vx = drawn(at.x.size(), 5), vz = drawn(9, 6);
    auto x = numbers(device, at.x), z = numbers(device, at.y), y = numbers(device, Numbers(9, 0));
    auto weight = numbers(device, weights);
    auto bin = integers(device, at.bin);
    qn::Kernel f = [&]() -> F64 {
      for (auto e : y) y[e] = z[e];
      for (auto i : x) atomic_mul(y[bin[i]], x[i]);
      Var<double> sum = 0.0;
      for (auto e : y) sum += weight[e] * y[e] * y[e] + y[e];
      return sum;
    };
    x.dual().copy_from(vx);
    z.dual().copy_from(vz);
    const auto r = qn::hessian_vector(f, qn::wrt(x, z))();

    // f = Σ w P² + P: its gradient (2 w P + 1) P', along v 2 w Ṗ P' + (2 w P + 1) Ṗ'
    double value = 0;
    Numbers of_x(at.x.size()), of_z(9), along_x(at.x.size()), along_z(9);
    for (int e = 0; e < 9; e++) {
      std::vector<int> members = {-1};
      for (int k = 0; k < int(at.x.size()); k++)
        if (at.bin[size_t(k)] == e) members.push_back(k);
      const auto direction = [&](int k) { return k == -1 ? vz[size_t(e)] : vx[size_t(k)]; };
      const double w = weights[size_t(e)], product = at.of(e);
      value += w * product * product + product;
      double tangent = 0;
      for (int k : members) tangent += direction(k) * at.without(e, k);
      for (int k : members) {
        double changed = 0;
        for (int j : members) changed += j == k ? 0 : direction(j) * at.without(e, k, j);
        const double slope = at.without(e, k);
        (k == -1 ? of_z[size_t(e)] : of_x[size_t(k)]) = (2 * w * product + 1) * slope;
        (k == -1 ? along_z[size_t(e)] : along_x[size_t(k)]) =
            2 * w * tangent * slope + (2 * w * product + 1) * changed;
      }
    }
    CHECK(r.value() == Approx(value));
    check_close(qn::to_vector(x.grad()), of_x);
    check_close(qn::to_vector(z.grad()), of_z);
    check_close(qn::to_vector(x.grad().dual()), along_x);
    check_close(qn::to_vector(z.grad().dual()), along_z);
    CHECK(qn::value_and_grad(f, qn::wrt(x, z))().value() == Approx(value));
    check_close(qn::to_vector(x.grad()), of_x);
    check_close(qn::to_vector(z.grad()), of_z);
  });
}

namespace {
/// A number with derivatives along two directions, and along both.
struct Twice {
  double v = 0, a = 0, b = 0, ab = 0;
  friend Twice operator+(Twice x, Twice y) {
    return {x.v + y.v, x.a + y.a, x.b + y.b, x.ab + y.ab};
  }
  friend Twice operator*(Twice x, Twice y) {
    return {x.v * y.v, x.a * y.v + x.v * y.a, x.b * y.v + x.v * y.b,
            x.ab * y.v + x.a * y.b + x.b * y.a + x.v * y.ab};
  }
};
}  // namespace

TEST_CASE("second derivatives of products in rounds, of one field and what was read of it") {
  on_every_device([](const qn::Device& device) {
    const Numbers at = {0.5, -2, 0, 1.5, 3}, along = {1, -2, 3, 0.5, -1};
    auto x = numbers(device, at), y = numbers(device, {2, 3});
    qn::Field<double, 0> all{device};
    all.fill(1.0);
    qn::Kernel f = [&]() -> F64 {
      Var<int> r = 0;
      While(r < 3) {
        for (auto i : x) atomic_mul(y[i % 2], x[i] + cast<double>(r));
        r = r + 1;
      }
      for (auto i : x) atomic_mul(all(), x[i] * x[i] + y[i % 2]);
      return all() + y[0] * y[1];
    };
    x.dual().copy_from(along);
    const auto h = qn::hessian_vector(f, qn::wrt(x))();
    for (size_t k = 0; k < at.size(); k++) {
      std::vector<Twice> of;
      for (size_t j = 0; j < at.size(); j++) of.push_back({at[j], j == k ? 1.0 : 0.0, along[j], 0});
      Twice p[2] = {{2, 0, 0, 0}, {3, 0, 0, 0}}, product = {1, 0, 0, 0};
      for (int r = 0; r < 3; r++)
        for (size_t j = 0; j < at.size(); j++) p[j % 2] = p[j % 2] * (of[j] + Twice{double(r)});
      for (size_t j = 0; j < at.size(); j++) product = product * (of[j] * of[j] + p[j % 2]);
      const Twice result = product + p[0] * p[1];
      CHECK(h.value() == Approx(result.v));
      CHECK(x.grad().at(int(k)) == Approx(result.a).epsilon(1e-12));
      CHECK(x.grad().dual().at(int(k)) == Approx(result.ab).epsilon(1e-12));
    }
  });
}

TEST_CASE("a tape goes back through products and through their tangents, at zeros too") {
  on_every_device([](const qn::Device& device) {
    const Factors& at = elements;
    const Numbers weights = drawn(9, 4), vx = drawn(at.x.size(), 5), vy = drawn(9, 6);
    auto x = numbers(device, at.x), y = numbers(device, at.y), z = numbers(device, {0});
    auto weight = numbers(device, weights);
    auto bin = integers(device, at.bin);
    qn::Kernel multiply = [&] {
      for (auto i : x) atomic_mul(y[bin[i]], x[i]);
    };
    qn::Kernel measured = [&](qn::Field<double> tangent) {
      for (auto e : y) z[0] += weight[e] * tangent[e];
    };
    x.dual().copy_from(vx);
    y.dual().copy_from(vy);
    auto push = qn::jvp(multiply);
    z.grad().fill(1.0);
    qn::Tape tape;
    push();
    measured(y.dual());
    tape.backward();
    Numbers of_x(at.x.size()), of_y(9), of_vx(at.x.size()), of_vy(9);
    for (int e = 0; e < 9; e++) {
      std::vector<int> members = {-1};
      for (int k = 0; k < int(at.x.size()); k++)
        if (at.bin[size_t(k)] == e) members.push_back(k);
      for (int k : members) {
        double changed = 0;
        for (int j : members)
          if (j != k) changed += (j == -1 ? vy[size_t(e)] : vx[size_t(j)]) * at.without(e, k, j);
        (k == -1 ? of_y[size_t(e)] : of_x[size_t(k)]) = weights[size_t(e)] * changed;
        (k == -1 ? of_vy[size_t(e)] : of_vx[size_t(k)]) = weights[size_t(e)] * at.without(e, k);
      }
    }
    check_close(qn::to_vector(x.grad()), of_x);
    check_close(qn::to_vector(y.grad()), of_y);
    check_close(qn::to_vector(x.dual().grad()), of_vx);
    check_close(qn::to_vector(y.dual().grad()), of_vy);
  });
}

TEST_CASE("a launch of products is gone back through again and again") {
  on_every_device([](const qn::Device& device) {
    auto x = numbers(device, {2, 0, -3}), y = numbers(device, {5});
    qn::Kernel multiply = [&] {
      for (auto i : x) atomic_mul(y[0], x[i]);
    };
    qn::Kernel shift = [&] {
      for (auto e : y) y[e] += 2.0;
    };
    y.grad().fill(1.0);
    qn::Tape tape;
    for (int k = 0; k < 2; k++) {
      multiply();
      shift();
    }
    tape.backward();
    // (5 p + 2) p + 2 with p = x0 x1 x2 = 0
    CHECK(y.at(0) == 2);
    CHECK(qn::to_vector(x.grad()) == Numbers{0, 2.0 * 2 * -3, 0});
    CHECK(y.grad().at(0) == 0);
  });
}

TEST_CASE("products whose derivative is not known are refused at their line") {
  const qn::Device device("cpu");
  auto x = numbers(device, {1, 2, 3}), y = numbers(device, {9, 9, 9});
  int line = 0;
  const auto refused = [&](auto& kernel, const char* what) {
    for (const std::string& found :
         {message_of([&] { qn::vjp(kernel)(); }), message_of([&] { qn::jvp(kernel)(); })}) {
      INFO(found);
      CHECK(found.find("products.cpp:" + std::to_string(line) + ": ") != std::string::npos);
      CHECK(found.find(what) != std::string::npos);
    }
  };
  qn::Kernel tested = [&] {
    for (auto i : x) {
      If(x[i] < atomic_load(y[0])) {
        line = __LINE__ + 1;
        atomic_mul(y[0], x[i]);
      }
    }
  };
  refused(tested, "what is combined depends on what is read at");
  qn::Kernel changed = [&] {
    for (auto i : x) {
      line = __LINE__ + 1;
      atomic_mul(y[0], x[i]);
      x[i] = 0.0;
    }
  };
  refused(changed, "which the loop changes at");
  qn::Kernel both = [&] {
    for (auto i : x) {
      line = __LINE__ + 1;
      atomic_mul(y[i % 2], x[i]);
      atomic_add(y[i % 3], x[i]);
    }
  };
  refused(both,
          "an atomic mul of floats has no derivative here: the loop changes the same elements");
  qn::Kernel with_least = [&] {
    for (auto i : x) {
      line = __LINE__ + 1;
      atomic_mul(y[i % 2], x[i]);
      atomic_min(y[i % 3], x[i]);
    }
  };
  refused(with_least, "the loop changes the same elements otherwise");
  qn::Field<int> count{device, {1}};
  qn::Kernel numbered = [&] {
    for (auto i : x) {
      I32 place = atomic_add(count[0], 1);
      line = __LINE__ + 1;
      atomic_mul(y[0], x[i] * cast<double>(place));
    }
  };
  refused(numbered, "what is combined follows from what is changed at");
  qn::Kernel old = [&] {
    for (auto i : x) {
      line = __LINE__ + 1;
      F64 before = atomic_mul(y[0], x[i]);
      x[i] = before;
    }
  };
  refused(old, "the old value of an atomic mul");
}

TEST_CASE("what else takes no products: fields that overlap, trees, strict kernels") {
  const qn::Device device("cpu");
  auto all = numbers(device, {1, 2, 3, 9}), other = numbers(device, {9});
  auto x = all.slice(0, 0, 3);
  qn::Kernel multiply = [](qn::Field<double> from, qn::Field<double> to) {
    for (auto i : range(3)) atomic_mul(to[to.dim(0) - 1], from[i]);
  };
  auto push = qn::jvp(multiply);
  all.dual().fill(5.0);
  push(x, other);
  CHECK(other.at(0) == 54);
  CHECK(other.dual().at(0) == Approx(9 * 5.0 * (6 + 3 + 2)));
  CHECK(message_of([&] { push(x, all); }).find("overlap") != std::string::npos);

  qn::Tree<1> tree{device, {qn::pointer(64), qn::bitmasked(8)}};
  auto sparse = tree.field<double>();
  sparse.set(3, 2.0);
  qn::Kernel on_tree = [&] {
    for (auto i : x) atomic_mul(sparse[3], x[i]);
  };
  CHECK(message_of([&] { qn::vjp(on_tree)(); }).find("is on a tree") != std::string::npos);
  CHECK(message_of([&] { qn::jvp(on_tree)(); }).find("is on a tree") != std::string::npos);

  int line = 0;
  qn::Kernel strict{[&] {
                      line = __LINE__ + 1;
                      for (auto i : x) atomic_mul(other[0], x[i]);
                    },
                    {.strict = true}};
  for (const std::string& found :
       {message_of([&] { qn::vjp(strict)()(); }), message_of([&] { qn::jvp(strict)(); })}) {
    INFO(found);
    CHECK(found.find("products.cpp:" + std::to_string(line) + ": ") != std::string::npos);
    CHECK(found.find("strict") != std::string::npos);
  }
}
