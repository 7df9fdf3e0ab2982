// What only the Vulkan driver has: its loader, staging, the device's abilities, SPIR-V, validation.
#include <algorithm>
#include <cstdlib>

#include "backends/vulkan/api.h"
#include "backends/vulkan/codegen.h"
#include "backends/vulkan/compiler.h"
#include "backends/vulkan/grid.h"
#include "quern/error.h"
#include "tests/catch.h"
#include "tests/vulkan/support.h"

using namespace quern;
using namespace quern::runtime;
using test::Buffer;
using test::expect_usable;
using test::in_child;
using test::message_of;

namespace {

runtime::Driver& driver() { return test::driver("vulkan"); }

std::vector<uint32_t> numbers(uint64_t n) {
  std::vector<uint32_t> v(n);
  for (uint64_t k = 0; k < n; k++) v[k] = uint32_t(k * 2654435761u);
  return v;
}

}  // namespace

// Before any other case of this file opens the loader in this process.
TEST_CASE("a missing loader or driver is a reason, not a failure") {
  std::string why;
  CHECK(vulkan::Instance::create("libno-such-vulkan.so", why) == nullptr);
  CHECK_THAT(why, contains("no Vulkan loader"));
  CHECK_THAT(why, contains("libno-such-vulkan.so"));
  CHECK(vulkan::Instance::create("libc.so.6", why) == nullptr);
  CHECK_THAT(why, contains("no Vulkan 1.3"));
  CHECK(in_child([] {
          setenv("VK_ICD_FILENAMES", "/nonexistent.json", 1);
          setenv("VK_DRIVER_FILES", "/nonexistent.json", 1);
          unsetenv("QUERN_VULKAN_VALIDATION");
          std::string reason;
          auto own = vulkan::Instance::create("libvulkan.so.1", reason);
          if (own && vulkan::adapters(*own, reason).empty()) return reason.empty() ? 1 : 0;
          return own || reason.empty() ? 2 : 0;
        }) == 0);
}

TEST_CASE("workgroups are spread over two axes, and never too many") {
  const uint32_t limits[][2] = {{65535, 65535}, {INT32_MAX, 65535}};  // Mesa's, NVIDIA's
  for (const uint32_t(&most)[2] : limits)
    for (uint32_t group : {1u, 64u, 100u, 1024u})
      for (uint64_t threads :
           {uint64_t(1), uint64_t(65), uint64_t(65535) * 64, uint64_t(65536) * 64,
            (uint64_t(1) << 31) - 1, (uint64_t(1) << 31) + 50974, uint64_t(1) << 50}) {
        INFO(group << " " << threads << " " << most[0]);
        const uint64_t groups = (threads + group - 1) / group;
        const vulkan::Grid strides = vulkan::spread(groups, group, most, true);
        const uint64_t started = uint64_t(strides.x) * strides.y;
        CHECK((strides.x >= 1 && strides.x <= most[0] && strides.y >= 1 && strides.y <= most[1]));
        CHECK(started * group <= ir::abi::max_threads);
        CHECK(started <= groups);
        CHECK(2 * started >= std::min(groups, ir::abi::max_threads / group));
        const vulkan::Grid chunked = vulkan::spread(groups, group, most, false);
        const bool fits = groups <= uint64_t(most[0]) * most[1];
        CHECK((chunked.x > 0) == fits);
        if (fits) CHECK(uint64_t(chunked.x) * chunked.y >= groups);
      }
}

TEST_CASE("targets say what they are") {
  std::string why;
  std::vector<Target> targets = vulkan::backend.probe(why);
  REQUIRE(!targets.empty());
  for (const Target& t : targets) {
    CHECK(t.backend == "vulkan");
    CHECK(!t.device.empty());
    CHECK_THAT(t.isa, contains("spirv-1.6"));
    CHECK(t.traits.walk == ir::Task::element);
  }
  Target absent = targets[0];
  absent.device = "no such device";
  CHECK_THROWS_AS(vulkan::backend.open(absent), Error);
}

TEST_CASE("memory that the host does not see is reached through staging") {
  Driver& d = test::staging_driver();
  for (uint64_t n : {1ul, 5ul, 300000ul, 2500003ul}) {
    Buffer a(d, 4 * n), b(d, 4 * n);
    Command commands[] = {Fill{a.address(), 4 * n, 0xdeadbeef},
                          Copy{b.address(), a.address(), 4 * n}};
    d.wait(d.submit(commands));
    std::vector<uint32_t> out = b.read<uint32_t>();
    CHECK(uint64_t(std::ranges::count(out, 0xdeadbeef)) == n);
    out = numbers(n);
    d.upload(a.address(), std::as_bytes(std::span(out)));
    CHECK(a.read<uint32_t>() == out);
    CHECK(d.host_pointer(a.address()) == nullptr);
  }
  expect_usable(d);
  CHECK(driver().host_pointer(64) == nullptr);
}

TEST_CASE("addresses that were never given out are refused") {
  CHECK_THROWS_AS(driver().release(12345), InternalError);
  expect_usable(driver());
}

