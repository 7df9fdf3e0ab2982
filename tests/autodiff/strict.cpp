// Strict derivatives: the same bits on every device, or a refusal at the line.
#include <quern/autodiff.h>

#include <bit>
#include <cmath>
#include <random>

#include "tests/end_to_end/devices.h"
#include "tests/message_of.h"

using namespace qn::lang;
using qn::test::message_of;

namespace {

std::vector<uint32_t> bits_of(const qn::Field<float>& field) {
  std::vector<uint32_t> bits;
  for (float v : qn::to_vector(field)) bits.push_back(std::bit_cast<uint32_t>(v));
  return bits;
}

/// Gradients and tangents of sums, minima, maxima, products, rounds and functions of elements.
std::vector<uint32_t> derivatives_on(const qn::Device& device) {
  constexpr int n = 3000;  // more than a block, and no multiple of one
  std::mt19937 random(5);
  std::uniform_real_distribution<float> uniform(0.5f, 1.5f);
  std::vector<float> at(n), along(n);
  for (float& v : at) v = uniform(random);
  for (float& v : along) v = uniform(random) - 1;
  at[7] = at[2900] = 0.25f;  // both are least
  qn::Field<float> x{device, {n}}, y{device, {n}};
  x.copy_from(at);
  x.dual().copy_from(along);
  qn::Kernel f{[&](F32 scale) -> F32 {
                 Var<float> sum = 0.0f, least = 9.0f, most = 0.0f, product = 1.0f;
                 for (auto i : x) {
                   Var<float> t = x[i] * scale;
                   for (auto r : range(1 + i % 5))
                     t = sin(t) * exp(0.3f * x[i]) + 0.1f * cast<float>(r);
                   While(t > 0.7f) { t = t * 0.6f + pow(t, 1.5f) * 0.1f; }
                   y[i] = log(1.0f + t * t) / sqrt(x[i]);
                   sum += t * y[i];
                   atomic_min(least, x[i] * scale);
                   atomic_max(most, t / x[i]);
                   If(i < 40) { atomic_mul(product, x[i]); }
                 }
                 return sum * least + most * product;
               },
               {.strict = true}};
  std::vector<uint32_t> all;
  const auto add = [&](float v) { all.push_back(std::bit_cast<uint32_t>(v)); };
  auto pushed = qn::jvp(f)({1.1f, 0.7f});
  add(pushed.value<0>());
  add(pushed.tangent<0>());
  auto back = qn::vjp(f)(1.1f);
  y.grad().fill(0.25f);
  add(back(1.0f).get<0>());
  for (const auto& field : {y, x.grad(), y.dual()})
    for (uint32_t bits : bits_of(field)) all.push_back(bits);
  for (uint32_t bits : all) CHECK(std::isfinite(std::bit_cast<float>(bits)));
  return all;
}

}  // namespace

TEST_CASE("strict derivatives have the same bits on every device") {
  const std::vector<uint32_t> expected = derivatives_on(qn::Device("interpreter"));
  on_every_device([&](const qn::Device& device) { CHECK(derivatives_on(device) == expected); });
}

TEST_CASE("a strict derivative whose sums have no order is refused at its line") {
  on_every_device([](const qn::Device& device) {
    qn::Field<float> x{device, {8}}, y{device, {8}};
    qn::Field<int> from{device, {8}};
    int line = 0;
    const auto expect_refused = [&](auto&& f) {
      const std::string found = message_of(f);
      INFO(found);
      CHECK(found.find("strict.cpp:" + std::to_string(line) + ": ") != std::string::npos);
      CHECK(found.find("strict") != std::string::npos);
    };
    qn::Kernel gathered{[&] {
                          for (auto i : y) {
                            line = __LINE__ + 1;
                            y[i] = x[from[i]] * 2.0f;
                          }
                        },
                        {.strict = true}};
    expect_refused([&] { qn::vjp(gathered)()(); });
    CHECK(message_of([&] {
            qn::vjp(gathered)()();
          }).find("a float atomic add to the adjoints of the field made at ") != std::string::npos);
    CHECK(message_of([&] { qn::jvp(gathered)(); }).empty());
    qn::Kernel least{[&] {
                       for (auto i : x) {
                         line = __LINE__ + 1;
                         atomic_min(y[from[i]], x[i]);
                       }
                     },
                     {.strict = true}};
    expect_refused([&] { qn::jvp(least)(); });
    expect_refused([&] { qn::vjp(least)()(); });
  });
}

TEST_CASE("strict derivatives of elements that one iteration reads, backwards and by pairs") {
  on_every_device([](const qn::Device& device) {
    qn::Field<float> x{device, {4}}, y{device, {2}};
    x.copy_from(std::vector<float>{1, 2, 3, 4});
    qn::Kernel<void(I32)> backwards{[&](I32 n) {
                                      for (auto i : x) x[n - 1 - i] = x[n - 1 - i] * x[n - 1 - i];
                                    },
                                    {.strict = true}};
    x.grad().copy_from(std::vector<float>{1, 10, 100, 1000});
    qn::vjp(backwards)(4)();
    CHECK(qn::to_vector(x) == std::vector<float>{1, 4, 9, 16});
    CHECK(qn::to_vector(x.grad()) == std::vector<float>{2, 40, 600, 8000});
    qn::Kernel<void()> pairs{[&] {
                               for (auto i : y) y[i] = x[2 * i] * x[2 * i + 1];
                             },
                             {.strict = true}};
    x.grad().fill(0);
    y.grad().copy_from(std::vector<float>{1, 10});
    qn::vjp(pairs)()();
    CHECK(qn::to_vector(x.grad()) == std::vector<float>{4, 1, 160, 90});
  });
}
