#include "quern/runtime/device.h"

#include <cstdlib>
#include <cstring>

#include "quern/runtime/storage.h"
#include "tests/catch.h"

using namespace quern;
using runtime::Device;
using runtime::Storage;

namespace {
std::string message(auto f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}
constexpr Loc here{"user.cpp", 42};
const std::vector<ir::Storage> floats = {{ir::Type::f32, ir::Type::f32}};
}  // namespace

TEST_CASE("a device that is not there is an error that says what is", "[cpu]") {
  std::string text = message([] { Device::open("cuda9", here); });
  CHECK_THAT(text, contains("user.cpp:42"));
  CHECK_THAT(text, contains("cuda9"));
  CHECK_THAT(text, contains("cpu"));
  CHECK_THAT(message([] { Device::open("cpu:7", here); }), contains("cpu has 1 device"));
  CHECK_THAT(message([] { Device::open("cpu:x", here); }), contains("number"));
  CHECK_THAT(message([] { Device::open("", here); }), contains("no device ''"));
}

TEST_CASE("opening a device twice gives the same one", "[cpu]") {
  CHECK(Device::open("cpu") == Device::open("cpu"));
  CHECK(Device::open("cpu") == Device::open("cpu:0"));
  CHECK(Device::open("cpu") != Device::open("interpreter"));
}

TEST_CASE("QUERN_DEVICE chooses the standard device, and a wrong name is refused") {
  const char* old = std::getenv("QUERN_DEVICE");
  std::string kept = old ? old : "";
  setenv("QUERN_DEVICE", "interpreter", 1);
  CHECK(Device::standard()->name() == "interpreter");
  setenv("QUERN_DEVICE", "gpu", 1);
  CHECK_THAT(message([] { Device::standard(); }), contains("QUERN_DEVICE"));
  if (old)
    setenv("QUERN_DEVICE", kept.c_str(), 1);
  else
    unsetenv("QUERN_DEVICE");
}

TEST_CASE("settings of the CPU's threads that mean nothing are refused", "[cpu]") {
  auto refused = [](const char* name, std::initializer_list<const char*> values,
                    const std::string& because) {
    const char* old = std::getenv(name);
    std::string kept = old ? old : "";
    for (const char* wrong : values) {
      setenv(name, wrong, 1);
      CHECK_THAT(message([] { Device::open("cpu"); }), contains(name + (" is '" + because)));
    }
    if (old)
      setenv(name, kept.c_str(), 1);
    else
      unsetenv(name);
  };
  refused("QUERN_THREADS", {"many", "0", "-2", "3x", "1000000"}, "");
  refused("QUERN_CPU_THREADING", {"tbb", "OpenMP", "pool "}, "");
  refused("QUERN_CPU_THREADING", {"openmp"}, "openmp', but this program has no OpenMP runtime");
  CHECK(Device::open("cpu")->name() == "cpu");
}

TEST_CASE("QUERN_TIME_LIMIT that is no time, or that a device cannot keep, is refused",
          "[cpu][vulkan]") {
  const char* old = std::getenv("QUERN_TIME_LIMIT");
  std::string kept = old ? old : "";
  for (const char* wrong : {"soon", "-2", "3x", "1e99", "nan"}) {
    setenv("QUERN_TIME_LIMIT", wrong, 1);
    const std::string text = message([] { Device::open("cpu", here); });
    CHECK_THAT(text, contains("QUERN_TIME_LIMIT is '" + std::string(wrong)));
    CHECK_THAT(text, contains("user.cpp:42"));
  }
  setenv("QUERN_TIME_LIMIT", "7.5", 1);
  CHECK(Device::open("cpu")->name() == "cpu");
  CHECK_THAT(message([] { Device::open("vulkan", here); }), contains("cannot be ended"));
  if (old)
    setenv("QUERN_TIME_LIMIT", kept.c_str(), 1);
  else
    unsetenv("QUERN_TIME_LIMIT");
}

