// The tool that checks gradients: what it lets pass, and what it finds.
#include <quern/autodiff.h>
#include <quern/autodiff/check.h>

#include <cmath>

#include "tests/autodiff/numbers.h"
#include "tests/end_to_end/devices.h"
#include "tests/message_of.h"

using namespace qn::lang;
using qn::test::message_of;

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

TEST_CASE("what cannot be checked is refused") {
  const qn::Device device("cpu");
  qn::Field<float> x{device, {2}};
  auto y = numbers(device, {1, 2});
  qn::Kernel single = [&]() -> F32 { return x[0] * x[1]; };
  CHECK(message_of([&] { qn::check_gradient(single)(); }).find("of less than 64 bits") !=
        std::string::npos);
  qn::Kernel no_output = [&] {
    for (auto i : y) check(y[i] > 0.0, "positive");
  };
  CHECK(message_of([&] { qn::check_gradient(no_output)(); }).find("neither yields nor writes") !=
        std::string::npos);
  CHECK(message_of([&] {
          qn::check_gradient([] { return 0.0; }, [] {}, qn::wrt(y, y.slice(0, 0, 1)));
        }).find("share elements") != std::string::npos);
}
