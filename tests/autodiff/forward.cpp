// Tangents against derivatives that are known, and against differences.
#include <quern/autodiff.h>
#include <quern/else.h>

#include <cmath>
#include <random>

#include "tests/autodiff/numbers.h"
#include "tests/end_to_end/devices.h"
#include "tests/message_of.h"

using namespace qn::lang;
using qn::test::message_of;

TEST_CASE("tangents of straight code") {
  on_every_device([](const qn::Device& device) {
    auto x = numbers(device, {0.3, 1.2, -0.7});
    qn::Field<double> y{device, {3}};
    x.dual().copy_from(std::vector<double>{1, -2, 0.5});
    qn::Kernel f = [&] {
      for (auto i : x) y[i] = sin(x[i]) * exp(2.0 * x[i]) + 3.0 / (x[i] + 4.0);
    };
    qn::jvp(f)();
    const double at[] = {0.3, 1.2, -0.7}, along[] = {1, -2, 0.5};
    for (int k = 0; k < 3; k++) {
      const double v = at[k];
      const double slope =
          std::exp(2 * v) * (std::cos(v) + 2 * std::sin(v)) - 3 / ((v + 4) * (v + 4));
      CHECK(y.at(k) == Approx(std::sin(v) * std::exp(2 * v) + 3 / (v + 4)).epsilon(1e-12));
      CHECK(y.dual().at(k) == Approx(slope * along[k]).epsilon(1e-12));
    }
  });
}

TEST_CASE("tangents go through branches, loops of any length and variables") {
  on_every_device([](const qn::Device& device) {
    // Newton's method for the square root, to the end, and a power by a loop of k rounds.
    auto a = numbers(device, {2.0, 9.0, 0.25});
    qn::Field<int> n{device, {3}};
    n.copy_from(std::vector<int>{0, 3, 5});
    qn::Field<double> root{device, {3}}, power{device, {3}}, part{device, {3}};
    a.dual().fill(1.0);
    qn::Kernel f = [&] {
      for (auto i : a) {
        Var<double> r = 1.0;
        While(abs(r * r - a[i]) > 1e-10 * a[i]) { r = 0.5 * (r + a[i] / r); }
        root[i] = r;
        Var<double> p = 1.0;
        for (auto k : range(n[i])) {
          If(k == 3) { Continue(); }
          p *= a[i];
        }
        power[i] = p;
        If(a[i] > 1.0) { part[i] = a[i] * a[i]; }
        Else { part[i] = -a[i]; }
      }
    };
    qn::jvp(f)();
    const double v[] = {2.0, 9.0, 0.25};
    const int rounds[] = {0, 3, 4};
    for (int k = 0; k < 3; k++) {
      CHECK(root.dual().at(k) == Approx(0.5 / std::sqrt(v[k])).epsilon(1e-9));
      CHECK(power.dual().at(k) == Approx(rounds[k] * std::pow(v[k], rounds[k] - 1)));
      CHECK(part.dual().at(k) == Approx(v[k] > 1 ? 2 * v[k] : -1));
    }
  });
}

TEST_CASE("tangents of what is added, reduced, overwritten and read again") {
  on_every_device([](const qn::Device& device) {
    auto x = numbers(device, {1, 2, 3, 4});
    x.dual().copy_from(std::vector<double>{1, 10, 100, 1000});
    qn::Field<double> bins{device, {2}}, y{device, {4}};
    y.dual().fill(77.0);  // of what is overwritten nothing stays
    qn::Kernel f = [&](F64 scale) {
      Var<double> sum = 0;
      for (auto i : x) {
        y[i] = 5.0;
        atomic_add(bins[i % 2], scale * x[i]);
        sum += x[i] * x[i];
      }
      for (auto i : x) x[i] = x[i] * scale + sum;
      return result(Val<double>(sum), x.dim(0));
    };
    auto push = qn::jvp(f);
    auto r = push({2.0, 1.0});
    CHECK(r.value<0>() == 30);
    CHECK(r.value<1>() == 4);
    const double sum = 2 * (1 + 2 * 10 + 3 * 100 + 4 * 1000);
    CHECK(r.tangent<0>() == sum);
    CHECK(r.tangent<1>() == 0);
    CHECK(bins.dual().at(0) == 2 * 101 + 4);
    CHECK(bins.dual().at(1) == 2 * 1010 + 6);
    const double along[] = {1, 10, 100, 1000};
    for (int k = 0; k < 4; k++) {
      CHECK(y.dual().at(k) == 0);
      CHECK(x.dual().at(k) == along[k] * 2 + (k + 1) + sum);
    }
  });
}

