// What memory holds of a component is a matter of the field: one recording serves all encodings.
#include <cmath>

#include "quern/ir/text.h"
#include "quern/runtime/program.h"
#include "tests/catch.h"

using namespace quern;
using runtime::Device;
using runtime::Storage;

namespace {

constexpr Loc here{"user.cpp", 42};

/// y = x², as memory keeps it; z is what y gives back.
const char* program = R"(quern 1
kernel @square level=structured
binding field rank=1 f32 "x"
binding field rank=1 inexact f32 "y"
binding field rank=1 f32 "z"
body {
  parallel over=0 {(%i: i32)
    %a = load<0.0> %i : f32
    %b = mul %a, %a : f32
    store<1.0> %i, %b
    %c = load<1.0> %i : f32
    store<2.0> %i, %c
    yield
  }
  yield
})";

/// A whole number with the 11 digits of a half, ties to even.
float with_11_digits(float n) {
  if (n == 0) return 0;
  const float unit = std::ldexp(1.0f, std::max(0, std::ilogb(n) - 10));
  return std::nearbyint(n / unit) * unit;
}

std::shared_ptr<Storage> field(const std::shared_ptr<Device>& device, ir::Type in_memory) {
  const std::vector<ir::Storage> components = {{ir::Type::f32, in_memory}};
  return std::make_shared<Storage>(device, components, std::vector<int64_t>{100}, here);
}

}  // namespace

TEST_CASE("one recording serves fields that encode their values otherwise", "[cpu][vulkan]") {
  runtime::Program kernel(ir::parse(program));
  for (const runtime::Backend& b : runtime::backends()) {
    if (b.name != "cpu" && b.name != "interpreter" && b.name != "vulkan") continue;
    auto device = Device::open(std::string(b.name));
    auto x = field(device, ir::Type::f32), z = field(device, ir::Type::f32);
    std::vector<float> values(100), got(100);
    for (int k = 0; k < 100; k++) values[size_t(k)] = float(k);
    x->write(values.data(), 0, 100);
    for (ir::Type in_memory : {ir::Type::f32, ir::Type::f16, ir::Type::f32, ir::Type::u16}) {
      INFO(b.name << " " << ir::name(in_memory));
      auto y = field(device, in_memory);
      CHECK(y->facts().encodings.empty() == (in_memory == ir::Type::f32));
      CHECK(y->components()[0].exact == (in_memory == ir::Type::f32));
      const runtime::Argument arguments[] = {{0, x}, {0, y}, {0, z}};
      kernel.launch(arguments, {}, here);
      z->read(got.data(), 0, 100);
      for (int k = 0; k < 100; k++) {
        const float square = float(k * k);
        CHECK(got[size_t(k)] == (in_memory == ir::Type::f16 ? with_11_digits(square) : square));
      }
    }
    std::vector<uint16_t> kept(100);
    auto y = field(device, ir::Type::u16);
    const runtime::Argument arguments[] = {{0, x}, {0, y}, {0, z}};
    kernel.launch(arguments, {}, here);
    y->read(kept.data(), 0, 100);
    for (int k = 0; k < 100; k++) CHECK(kept[size_t(k)] == k * k);
  }
}

TEST_CASE("a kernel that counts on every value refuses a field that does not keep all", "[cpu]") {
  runtime::Program kernel(ir::parse(program));
  auto device = Device::open("cpu");
  auto exact = field(device, ir::Type::f32), narrow = field(device, ir::Type::f16);
  const runtime::Argument arguments[] = {{0, exact}, {0, exact}, {0, narrow}};
  std::string text;
  try {
    kernel.launch(arguments, {}, here);
  } catch (const Error& e) {
    text = e.what();
  }
  CHECK(text.find("user.cpp:42") != std::string::npos);
  CHECK(text.find("z does not keep every value of its elements exactly") != std::string::npos);
}
