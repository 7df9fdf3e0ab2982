// What may go wrong: no memory, wrong addresses and images, a device that is lost.
#include <cstring>

#include "quern/error.h"
#include "tests/gpu/support.h"

using namespace quern;
using namespace quern::test;
using runtime::Address;
using runtime::Command;
using runtime::Copy;
using runtime::Fill;

TEST_CASE_METHOD(OnEachVendor, "no memory is an error that says how much there is") {
  recorder.pools = GENERATE(true, false);
  recorder.memory = 1000 << 20;
  auto driver = open();
  Address some = driver->allocate(300 << 20);
  std::string text = message_of([&] { driver->allocate(800 << 20); });
  CHECK_THAT(text, contains("838860800 bytes on Recorder"));
  CHECK_THAT(text, contains("734003200 of its 1048576000 bytes are free"));
  CHECK_THAT(text, contains("314572800 are in use here"));
  CHECK_THROWS_AS(driver->allocate(800 << 20), Error);
  CHECK_THROWS_AS(driver->allocate(1ull << 60), Error);
  CHECK_THROWS_AS(driver->allocate(~0ull), Error);
  Address more = driver->allocate(600 << 20);
  driver->release(some);
  driver->release(more);
}

TEST_CASE_METHOD(OnEachVendor, "memory that was released counts before there is none") {
  recorder.pools = GENERATE(true, false);
  recorder.memory = 1000 << 20;
  auto driver = open();
  for (int k = 0; k < 5; k++) {
    Address at = driver->allocate(800 << 20);
    Command command = Fill{at, 4096, 0};
    driver->submit({&command, 1});
    driver->release(at);
  }
}

TEST_CASE_METHOD(OnEachVendor, "blocks that wait to be taken anew count before there is none") {
  recorder.memory = 100 << 20;
  auto driver = open();
  const uint32_t other = driver->make_queue();
  std::vector<Address> all;
  for (uint32_t k = 0; k < 10; k++) all.push_back(driver->allocate(2 << 20, k % 2 ? other : 0));
  for (uint32_t k = 0; k < 10; k++) driver->release(all[k], k % 2 ? other : 0);
  CHECK(recorder.live["allocations"] == 10);
  const Address most = driver->allocate(95 << 20);
  CHECK(recorder.live["allocations"] == 1);
  driver->release(most);
  for (Address& at : all) at = driver->allocate(9 << 20);
  for (Address at : all) driver->release(at);
  const Address small = driver->allocate(64);
  driver->wait(driver->submit({}));
  CHECK(recorder.live["allocations"] == 3);  // a quarter of the memory is kept at most
  driver->release(small);
}

TEST_CASE_METHOD(OnEachVendor, "addresses that were never given out are refused") {
  auto driver = open();
  Address a = driver->allocate(64), b = driver->allocate(64);
  CHECK_THROWS_AS(driver->release(12345), InternalError);
  CHECK_THROWS_AS(driver->release(a + 4), InternalError);
  for (Command command :
       {Command(Fill{4096, 64, 0}), Command(Fill{a, 128, 0}), Command(Copy{b, 64, 64}),
        Command(Copy{b, a, 1ull << 40}), Command(Copy{b, a, ~0ull})})
    CHECK_THROWS_AS(driver->submit({&command, 1}), InternalError);
  std::vector<std::byte> data = numbers(5 << 20);
  CHECK_THROWS_AS(driver->upload(a, data), InternalError);
  CHECK_THROWS_AS(driver->download(data, a + 1), InternalError);
  CHECK(recorder.calls["upload"] == 0);
  driver->upload(a, std::span(data).first(64));
  CHECK((read(*driver, a, 64) == numbers(64)));
  driver->release(a);
  driver->release(b);
  CHECK_THROWS_AS(driver->release(a), InternalError);
}

TEST_CASE_METHOD(OnEachVendor, "memory left over goes with the driver") {
  recorder.pools = GENERATE(true, false);
  auto driver = open();
  driver->allocate(1000);
  Address at = driver->allocate(1000);
  Command command = Fill{at, 1000, 0};
  driver->submit({&command, 1});
}

TEST_CASE_METHOD(OnEachVendor, "an image that the driver does not take is an error in its words") {
  auto driver = open();
  Code code{serial(), element()};
  runtime::Image bad = code.on(*driver);
  std::memcpy(bad.code.data(), "bad", 3);
  CHECK_THROWS_AS(driver->load(bad), InternalError);
  std::string text = message_of([&] { driver->load(bad); });
  if (std::string(vendor.name) == "CUDA") {
    CHECK_THAT(text, contains("CUDA_ERROR_INVALID_PTX") && contains("line 1: no such instruction"));
  } else {
    CHECK_THAT(text, contains("hipErrorInvalidKernelFile"));
  }
  runtime::Image none = code.on(*driver);
  none.code.clear();
  CHECK_THROWS_AS(driver->load(none), InternalError);
  if (std::string(vendor.name) == "HIP") {
    runtime::Image cut = none;  // the beginning of a code object whose sections would follow
    cut.code.resize(64);
    const unsigned char beginning[] = {0x7f, 'E', 'L', 'F', 2, 1, 1};
    std::memcpy(cut.code.data(), beginning, sizeof beginning);
    cut.code[40] = std::byte(200);
    int asked = recorder.calls["load_module"];
    CHECK_THROWS_AS(driver->load(cut), InternalError);
    cut.code.resize(63);
    CHECK_THROWS_AS(driver->load(cut), InternalError);
    CHECK(recorder.calls["load_module"] == asked);
  }
  runtime::Image one = code.on(*driver);
  one.code = Code{serial()}.on(*driver).code;
  CHECK_THROWS_AS(driver->load(one), InternalError);
  CHECK_THAT(message_of([&] { driver->load(one); }), contains("task_1"));
  recorder.failures["load_module"] = {recorder.calls["load_module"] + 1, 209};
  CHECK_THROWS_AS(driver->load(code.on(*driver)), Error);
  driver->load(code.on(*driver));
}

