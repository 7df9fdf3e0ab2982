// What takes the place of arithmetic that a device has otherwise.
#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "backends/vulkan/interface.h"
#include "ir/passes/lower/legalise.h"
#include "tests/vulkan/support.h"

using namespace quern;
using namespace quern::ir;
using test::Buffer;
using test::Program;

TEST_CASE(
    "f32 is compared and converted by its bits where a device takes subnormal numbers for zeros") {
  runtime::Driver& driver = test::driver("vulkan");
  runtime::Target target = test::target(driver);
  vulkan::Abilities flushing;
  flushing.flushes_f32 = true;
  if (!vulkan::Abilities::parse(target.isa).flushes_f32) target.isa += flushing.text();
  using Limits = std::numeric_limits<float>;
  std::vector<float> some;
  for (float v : {0.0f, Limits::denorm_min(), 3 * Limits::denorm_min(),
                  Limits::min() - Limits::denorm_min(), Limits::min(), 2 * Limits::min(), 1.0f,
                  1.5f, Limits::max(), Limits::infinity(), Limits::quiet_NaN()})
    some.insert(some.end(), {v, -v});
  struct {
    const char* op;
    bool (*of)(float, float);
  } const rows[] = {{"lt", [](float a, float b) { return a < b; }},
                    {"le", [](float a, float b) { return a <= b; }},
                    {"gt", [](float a, float b) { return a > b; }},
                    {"ge", [](float a, float b) { return a >= b; }},
                    {"eq", [](float a, float b) { return a == b; }},
                    {"ne", [](float a, float b) { return a != b; }}};
  std::string body =
      "%p = arg<64> : address\n%a = arg<72> : f32\n%b = arg<80> : f32\n"
      "%eight = constant<8> : i64\n%wide = convert %a : f64\nwrite<1> %p, %wide\n";
  std::string place = "%p";
  for (const auto& [op, of] : rows) {
    const std::string name = op;
    body += "%q" + name + " = offset " + place + ", %eight : address\n%" + name + " = " + name +
            " %a, %b : b1\n%w" + name + " = convert %" + name + " : u64\nwrite<1> %q" + name +
            ", %w" + name + "\n";
    place = "%q" + name;
  }
  Program p(driver, *parse(test::serial(body)), target);
  CHECK(vulkan::runs_on(target.isa, driver.target().isa));
  Buffer out(driver, 56);
  for (float a : some)
    for (float b : some) {
      p.entry(0, out).entry(1, bits_of_real(a, Type::f32)).entry(2, bits_of_real(b, Type::f32));
      p.run();
      const std::vector<uint64_t> got = out.read<uint64_t>();
      INFO(a << ", " << b);
      if (std::isnan(a))
        CHECK(std::isnan(f64_of(got[0])));
      else
        CHECK(got[0] == bits_of(double(a)));
      for (size_t k = 0; k < std::size(rows); k++) {
        INFO(rows[k].op);
        CHECK((got[k + 1] != 0) == rows[k].of(a, b));
      }
    }
}

TEST_CASE(
    "quotients and roots of f32 are of the library where the device's are not exact, in every "
    "mode") {
  runtime::Driver& driver = test::driver("vulkan");
  const auto kernel = parse(test::serial(
      "%p = arg<64> : address\n%a = arg<72> : f32\n%b = arg<80> : f32\n%eight = constant<8> : i64\n"
      "%n = offset %p, %eight : address\n%q = div %a, %b : f32\n%r = sqrt %a : f32\n"
      "write<1> %p, %q\nwrite<2> %n, %r"));
  runtime::Target exact = test::target(driver), inexact = exact;
  exact.traits.div_exact = exact.traits.sqrt_exact = true;
  inexact.traits.div_exact = inexact.traits.sqrt_exact = false;
  const auto length = [&](const runtime::Target& target) {
    auto lowered = clone(*kernel);
    legalise(*lowered, target.traits);
    return test::compiler(driver).listing(*lowered, target, "spirv").size();
  };
  CHECK(length(inexact) > length(exact));
  auto lowered = clone(*kernel);
  legalise(*lowered, inexact.traits);
  Program p(driver, *lowered, inexact);
  Buffer out(driver, 16);
  std::mt19937 random(3);
  for (int k = 0; k < 300; k++) {
    const auto a = std::bit_cast<float>(uint32_t(random() >> 1)),
               b = k % 3 ? float(1 + k) : std::bit_cast<float>(uint32_t(random()));
    if (std::isnan(a) || std::isnan(b)) continue;
    p.entry(0, out).entry(1, bits_of_real(a, Type::f32)).entry(2, bits_of_real(b, Type::f32)).run();
    const std::vector<uint32_t> got = out.read<uint32_t>();
    INFO(a << " / " << b);
    CHECK(got[0] == std::bit_cast<uint32_t>(a / b));
    CHECK(got[2] == std::bit_cast<uint32_t>(std::sqrt(a)));
  }
}

TEST_CASE("bits of narrow integers are shifted to the end of a word before they are counted") {
  runtime::Driver& driver = test::driver("vulkan");
  const auto shifts = [&](const std::string& type) {
    const auto kernel = parse(test::serial("%p = arg<64> : address\n%a = read<1> %p : " + type +
                                           "\n%n = popcount %a : " + type + "\nwrite<1> %p, %n"));
    const std::string text = test::compiler(driver).listing(*kernel, test::target(driver), "spirv");
    const size_t counted = text.find("OpBitCount");
    REQUIRE(counted != std::string::npos);
    return text.substr(0, counted).find("OpShiftLeftLogical") != std::string::npos;
  };
  CHECK(shifts("u8"));
  CHECK(shifts("i16"));
  CHECK(!shifts("u32"));
}
