// Memory, copies, errors, threads and listings of the driver.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <random>
#include <thread>

#include "backends/vulkan/api.h"
#include "quern/error.h"
#include "tests/catch.h"
#include "tests/vulkan/support.h"

using namespace quern;
using namespace quern::runtime;
using test::Buffer;
using test::Program;

namespace {

const char* add_one = R"(quern 1
  kernel @add_one level=lowered
  task serial {
    %p = arg<64> : address
    %v = read<1> %p : i32
    %one = constant<1> : i32
    %s = add %v, %one : i32
    write<1> %p, %s
    yield
  }
)";

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void expect_usable(Driver& d = test::driver()) {
  Buffer x(std::vector<int32_t>{41}, d);
  Program(add_one, d).entry(0, x).run();
  CHECK(x.read<int32_t>()[0] == 42);
}

/// Runs `f` in a process of its own; its exit status.
int in_child(const std::function<int()>& f) {
  pid_t child = fork();
  if (child == 0) _exit(f());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

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
  CHECK(contains(why, "no Vulkan loader"));
  CHECK(contains(why, "libno-such-vulkan.so"));
  CHECK(vulkan::Instance::create("libc.so.6", why) == nullptr);
  CHECK(contains(why, "no Vulkan 1.3"));
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

TEST_CASE("targets say what they are") {
  std::string why;
  std::vector<Target> targets = vulkan::backend.probe(why);
  REQUIRE(!targets.empty());
  for (const Target& t : targets) {
    CHECK(t.backend == "vulkan");
    CHECK(!t.device.empty());
    CHECK(contains(t.isa, "spirv-1.6"));
    CHECK(t.traits.walk == ir::Task::element);
  }
  Target absent = targets[0];
  absent.device = "no such device";
  CHECK_THROWS_AS(vulkan::backend.open(absent), Error);
}

TEST_CASE("allocation is aligned, apart, and refuses what the device lacks with sizes") {
  Driver& d = test::driver();
  std::mt19937 random(5);
  struct Piece {
    Address at;
    uint64_t bytes;
  };
  std::vector<Piece> live;
  for (int k = 0; k < 400; k++) {
    if (live.size() > 40 || (!live.empty() && random() % 3 == 0)) {
      size_t which = random() % live.size();
      d.release(live[which].at);
      live.erase(live.begin() + ptrdiff_t(which));
      continue;
    }
    uint64_t bytes = k % 50 == 7 ? 40 << 20 : 1 + random() % (1u << (random() % 22));
    live.push_back({d.allocate(bytes), bytes});
  }
  std::ranges::sort(live, {}, &Piece::at);
  for (size_t k = 0; k < live.size(); k++) {
    CHECK(live[k].at % 64 == 0);
    if (k > 0) CHECK(live[k - 1].at + live[k - 1].bytes <= live[k].at);
  }
  for (const Piece& p : live) d.release(p.at);
  CHECK_THROWS_AS(d.allocate(1ull << 60), Error);
  CHECK(contains(message_of([&] { d.allocate(1ull << 60); }), "1152921504606846976 bytes"));
  CHECK_THROWS_AS(d.allocate(~0ull), Error);
  CHECK_THROWS_AS(d.release(12345), InternalError);
  expect_usable();
}

TEST_CASE("fill, copy, upload and download of any size, mapped or through staging") {
  for (Driver* d : {&test::driver(), &test::staging_driver()}) {
    for (uint64_t n : {1ul, 5ul, 300000ul, 2500003ul}) {
      Buffer a(4 * n, *d), b(4 * n, *d);
      Command commands[] = {Fill{a.address(), 4 * n, 0xdeadbeef},
                            Copy{b.address(), a.address(), 4 * n}};
      d->wait(d->submit(commands));
      std::vector<uint32_t> out = b.read<uint32_t>();
      CHECK(uint64_t(std::ranges::count(out, 0xdeadbeef)) == n);
      out = numbers(n);
      d->upload(a.address(), std::as_bytes(std::span(out)));
      CHECK(a.read<uint32_t>() == out);
      std::byte* host = d->host_pointer(a.address());
      CHECK((host == nullptr) == (d == &test::staging_driver()));
      if (host) CHECK(std::memcmp(host, out.data(), 4 * n) == 0);
    }
    expect_usable(*d);
  }
  CHECK(test::driver().host_pointer(64) == nullptr);
}

TEST_CASE("overlapping copies move, odd offsets and sizes too") {
  Driver& d = test::driver();
  for (auto [to, from] : {std::pair<uint64_t, uint64_t>{4, 0}, {0, 4}, {13, 2}, {1, 100}}) {
    std::vector<uint8_t> bytes(1000);
    for (size_t k = 0; k < bytes.size(); k++) bytes[k] = uint8_t(k * 7);
    Buffer a(bytes);
    Command command = Copy{a.address() + to, a.address() + from, 801};
    d.wait(d.submit({&command, 1}));
    std::memmove(&bytes[to], &bytes[from], 801);
    CHECK(a.read<uint8_t>() == bytes);
  }
}

TEST_CASE("commands of a batch, and batches, run in order") {
  Buffer x(std::vector<int32_t>{0}), y(std::vector<int32_t>{0});
  Program p(add_one);
  p.entry(0, x).upload_args();
  std::vector<Command> commands;
  for (int k = 0; k < 20; k++) commands.push_back(p.launch(0, 1));
  commands.push_back(Copy{y.address(), x.address(), 4});
  commands.push_back(Fill{x.address(), 4, 100});
  commands.push_back(p.launch(0, 1));
  Ticket last = 0;
  for (int k = 0; k < 30; k++) last = test::driver().submit(commands);
  test::driver().wait(last);
  CHECK(test::driver().done(last));
  CHECK(x.read<int32_t>()[0] == 101);
  CHECK(y.read<int32_t>()[0] == 121);
  CHECK(test::driver().submit({}) == last);
}

TEST_CASE("memory and kernels may be given up while launches that use them run") {
  for (int k = 0; k < 50; k++) {
    Driver& d = test::driver();
    Buffer out(std::vector<int32_t>{k});
    Address between = d.allocate(1 << 16);
    auto p = std::make_unique<Program>(add_one);
    p->entry(0, between).upload_args();
    std::vector<Command> commands = {Fill{between, 1 << 16, uint32_t(k)}, p->launch(0, 1),
                                     Copy{out.address(), between, 4}};
    d.submit(commands);
    p.reset();
    d.release(between);
    CHECK(out.read<int32_t>()[0] == k + 1);
  }
}

TEST_CASE("a guarded launch runs only where its word is not zero") {
  Buffer x(std::vector<int32_t>{0}), guard(std::vector<uint32_t>{0, 7});
  Program p(add_one);
  p.entry(0, x);
  p.run(0, 1, 1, guard.address());
  CHECK(x.read<int32_t>()[0] == 0);
  p.run(0, 1, 1, guard.address() + 4);
  CHECK(x.read<int32_t>()[0] == 1);
}

TEST_CASE("kernels compile and run from several threads") {
  std::vector<std::unique_ptr<Buffer>> x;
  for (int k = 0; k < 8; k++) x.push_back(std::make_unique<Buffer>(std::vector<int32_t>{0}));
  std::vector<std::thread> threads;
  for (auto& b : x)
    threads.emplace_back([&b] {
      for (int k = 0; k < 5; k++) Program(add_one).entry(0, *b).run();
    });
  for (auto& t : threads) t.join();
  for (auto& b : x) CHECK(b->read<int32_t>()[0] == 5);
}

TEST_CASE("what lowering should have replaced is an internal error") {
  auto refused = [](const std::string& body) {
    auto kernel =
        ir::parse("quern 1\nkernel @k level=lowered\ntask serial {\n%p = arg<64> : address\n" +
                  body + "\nyield\n}\n");
    Driver& d = test::driver();
    CHECK_THROWS_AS(d.compiler().compile(*kernel, d.target()), InternalError);
    return message_of([&] { d.compiler().compile(*kernel, d.target()); });
  };
  CHECK(contains(refused("%v = read<1> %p : f32\n%s = sin %v : f32\nwrite<1> %p, %s"), "'sin'"));
  CHECK(contains(refused("%v = constant<1> : u8\n%o = rmw.add<1> %p, %v : u8"), "add of type u8"));
  CHECK(
      contains(refused("%v = constant<1> : f64\n%o = rmw.max<1> %p, %v : f64"), "max of type f64"));
  expect_usable();
}

TEST_CASE("what the device lacks is an error") {
  Target poor = test::driver().target();
  poor.isa = "spirv-1.6";
  auto kernel = ir::parse(R"(quern 1
    kernel @k level=lowered
    task serial {
      %p = arg<64> : address
      %v = constant<1> : u64
      %o = rmw.add<1> %p, %v : u64
      yield
    })");
  CHECK(contains(message_of([&] { test::driver().compiler().compile(*kernel, poor); }),
                 "no 64-bit atomics"));
}

TEST_CASE("a damaged image is an internal error") {
  auto kernel = ir::parse(add_one);
  Driver& d = test::driver();
  const Image image = d.compiler().compile(*kernel, d.target());
  for (size_t bytes : {image.code.size() - 1, image.code.size() / 2, size_t(8), size_t(0)}) {
    Image damaged = image;
    damaged.code.resize(bytes);
    CHECK_THROWS_AS(d.load(*kernel, damaged), InternalError);
  }
  Image longer = image;
  longer.code.resize(longer.code.size() + 4);
  CHECK_THROWS_AS(d.load(*kernel, longer), InternalError);
  expect_usable();
}

TEST_CASE("addresses outside device memory are refused where the host can see them") {
  Driver& d = test::driver();
  Buffer a(64), b(64);
  for (Command command : {Command(Fill{1 << 12, 64, 0}), Command(Copy{b.address(), 64, 64}),
                          Command(Copy{b.address(), a.address(), 1ull << 40})})
    CHECK_THROWS_AS(d.submit({&command, 1}), InternalError);
  uint32_t word = 0;
  CHECK_THROWS_AS(d.download(std::as_writable_bytes(std::span(&word, 1)), 8), InternalError);
  expect_usable();
}

TEST_CASE("listings") {
  auto kernel = ir::parse(add_one);
  auto text = [&](const char* kind) {
    return test::driver().compiler().listing(*kernel, test::driver().target(), kind);
  };
  CHECK(contains(text("spirv"), "OpEntryPoint GLCompute"));
  CHECK(contains(text("spirv"), "OpConvertUToPtr"));
  CHECK(contains(text("ir"), "kernel @add_one"));
  CHECK(contains(message_of([&] { text("ptx"); }), "ir, spirv"));
}

TEST_CASE("invalid SPIR-V is noticed") {
  Target t = test::driver().target();
  std::vector<uint32_t> module =
      vulkan::generate(*ir::parse(add_one), 0, vulkan::Abilities::parse(t.isa));
  CHECK(vulkan::invalidity(module).empty());
  module.back() = 0;
  CHECK(!vulkan::invalidity(module).empty());
}

TEST_CASE("the validation layers watch these tests, and their findings are errors") {
  auto instance = test::instance();
  if (!instance->validated()) {
    WARN("the validation layers are not installed");
    return;
  }
  std::string why;
  vulkan::Gpu gpu(instance, vulkan::adapters(*instance, why).at(0));
  CHECK_NOTHROW(gpu.expect_silence());
  auto info = vulkan::structure<VkBufferCreateInfo>(VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO);
  VkBuffer none = nullptr;
  if (gpu.CreateBuffer(gpu.handle, &info, nullptr, &none) == VK_SUCCESS)
    gpu.DestroyBuffer(gpu.handle, none, nullptr);
  CHECK(contains(message_of([&] { gpu.expect_silence(); }), "validation layers"));
  CHECK_NOTHROW(gpu.expect_silence());
}
