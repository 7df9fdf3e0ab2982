// The tool that checks gradients: what it lets pass, and what it finds.
#include <quern/autodiff.h>
#include <quern/autodiff/check.h>

#include <cmath>

#include "tests/autodiff/numbers.h"
#include "tests/end_to_end/devices.h"

using namespace qn::lang;

TEST_CASE("checked gradients of kernels pass, with remainders of second order") {
  on_every_device([](const qn::Device& device) {
    auto x = numbers(device, {0.3, 1.2, -0.7, 2}), y = numbers(device, {1, 2, 3, 4});
    qn::Field<double> bins{device, {2}};
    qn::Field<int> n{device, {4}};
    n.copy_from(std::vector<int>{0, 1, 2, 5});
    qn::Kernel f = [&](F64 a, qn::Field<double> out, I32 k) {
      Var<double> sum = 0;
      for (auto i : x) {
        Var<double> p = x[i];
        for ([[maybe_unused]] auto r : range(n[i])) p = sin(p * a) + y[i];
        out[i] = p;
        atomic_add(bins[i % 2], p * x[i] * cast<double>(k));
        y[i] = p * p;
        sum += exp(x[i]);
      }
      return result(Val<double>(sum), k);
    };
    qn::Field<double> out{device, {4}};
    const qn::GradientReport r = qn::check_gradient(f)(0.8, out, 3);
    INFO(r.text());
    CHECK(r.passed);
    CHECK(r.has_products);
    CHECK(r.product_error < 1e-12);
    CHECK(r.worst_error < 1e-7);
    REQUIRE(r.inputs.size() == 4);  // x, y, bins and a; out is only written
    int curved = 0;
    for (const auto& input : r.inputs) {
      CHECK(input.where == "");
      CHECK(input.steps.size() == input.remainders.size());
      if (std::isnan(input.slope)) continue;  // f is linear in it
      CHECK(input.slope == Approx(2).margin(0.1));
      curved++;
    }
    CHECK(curved >= 2);
    CHECK(qn::to_vector(x) == std::vector<double>{0.3, 1.2, -0.7, 2});  // as they were
    CHECK(qn::to_vector(y) == std::vector<double>{1, 2, 3, 4});
    CHECK(qn::to_vector(bins) == std::vector<double>{0, 0});
    CHECK(qn::to_vector(x.dual()) == std::vector<double>(4, 0.0));  // of nobody's direction
  });
}

TEST_CASE("a wrong gradient is found, and where") {
  on_every_device([](const qn::Device& device) {
    std::vector<double> at;
    for (int k = 0; k < 37; k++) at.push_back(0.1 * k - 1.7);
    auto x = numbers(device, at), weight = numbers(device, {3});
    qn::Kernel energy = [&]() -> F64 {
      Var<double> sum = 0;
      for (auto i : x) sum += weight[0] * x[i] * x[i] * x[i];
      return sum;
    };
    double wrong_by = 0;
    qn::Kernel by_hand = [&](qn::Field<double> gradient, F64 w, F64 wrong) {
      for (auto i : x) {
        gradient[i] = 3.0 * w * x[i] * x[i];
        If(i == 23) { gradient[i] = 3.0 * w * x[i] * x[i] * (1.0 + wrong); }
      }
    };
    const auto value = [&] { return double(energy()); };
    const auto check = [&] {
      return qn::check_gradient(value, [&] { by_hand(x.grad(), 3.0, wrong_by); }, qn::wrt(x));
    };
    const qn::GradientReport right = check();
    INFO(right.text());
    CHECK(right.passed);
    CHECK(right.inputs.at(0).slope == Approx(2).margin(0.1));
    CHECK(right.text().find("the gradient passed") == 0);

    for (double by : {1.0, 1e-2, 1e-4}) {
      wrong_by = by;
      const qn::GradientReport report = check();
      INFO(report.text());
      CHECK(!report.passed);
      CHECK(report.inputs.at(0).slope == Approx(1).margin(0.2));
      CHECK(report.inputs.at(0).where.find("field 0[23]: the gradient says") == 0);
      CHECK(report.text().find("did not pass") != std::string::npos);
    }
    CHECK(qn::to_vector(x) == at);

    // One of two fields: 0 in place of Σ x³.
    qn::Kernel forgets = [&](qn::Field<double> gradient) {
      for (auto i : x) gradient[i] = 9.0 * x[i] * x[i];
    };
    const qn::GradientReport half =
        qn::check_gradient(value, [&] { forgets(x.grad()); }, qn::wrt(x, weight));
    INFO(half.text());
    CHECK(!half.passed);
    CHECK(half.inputs.at(0).passed);
    CHECK(!half.inputs.at(1).passed);
    CHECK(half.inputs.at(1).error == Approx(1));
    CHECK(half.inputs.at(1).where.find("field 1[0]: the gradient says 0, ") == 0);
  });
}