TEST_CASE("atomics that lowering should have replaced are internal errors") {
  auto refused = [](const std::string& body) {
    auto kernel = ir::parse(test::serial("%p = arg<64> : address\n" + body));
    Driver& d = driver();
    CHECK_THROWS_AS(test::compiler(d).compile(*kernel, d.target()), InternalError);
    return message_of([&] { test::compiler(d).compile(*kernel, d.target()); });
  };
  CHECK_THAT(refused("%v = constant<1> : u8\n%o = rmw.add<1> %p, %v : u8"),
             contains("add of type u8"));
  CHECK_THAT(refused("%v = constant<1> : f64\n%o = rmw.max<1> %p, %v : f64"),
             contains("max of type f64"));
  expect_usable(driver());
}

TEST_CASE("what the device lacks is an error") {
  Target poor = driver().target();
  poor.isa = "spirv-1.6";
  auto kernel = ir::parse(test::serial(R"(
    %p = arg<64> : address
    %v = constant<1> : u64
    %o = rmw.add<1> %p, %v : u64)"));
  CHECK_THAT(message_of([&] { test::compiler(driver()).compile(*kernel, poor); }),
             contains("no 64-bit atomics"));
}

TEST_CASE("an image that is a little too short or too long is an internal error") {
  auto kernel = ir::parse(test::add_one);
  Driver& d = driver();
  const Image image = test::compiler(d).compile(*kernel, d.target());
  for (size_t bytes : {image.code.size() - 1, image.code.size() + 4}) {
    Image damaged = image;
    damaged.code.resize(bytes);
    CHECK_THROWS_AS(d.load(damaged), InternalError);
  }
  expect_usable(d);
}

TEST_CASE("addresses outside device memory are refused where the host can see them") {
  Driver& d = driver();
  Buffer a(d, 64), b(d, 64);
  for (Command command : {Command(Fill{1 << 12, 64, 0}), Command(Copy{b.address(), 64, 64}),
                          Command(Copy{b.address(), a.address(), 1ull << 40})})
    CHECK_THROWS_AS(d.submit({&command, 1}), InternalError);
  uint32_t word = 0;
  CHECK_THROWS_AS(d.download(std::as_writable_bytes(std::span(&word, 1)), 8), InternalError);
  expect_usable(driver());
}

TEST_CASE("listings") {
  auto kernel = ir::parse(test::add_one);
  auto text = [&](const char* kind) {
    return test::compiler(driver()).listing(*kernel, driver().target(), kind);
  };
  CHECK_THAT(text("spirv"), contains("OpEntryPoint GLCompute"));
  CHECK_THAT(text("spirv"), contains("OpConvertUToPtr"));
  CHECK_THAT(text("ir"), contains("kernel @add_one"));
  CHECK_THAT(message_of([&] { text("ptx"); }), contains("ir, spirv"));
}

TEST_CASE("remainders of signed numbers are of instructions that Vulkan defines") {
  for (const char* type : {"i32", "i64"}) {
    auto kernel = ir::parse(test::serial(
        "%p = arg<64> : address\n%a = arg<72> : " + std::string(type) + "\n%b = arg<80> : " + type +
        "\n%r = rem %a, %b : " + type + "\nwrite<1> %p, %r"));
    const std::string text = test::compiler(driver()).listing(*kernel, driver().target(), "spirv");
    CHECK_THAT(text, contains("OpSDiv"));
    CHECK_THAT(text, !contains("OpSRem") && !contains("OpSMod"));
  }
}

TEST_CASE("the word by which a check says that it failed is read as others have left it") {
  auto kernel =
      ir::parse(test::serial("%p = arg<64> : address\n%v = read<65537> %p : u32\n"
                             "%w = read<1> %p : u32\n%s = add %v, %w : u32\n"
                             "write<1> %p, %s"));
  const std::string text = test::compiler(driver()).listing(*kernel, driver().target(), "spirv");
  CHECK_THAT(text, contains("OpAtomicLoad"));
}

TEST_CASE("invalid SPIR-V is noticed") {
  Target t = driver().target();
  std::vector<uint32_t> module =
      vulkan::generate(*ir::parse(test::add_one), 0, vulkan::Abilities::parse(t.isa));
  CHECK(vulkan::invalidity(module).empty());
  module.back() = 0;
  CHECK(!vulkan::invalidity(module).empty());
}

TEST_CASE("the validation layers watch these tests, and their findings are errors") {
  auto instance = test::instance();
  if (!instance->validated()) {
    NOT_RUN("the validation layers are not installed");
    return;
  }
  std::string why;
  vulkan::Gpu gpu(instance, vulkan::adapters(*instance, why).at(0));
  CHECK_NOTHROW(gpu.expect_silence());
  auto info = vulkan::structure<VkBufferCreateInfo>(VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO);
  VkBuffer none = nullptr;
  if (gpu.CreateBuffer(gpu.handle, &info, nullptr, &none) == VK_SUCCESS)
    gpu.DestroyBuffer(gpu.handle, none, nullptr);
  CHECK_THAT(message_of([&] { gpu.expect_silence(); }), contains("validation layers"));
  CHECK_NOTHROW(gpu.expect_silence());
}