TEST_CASE("tangents of vectors, structures, arrays, halves and casts") {
  on_every_device([](const qn::Device& device) {
    qn::Field<vec3> p{device, {1}};
    qn::Field<float> far{device, {1}};
    p.set(0, {3, 0, 4});
    p.dual().set(0, {1, 7, 2});
    qn::Field<qn::half> h{device, {1}}, twice{device, {1}};
    h.set(0, qn::half(0.5f));
    h.dual().set(0, 1.0f / 3);
    qn::Field<float> stack{device, {1}};
    qn::Kernel f = [&] {
      for (auto i : p) {
        far[i] = length(p[i]);
        twice[i] = h[i] * h[i];
        Var<qn::Array<float, 4>> a;
        for (auto k : range(4)) a[k] = p[i].x * cast<float>(k);
        stack[i] = a[cast<int>(p[i].x)] + cast<float>(cast<double>(p[i].z));
      }
    };
    qn::jvp(f)();
    CHECK(far.dual().at(0) == Approx((3 * 1 + 4 * 2) / 5.0));
    CHECK(twice.dual().at(0) == Approx(1.0 / 3));
    CHECK(stack.dual().at(0) == Approx(3 * 1 + 2));
  });
}

TEST_CASE("tangents equal central differences along random directions") {
  on_every_device([](const qn::Device& device) {
    std::mt19937 random(3);
    std::normal_distribution<double> normal;
    constexpr int n = 40;
    std::vector<double> at, along;
    for (int k = 0; k < n; k++) {
      at.push_back(normal(random));
      along.push_back(normal(random));
    }
    auto x = numbers(device, at);
    qn::Field<double> y{device, {n}};
    qn::Kernel f = [&] {
      for (auto i : range(1, n - 1)) {
        Var<double> s = 0;
        for (auto k : range(-1, 2)) s += sin(x[i + k] * (1.0 + 0.1 * cast<double>(k)));
        y[i] = tanh(s) / (1.0 + x[i] * x[i]);
      }
      for (int t = 0; t < 3; t++) {
        for (auto i : range(1, n - 1)) x[i] = 0.9 * x[i] + 0.1 * y[i] * double(t);
        for (auto i : range(1, n - 1)) y[i] = y[i] + x[i] * x[i - 1];
      }
    };
    const auto run = [&](double h) {
      std::vector<double> moved = at;
      for (int k = 0; k < n; k++) moved[size_t(k)] += h * along[size_t(k)];
      x.copy_from(moved);
      y.fill(0);
      f();
      std::vector<double> out(n);
      y.copy_to(out);
      return out;
    };
    const double h = 1e-3;
    const auto a = run(h), b = run(-h), c = run(2 * h), d = run(-2 * h);
    x.copy_from(at);
    y.fill(0);
    x.dual().copy_from(along);
    y.dual().fill(0);
    qn::jvp(f)();
    for (size_t k = 0; k < n; k++) {
      const double expected = (8 * (a[k] - b[k]) - (c[k] - d[k])) / (12 * h);
      CHECK(y.dual().at(int(k)) == Approx(expected).epsilon(1e-8).margin(1e-8));
    }
  });
}

TEST_CASE("what has no tangent is refused at its line") {
  const qn::Device device("cpu");
  auto x = numbers(device, {1, 2});
  qn::Field<double> y{device, {2}};
  const auto refused = [](auto& kernel, int line, const char* what) {
    const std::string found = message_of([&] { qn::jvp(kernel); });
    INFO(found);
    CHECK(found.find("forward.cpp:" + std::to_string(line) + ": " + what) != std::string::npos);
  };
  int line = 0;
  qn::Kernel last = [&] {
    line = __LINE__ + 1;
    for (auto i : x) atomic_exchange(y[0], x[i]);
  };
  refused(last, line, "an atomic exchange of floats has no tangent");
  qn::Kernel old = [&] {
    line = __LINE__ + 1;
    for (auto i : x) x[i] = atomic_add(y[0], x[i]);
  };
  refused(old, line, "the old value of an atomic add of floats has no tangent");
  qn::Kernel bits = [&] {
    line = __LINE__ + 1;
    for (auto i : x) y[i] = cast<double>(bitcast<int64_t>(x[i]));
  };
  refused(bits, line, "the bits of a float that varies has no tangent");
}