TEST_CASE("a kink has no gradient to check, and a tape's is checked as any other") {
  on_every_device([](const qn::Device& device) {
    auto x = numbers(device, {1, -2, 0, 3}), y = numbers(device, {0, 0, 0, 0});
    qn::Kernel kink = [&]() -> F64 {
      Var<double> sum = 0;
      for (auto i : x) sum += abs(x[i]) * 2.0;
      return sum;
    };
    const qn::GradientReport r = qn::check_gradient(kink)();
    INFO(r.text());
    CHECK(!r.passed);
    CHECK(r.inputs.at(0).where.find("[2]: ") != std::string::npos);

    qn::Field<double, 0> loss{device};
    qn::Kernel first = [&] {
      for (auto i : x) y[i] = sin(x[i]);
    };
    qn::Kernel second = [&] {
      for (auto i : y) atomic_add(loss(), y[i] * y[i]);
    };
    const auto value = [&] {
      loss.fill(0.0);
      first();
      second();
      return loss.at({});
    };
    const auto gradient = [&] {
      loss.fill(0.0);
      loss.grad().fill(1.0);
      qn::Tape tape;
      first();
      second();
      tape.backward();
    };
    const qn::GradientReport taped = qn::check_gradient(value, gradient, qn::wrt(x));
    INFO(taped.text());
    CHECK(taped.passed);
  });
}

namespace {

qn::Field<float> floats(const qn::Device& device, int count) {
  std::vector<float> at;
  for (int k = 0; k < count; k++) at.push_back(0.32f + 0.05f * float(k % 29));
  qn::Field<float> x{device, {count}};
  x.copy_from(at);
  return x;
}

/// It passes, and remainders of what is curved fall as those of no wrong gradient do.
template <class Kernel, class... A>
void expect_right(const char* what, const Kernel& kernel, A... a) {
  for (uint32_t seed : {1u, 2u, 3u}) {
    const qn::GradientReport r = qn::check_gradient(kernel, seed)(a...);
    INFO(what << ", seed " << seed << ": " << r.text());
    CHECK(r.passed);
    CHECK(r.worst_error < 5e-3);
    CHECK(r.product_error < 1e-5);
    for (const auto& input : r.inputs) {
      CHECK((std::isnan(input.slope) || input.slope > 1.7));
      CHECK(input.unseen < 0.03);
      CHECK(input.steps.at(0) == 0.125);
    }
  }
}

}  // namespace

TEST_CASE("checked gradients of kernels of floats pass") {
  on_every_device([](const qn::Device& device) {
    auto x = floats(device, 37);
    const std::vector<float> at = qn::to_vector(x);
    qn::Field<float> y{device, {37}};
    y.fill(0.75f);

    qn::Kernel polynomial = [&]() -> F32 {
      Var<float> sum = 0.0f;
      for (auto i : x) sum += 1.0f + x[i] * (2.0f - x[i] * (0.5f + 3.0f * x[i] * y[i]));
      return sum;
    };
    expect_right("polynomial", polynomial);

    qn::Kernel waves = [&](F32 a) {
      for (auto i : x) y[i] = sin(a * x[i]) * exp(-x[i]) + tanh(y[i]) / cos(0.3f * x[i]);
    };
    expect_right("waves", waves, 1.7f);

    qn::Kernel loop = [&](I32 rounds) {
      for (auto i : x) {
        Var<float> p = x[i];
        for ([[maybe_unused]] auto r : range(rounds)) p = sin(p) + 0.5f * y[i] * p;
        y[i] = p;
      }
    };
    expect_right("loop", loop, 7);

    qn::Kernel roots = [&]() -> F32 {
      Var<float> sum = 0.0f;
      for (auto i : x) {
        Var<float> r = 1.0f;
        While(abs(r * r - x[i]) > 1e-6f * x[i]) { r = 0.5f * (r + x[i] / r); }
        sum += r;
      }
      return sum;
    };
    expect_right("roots", roots);

    // Kinks at 1/4 and 2, of which the nearest x are 0.07 and 0.28 away, and a jump at 0.
    qn::Kernel kinks = [&]() -> F32 {
      Var<float> sum = 0.0f;
      for (auto i : x)
        sum += abs(x[i] - 0.25f) * x[i] + min(x[i], 2.0f) + select(x[i] < 0.0f, 1.0f, x[i]);
      return sum;
    };
    expect_right("kinks", kinks);

    qn::Kernel linear = [&] {
      for (auto i : x) y[i] += 3.0f * x[i];
    };
    expect_right("linear", linear);

    qn::Field<double> wide{device, {37}};
    wide.fill(0.5);
    qn::Kernel mixed = [&](F64 b) -> F64 {
      Var<double> sum = 0;
      for (auto i : x) {
        wide[i] = wide[i] * b + cast<double>(x[i] * x[i] * x[i]);
        sum += sqrt(1.0 + wide[i]);
      }
      return sum;
    };
    expect_right("mixed", mixed, 1.25);

    CHECK(qn::to_vector(x) == at);
  });
}