TEST_CASE_METHOD(OnEachVendor, "a block that is too large is an error at its loop") {
  recorder.max_threads = 512;
  auto driver = open();
  Code code{element(1024)};
  CHECK_THAT(message_of([&] { driver->load(code.on(*driver)); }),
             contains("loop.cpp:7: a block of 1024 iterations") && contains("at most 512"));
}

TEST_CASE_METHOD(OnEachVendor,
                 "a kernel that breaks the device is named, and so in each later call") {
  recorder.pools = GENERATE(true, false);
  recorder.faulty_launch = 2;
  auto driver = open();
  Code good{{serial()}, "good"}, wild{{serial()}, "wild"};
  auto first = driver->load(good.on(*driver));
  auto second = driver->load(wild.on(*driver));
  Address at = driver->allocate(64), other = driver->allocate(64);
  Command commands[] = {launch(*first, 0, runtime::Serial{}, at),
                        launch(*second, 0, runtime::Serial{}, at)};
  driver->wait(driver->submit({&commands[0], 1}));
  runtime::Ticket ticket = driver->submit({&commands[1], 1});
  driver->release(other);
  std::string text = message_of([&] { driver->wait(ticket); });
  CHECK_THAT(text, contains("ILLEGAL_ADDRESS") || contains("IllegalAddress"));
  CHECK_THAT(text, contains("(an illegal memory access was encountered), in kernel 'wild'") &&
                       contains("Recorder"));
  std::vector<std::byte> data = numbers(64);
  auto says_so = [&](auto&& f) {
    CHECK_THROWS_AS(f(), Error);
    CHECK(message_of(f) == text);
  };
  says_so([&] { driver->wait(ticket); });
  says_so([&] { driver->done(ticket); });
  says_so([&] { driver->submit({}); });
  says_so([&] { driver->submit({&commands[0], 1}); });
  says_so([&] { driver->allocate(64); });
  says_so([&] { driver->upload(at, data); });
  says_so([&] { driver->download(data, at); });
  says_so([&] { driver->load(good.on(*driver)); });
  CHECK_NOTHROW(driver->release(at));
}

TEST_CASE_METHOD(OnEachVendor, "where several kernels may have broken the device, all are named") {
  recorder.faulty_launch = 1;
  auto driver = open();
  Code a{{serial()}, "a"}, b{{serial()}, "b"};
  auto first = driver->load(a.on(*driver)), second = driver->load(b.on(*driver));
  Address at = driver->allocate(64);
  Command commands[] = {launch(*first, 0, runtime::Serial{}), launch(*second, 0, runtime::Serial{}),
                        launch(*first, 0, runtime::Serial{})};
  driver->submit(commands);
  CHECK_THAT(message_of([&] { read_word(*driver, at); }),
             contains("in one of the kernels 'a', 'b'"));
}

TEST_CASE_METHOD(OnEachVendor, "any call of the library's may fail, and all is given back") {
  recorder.pools = GENERATE(true, false);
  int error = GENERATE(1, 2, 719);
  api();
  Code code{serial(), element()};
  std::vector<std::byte> data = numbers(1 << 16);
  auto use = [&] {
    auto driver = open();
    auto executable = driver->load(code.on(*driver));
    Address at = driver->allocate(1 << 16), other = driver->allocate(100);
    driver->upload(at, data);
    std::vector<Command> batch(10, launch(*executable, 1, runtime::Elements{100}, other));
    batch.push_back(Copy{at + 1, at, 1000});
    for (int k = 0; k < 3; k++) driver->submit(batch);
    driver->release(other);
    batch.back() = Fill{at, 64, 1};
    for (int k = 0; k < 3; k++) driver->submit(batch);
    read(*driver, at, 1 << 16);
    driver->release(at);
    driver->wait(driver->submit({}));
  };
  int failed = 0;
  for (int number = 1; number < 1000; number++) {
    recorder.any = {recorder.all_calls + number, error};
    int before = recorder.all_calls;
    try {
      use();
    } catch (const std::exception& e) {
      failed++;
      CHECK(std::string(e.what()).size() > 10);
    }
    recorder.broken = 0;
    INFO("call " << number);
    REQUIRE(recorder.alive() == 0);
    if (recorder.all_calls - before < number) break;  // all calls had their turn
  }
  CHECK(failed > 50);
}