TEST_CASE("storage is zeroed, sized in 64 bits, and refuses shapes that make no sense",
          "[cpu][vulkan]") {
  for (const char* name : {"cpu", "interpreter", "vulkan"}) {
    auto device = Device::open(name);
    Storage s(device, floats, {3, 5}, here);
    CHECK(s.size() == 15);
    CHECK(s.stride(0, 0) == 20);
    CHECK(s.stride(0, 1) == 4);
    std::vector<float> v(15, 1.0f);
    s.read(v.data(), 0, 15);
    CHECK(v == std::vector<float>(15, 0.0f));
    v[7] = 3;
    s.write(v.data(), 0, 15);
    float one = 0;
    s.read(&one, 7, 1);
    CHECK(one == 3.0f);
    Storage none(device, floats, {0, 5}, here);
    CHECK(none.size() == 0);
    Storage scalar(device, floats, {}, here);
    CHECK(scalar.size() == 1);
    CHECK_THAT(message([&] { Storage(device, floats, {4, -1}, here); }), contains("(4, -1)"));
    CHECK_THAT(message([&] { Storage(device, floats, {1ll << 40, 1ll << 40}, here); }),
               contains("2^63"));
    // More than any machine has: refused with the size, and nothing is lost.
    std::string huge = message([&] { Storage(device, floats, {1ll << 50}, here); });
    CHECK_THAT(huge, contains("user.cpp:42"));
    CHECK_THAT(huge, contains(std::to_string(4ll << 50)));
    Storage after(device, floats, {8}, here);
    CHECK(after.size() == 8);
  }
}

TEST_CASE("fill writes every element of every width", "[cpu][vulkan]") {
  for (const char* name : {"cpu", "interpreter", "vulkan"}) {
    auto device = Device::open(name);
    auto check = [&]<class T>(ir::Type type, T value) {
      for (int n : {0, 1, 3, 1000, 70001}) {
        Storage s(device, {{type, type}}, {n}, here);
        s.fill(&value);
        std::vector<T> v(static_cast<size_t>(n));
        s.read(v.data(), 0, n);
        CHECK(v == std::vector<T>(static_cast<size_t>(n), value));
      }
    };
    check(ir::Type::u8, uint8_t(0xa5));
    check(ir::Type::u16, uint16_t(0x1234));
    check(ir::Type::f32, 1.5f);
    check(ir::Type::f64, 3.141592653589793);
    check(ir::Type::u64, uint64_t(0x0123456789abcdef));
  }
}

TEST_CASE("swap exchanges memory only between equals; a released storage names the place",
          "[cpu]") {
  auto device = Device::open("cpu");
  Storage a(device, floats, {4}, here), b(device, floats, {4}, here), c(device, floats, {5}, here);
  Storage d(device, {{ir::Type::i32, ir::Type::i32}}, {4}, here);
  const float one = 1;
  a.fill(&one);
  a.swap(b, here);
  float v = 0;
  b.read(&v, 0, 1);
  CHECK(v == 1.0f);
  CHECK_THAT(message([&] { a.swap(c, here); }), contains("(4) and (5)"));
  CHECK_THAT(message([&] { a.swap(d, here); }), contains("element types"));
  a.release({"user.cpp", 99});
  CHECK_THAT(message([&] { a.swap(b, here); }), contains("user.cpp:99"));
  CHECK_THAT(message([&] { a.swap(b, here); }), contains("user.cpp:42"));
  const std::string twice = message([&] { a.release({"user.cpp", 100}); });
  CHECK_THAT(twice, contains("user.cpp:100: "));
  CHECK_THAT(twice, contains("user.cpp:99"));
}

TEST_CASE("values are formatted as C++ would print them") {
  using runtime::format_values;
  using T = ir::Type;
  const T types[] = {T::i32, T::f32, T::b1, T::u8, T::i64};
  const uint64_t values[] = {ir::bits_of_int(-5, T::i32), ir::bits_of(0.1f), 1, 255,
                             ir::bits_of_int(-1, T::i64)};
  CHECK(format_values("{} {} {} {} {}", types, values) == "-5 0.1 true 255 -1");
  CHECK(format_values("{{}} {}", types, values) == "{} -5");
  CHECK(format_values("none", types, values) == "none");
  CHECK(format_values("{} {}", std::span(types).first(1), std::span(values).first(1)) == "-5 ");
}
