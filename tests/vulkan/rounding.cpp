// What the rounding probe found.
#include "backends/vulkan/rounding.h"

#include <cmath>

#include "tests/vulkan/support.h"

using namespace quern;
using namespace quern::ir;
using test::Buffer;
using test::Program;

TEST_CASE("the rounding probe says of fma what fma does") {
  runtime::Driver& driver = test::driver("vulkan");
  // a·b − round(a·b): 0 where the product was rounded first
  for (Type t : {Type::f32, Type::f64}) {
    std::string type(name(t));
    Program p(driver, test::serial("%p = arg<64> : address\n%a = arg<72> : " + type +
                                       "\n%c = arg<80> : " + type +
                                       "\n%f = fma %a, %a, %c : " + type + "\nwrite<1> %p, %f",
                                   " modes=strict,contract"));
    int bits = t == Type::f32 ? 12 : 27;
    double a = 1 + std::ldexp(1.0, -bits);
    Buffer out(driver, 8);
    double product = t == Type::f32 ? double(float(a) * float(a)) : a * a;
    p.entry(0, out).entry(1, bits_of_real(a, t)).entry(2, bits_of_real(-product, t)).run();
    Bits got = truncate(out.first<uint64_t>(), t);
    bool fused = (t == Type::f32 ? f32_of(got) : f64_of(got)) == std::ldexp(1.0, -2 * bits);
    const auto& exact = test::target(driver).traits.fma_exact;
    CHECK(exact[t == Type::f64] == fused);
  }
}

TEST_CASE("strict mode is refused only for a stated reason") {
  runtime::Driver& driver = test::driver("vulkan");
  runtime::Target t = test::target(driver);
  std::string found = t.strict_refusal;
  t.strict_refusal = "not measured";
  vulkan::measure_rounding(driver, test::compiler(driver), t);
  CHECK(t.strict_refusal == found);
  if (!found.empty()) CHECK(found.find(t.device) != std::string::npos);
}
