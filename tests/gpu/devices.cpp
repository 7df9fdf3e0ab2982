// Finding devices, several of them, several threads.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "backends/cuda/api.h"
#include "backends/rocm/api.h"
#include "quern/error.h"
#include "tests/gpu/support.h"

using namespace quern;
using namespace quern::test;
using runtime::Address;
using runtime::Command;
using runtime::Copy;
using runtime::Fill;

namespace {

template <class F>
int in_child(const F& f) {
  pid_t child = fork();
  if (child == 0) _exit(f());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

TEST_CASE_METHOD(OnEachVendor,
                 "a library that is missing, too old or without a device is a reason") {
  std::string why;
  CHECK(vendor.load("libno-such-driver.so", why) == nullptr);
  CHECK_THAT(why, contains("no " + std::string(vendor.name)));
  CHECK_THAT(why, contains("libno-such-driver.so cannot be opened: cannot open"));
  CHECK(vendor.load("libc.so.6", why) == nullptr);
  CHECK_THAT(why, contains("too old: libc.so.6 lacks the function "));
  recorder.devices = 0;
  CHECK(vendor.load(vendor.library, why) == nullptr);
  CHECK_THAT(why, contains("no " + std::string(vendor.name) + " device is present"));
  recorder.devices = 1;
  if (std::string(vendor.name) == "HIP") {  // ROCm 5
    recorder.failures["init"] = {recorder.calls["init"] + 1, 101};
    CHECK(vendor.load(vendor.library, why) == nullptr);
    CHECK_THAT(why, contains("no HIP device is present"));
  }
  recorder.failures["init"] = {recorder.calls["init"] + 1, 803};
  CHECK(vendor.load(vendor.library, why) == nullptr);
  CHECK_THAT(why, contains("does not start") && contains("803"));
  CHECK(vendor.load(vendor.library, why) != nullptr);
}

// The library is looked for once a process; no other case asks.
TEST_CASE_METHOD(OnEachVendor, "devices of the library that the environment names") {
  CHECK(in_child([&] {
          setenv(vendor.environment, "/no/such/library.so", 1);
          std::string reason;
          return vendor.devices(reason).empty() &&
                         reason.find("/no/such/library.so") != std::string::npos
                     ? 0
                     : 1;
        }) == 0);
  setenv(vendor.environment, vendor.library, 1);
  recorder.devices = 2;
  std::string why;
  std::vector<runtime::Target> targets = vendor.devices(why);
  REQUIRE(targets.size() == 2);
  CHECK(why.empty());
  CHECK(targets[0].device == "Recorder");
  CHECK(targets[1].device == "Recorder (2)");
  for (const runtime::Target& t : targets) {
    CHECK(t.traits.walk == ir::Task::element);
    CHECK(!t.traits.narrow_atomics);
    CHECK((t.traits.fma_exact[0] && t.traits.float_atomic_add[1] && t.traits.half_conversions));
    CHECK(t.max_allocation == recorder.memory);
    auto driver = vendor.open(t, nullptr);
    CHECK(driver->target().device == t.device);
    CHECK(driver->host_pointer(64) == nullptr);
  }
  runtime::Target absent = targets[0];
  absent.device = "another";
  CHECK_THAT(message_of([&] { vendor.open(absent, nullptr); }),
             contains("'another' is not present"));
  unsetenv(vendor.environment);
}

TEST_CASE("code for CUDA is made for the newest architecture and PTX that device and driver know") {
  auto isa = [](const std::string& architecture, int version) {
    gpu::Properties p;
    p.architecture = architecture;
    return cuda::target_of(p, version).isa;
  };
  CHECK_THROWS_WITH(isa("sm_61", 11000), contains("6.1"));
  CHECK(isa("sm_72", 12000) == "nvptx64-nvidia-cuda sm_70 +ptx70");
  CHECK(isa("sm_80", 11000) == "nvptx64-nvidia-cuda sm_80 +ptx70");
  CHECK(isa("sm_86", 11000) == "nvptx64-nvidia-cuda sm_80 +ptx70");
  CHECK(isa("sm_86", 11010) == "nvptx64-nvidia-cuda sm_86 +ptx71");
  CHECK(isa("sm_90", 11080) == "nvptx64-nvidia-cuda sm_90 +ptx78");
  CHECK(isa("sm_120", 13000) == "nvptx64-nvidia-cuda sm_90 +ptx78");
}

TEST_CASE_METHOD(OnEachVendor, "what a device says of itself") {
  std::string why;
  if (std::string(vendor.name) == "CUDA") {
    recorder.version = 10020;
    CHECK(vendor.load(vendor.library, why) == nullptr);
    CHECK_THAT(why, contains("is CUDA 10.2; 11.0 or newer is needed"));
    recorder.version = 12040;
    CHECK(vendor.target(gpu::describe_all(*api(), why).at(0)).isa ==
          "nvptx64-nvidia-cuda sm_90 +ptx78");
  } else {
    CHECK(vendor.target(gpu::describe_all(*api(), why).at(0)).isa == "amdgcn-amd-amdhsa gfx942 ");
  }
  recorder.pools = false;
  CHECK(!gpu::describe_all(*api(), why).at(0).pools);
  gpu::Properties p = gpu::describe_all(*api(), why).at(0);
  CHECK(p.multiprocessors == 10);
  CHECK(p.warp_size == 32);
  CHECK(p.max_threads == 1024);
  CHECK(p.max_grid == 0x7fffffff);
}

TEST_CASE_METHOD(OnEachVendor, "several threads share a driver") {
  recorder.pools = GENERATE(true, false);
  auto driver = open();
  Code code{serial()};
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int t = 0; t < 8; t++)
    threads.emplace_back([&, t] {
      auto executable = driver->load(code.on(*driver));
      for (int round = 0; round < 20; round++) {
        size_t bytes = size_t(4096 + 700'000 * (t % 4));
        Address at = driver->allocate(bytes);
        std::vector<std::byte> data = numbers(bytes);
        uint32_t start = uint32_t(1000 * t + round);
        std::memcpy(data.data(), &start, 4);
        driver->upload(at, data);
        std::vector<Command> batch(10, launch(*executable, 0, runtime::Serial{}, at));
        runtime::Ticket ticket = driver->submit(batch);
        if (round % 3 == 0) driver->wait(ticket);
        if (round % 5 == 0) driver->done(ticket);
        start += 10;
        std::memcpy(data.data(), &start, 4);
        right += read(*driver, at, bytes) == data;
        driver->release(at);
      }
    });
  for (auto& t : threads) t.join();
  CHECK(right == 160);
}

TEST_CASE_METHOD(OnEachVendor, "copies between devices are ordered on both") {
  recorder.devices = 2;
  recorder.pools = GENERATE(true, false);
  recorder.peers = GENERATE(true, false);
  auto a = open(0), b = open(1);
  uint64_t n = 20 << 20;
  Address from = a->allocate(n), to = b->allocate(n);
  for (int round = 0; round < 2; round++) {
    Command before = Fill{from, n, 0x11223344}, old = Fill{to, n, 0}, after = Fill{from, n, 0x77};
    a->submit({&before, 1});
    b->submit({&old, 1});
    runtime::Ticket copied = b->copy_from(*a, to + 8, from, n - 16);
    a->submit({&after, 1});
    if (round == 1) a->release(from);
    a->wait(a->submit({}));  // however far the other device is
    b->wait(copied);
    std::vector<std::byte> seen = read(*b, to, n);
    std::vector<uint32_t> words(n / 4);
    std::memcpy(words.data(), seen.data(), n);
    CHECK(words[1] == 0);
    CHECK(words[n / 4 - 2] == 0);
    CHECK(uint64_t(std::ranges::count(words, 0x11223344u)) == n / 4 - 4);
  }
  CHECK((recorder.calls["copy"] > 0) == recorder.peers);
  if (recorder.peers) CHECK(recorder.calls["can_access_peer"] == 1);
  CHECK_THROWS_AS(b->copy_from(*a, to, 64, 16), InternalError);
  CHECK_THROWS_AS(b->copy_from(*b, to, to + 64, n), InternalError);
  b->wait(b->copy_from(*b, to + 8, to, 64));
  b->release(to);
}

TEST_CASE_METHOD(OnEachVendor, "memory that is not the driver's is taken where the device has it") {
  recorder.devices = 2;
  auto a = open(0), b = open(1);
  Address at = a->allocate(64);
  CHECK_THAT(message_of([&] { b->adopt(at, 64); }),
             contains("leads to memory of device 0, and " + b->target().device + " is device 1"));
  CHECK_THROWS_AS(b->disown(at, 64), InternalError);

  // Two drivers of one device: each knows its own memory, until it is told of the other's.
  auto other = open(0);
  Command half = Fill{at + 32, 32, 7};
  CHECK_THROWS_AS(other->submit({&half, 1}), InternalError);
  other->adopt(at + 32, 32);
  other->adopt(at + 32, 32);
  other->disown(at + 32, 32);
  other->wait(other->submit({&half, 1}));
  CHECK(read_word(*a, at + 60) == 7);
  Command all = Fill{at, 64, 7};
  CHECK_THROWS_AS(other->submit({&all, 1}), InternalError);
  other->disown(at + 32, 32);
  CHECK_THROWS_AS(other->submit({&half, 1}), InternalError);
  a->release(at);
}

TEST_CASE_METHOD(OnEachVendor, "pinned memory of the program's needs no staging") {
  auto driver = open();
  uint64_t n = 10 << 20;
  void* memory = nullptr;
  REQUIRE(api()->host_allocate(&memory, n, gpu::flag::host_portable) == 0);
  std::span<std::byte> pinned(static_cast<std::byte*>(memory), n);
  std::vector<std::byte> data = numbers(n);
  std::ranges::copy(data, pinned.begin());
  Address at = driver->allocate(n);
  driver->upload(at, pinned);
  CHECK(recorder.calls["upload"] == 1);
  std::ranges::fill(pinned, std::byte(0));
  driver->download(pinned, at);
  CHECK(recorder.calls["download"] == 1);
  CHECK((std::ranges::equal(pinned, data)));
  CHECK(recorder.calls["host_allocate"] == 1);
  driver->release(at);
  api()->host_free(memory);
}