TEST_CASE("a gradient of floats that is off by 1 % is found, and where") {
  on_every_device([](const qn::Device& device) {
    auto x = floats(device, 37);
    const std::vector<float> at = qn::to_vector(x);
    qn::Kernel energy = [&]() -> F32 {
      Var<float> sum = 0.0f;
      for (auto i : x) sum += sin(2.0f * x[i]) * x[i];
      return sum;
    };
    qn::Kernel by_hand = [&](qn::Field<float> gradient, F32 wrong) {
      for (auto i : x) {
        F32 right = 2.0f * cos(2.0f * x[i]) * x[i] + sin(2.0f * x[i]);
        gradient[i] = select(i == 23, right * (1.0f + wrong), right);
      }
    };
    const auto check = [&](float wrong_by, uint32_t seed) {
      return qn::check_gradient([&] { return double(energy()); },
                                [&] { by_hand(x.grad(), wrong_by); }, qn::wrt(x), seed);
    };
    for (uint32_t seed : {1u, 2u, 3u}) {
      const qn::GradientReport right = check(0, seed);
      INFO(right.text());
      CHECK(right.passed);
      for (float wrong_by : {-1.0f, 0.1f, 0.01f}) {
        const qn::GradientReport report = check(wrong_by, seed);
        INFO(report.text());
        CHECK(!report.passed);
        CHECK(report.inputs.at(0).slope < 1.5);
        CHECK(report.inputs.at(0).where.find("field 0[23]: the gradient says") == 0);
      }
    }
    CHECK(qn::to_vector(x) == at);

    const auto cube = [&](float back, float forward) {
      qn::Func plain = [](F32 a) { return Val<float>(a * a * a); };
      auto f = qn::differentiable(
          plain, qn::pullback([=](F32 a, F32, F32 adjoint) { return back * adjoint * a * a; }),
          qn::pushforward([=](F32 a, F32, F32 tangent) { return forward * tangent * a * a; }));
      qn::Kernel k = [&]() -> F32 {
        Var<float> sum = 0.0f;
        for (auto i : x) sum += f(x[i]);
        return sum;
      };
      return qn::check_gradient(k)();
    };
    CHECK(cube(3.0f, 3.0f).passed);
    const qn::GradientReport both = cube(3.03f, 3.03f);
    INFO(both.text());
    CHECK(!both.passed);
    CHECK(both.product_error < 1e-5);
    CHECK(both.inputs.at(0).slope < 1.5);
    CHECK(both.inputs.at(0).error > 3e-3);  // 1 %, less what noise makes uncertain
    CHECK(both.inputs.at(0).error < 0.0101);
    const qn::GradientReport forward = cube(3.0f, 3.03f);
    INFO(forward.text());
    CHECK(!forward.passed);
    CHECK(forward.inputs.at(0).passed);
    CHECK(forward.product_error > 1e-3);
  });
}

TEST_CASE("what the noise of floats hides of a gradient is reported") {
  on_every_device([](const qn::Device& device) {
    auto x = floats(device, 8);
    qn::Kernel energy = [&]() -> F32 {
      Var<float> sum = 1e7f;  // whose neighbour is 1e7 + 1
      for (auto i : x) sum += x[i];
      return sum;
    };
    const qn::GradientReport r = qn::check_gradient(energy)();
    INFO(r.text());
    CHECK(r.passed);
    CHECK(r.inputs.at(0).unseen == 1);
    CHECK_THAT(r.text(), contains("errors below 100 % would not show in the noise of f"));
  });
}

TEST_CASE("what cannot be checked is refused") {
  const qn::Device device("cpu");
  qn::Field<qn::half> x{device, {2}};
  auto y = numbers(device, {1, 2});
  int line = 0;
  const auto expect_refused = [&](auto&& check, const char* text) {
    int found = 0;
    CHECK_THAT(error_of(check, &found), contains(text));
    CHECK(found == line);
  };
  qn::Kernel of_halves = [&]() -> F32 { return cast<float>(x[0] * x[1]); };
  expect_refused([&] { line = __LINE__, qn::check_gradient(of_halves)(); },
                 " holds halves, whose rounding hides what a check of gradients looks at: check "
                 "the same code in float or double");
  qn::Kernel of_a_half = [&](qn::Val<qn::half> a) -> F32 { return cast<float>(a); };
  expect_refused([&] { line = __LINE__, qn::check_gradient(of_a_half)(qn::half(1)); }, "is a half");
  qn::Kernel no_output = [&] {
    for (auto i : y) check(y[i] > 0.0, "positive");
  };
  expect_refused([&] { line = __LINE__, qn::check_gradient(no_output)(); },
                 "neither yields nor writes");
  const auto by_both = qn::wrt(y, y.slice(0, 0, 1));
  const auto value = [] { return 0.0; };
  const auto nothing = [] {};
  expect_refused([&] { line = __LINE__, qn::check_gradient(value, nothing, by_both); },
                 "share elements");
}
