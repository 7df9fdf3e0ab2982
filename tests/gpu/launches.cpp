// Launches: their geometry and arguments, order, tickets, modules.
#include <algorithm>

#include "quern/ir/abi.h"
#include "tests/backend/harness/harness.h"
#include "tests/gpu/support.h"

using namespace quern;
using namespace quern::test;
using runtime::Address;
using runtime::Command;
using runtime::Copy;
using runtime::Fill;
using runtime::Launch;
using runtime::Ticket;

namespace {

void run(gpu::Driver& driver, const Launch& launch) {
  Command command = launch;
  driver.wait(driver.submit({&command, 1}));
}

}  // namespace

TEST_CASE_METHOD(OnEachVendor, "loops are spread over the device") {
  auto driver = open();  // 10 multiprocessors of 8 blocks of 256 threads
  Code code{serial(), element(), element(96), chunked(), once(), once(96)};
  auto executable = driver->load(code.on(*driver));
  using runtime::Chunked, runtime::Elements, runtime::Serial;
  struct Case {
    uint32_t task;
    runtime::Work work;
    unsigned grid, block;
  };
  for (const Case& c :
       {Case{0, Serial{}, 1, 1}, Case{1, Elements{1'000'000}, 320, 256},
        Case{1, Elements{10'000}, 40, 256}, Case{1, Elements{1000}, 16, 64},
        Case{1, Elements{5}, 1, 32}, Case{1, Elements{1ull << 40}, 320, 256},
        Case{2, Elements{1000}, 11, 96}, Case{2, Elements{5}, 1, 96},
        Case{3, Chunked{1'000'000, 10}, 1563, 64}, Case{3, Chunked{1000, 10}, 4, 32},
        Case{3, Chunked{1ull << 40, 1ull << 20}, 16384, 64},
        Case{4, Elements{1'000'000}, 3907, 256}, Case{4, Elements{1000}, 16, 64},
        Case{4, Elements{(1ull << 31) - 1}, 1 << 23, 256},
        Case{5, Elements{(1ull << 31) - 1}, 22369622, 96}}) {
    recorder.launches.clear();
    run(*driver, launch(*executable, c.task, c.work));
    INFO("task " << c.task << ", grid " << c.grid);
    REQUIRE(recorder.launches.size() == 1);
    const recording::Launch& l = recorder.launches[0];
    CHECK(l.function == "task_" + std::to_string(c.task));
    CHECK(l.grid[0] == c.grid);
    CHECK(l.block[0] == c.block);
    CHECK((l.grid[1] == 1 && l.grid[2] == 1 && l.block[1] == 1 && l.block[2] == 1));
    CHECK(l.shared_bytes == 0);
  }
}

TEST_CASE_METHOD(OnEachVendor, "a grid stays within the device's limits") {
  recorder.resident = 1 << 24;
  auto driver = open();
  Code code{element(), chunked()};
  auto executable = driver->load(code.on(*driver));
  run(*driver, launch(*executable, 0, runtime::Elements{1ull << 50}));
  // 10 * 2^24 * 4 blocks would fill this device.
  CHECK(recorder.launches.at(0).grid[0] == ir::abi::max_threads / 256);
  CHECK_THROWS_AS(run(*driver, launch(*executable, 1, runtime::Chunked{1ull << 40})), Error);
  CHECK_THAT(
      message_of([&] { run(*driver, launch(*executable, 1, runtime::Chunked{1ull << 40})); }),
      contains("1099511627776 threads"));
  run(*driver, launch(*executable, 1, runtime::Chunked{100}));
  CHECK(recorder.launches.size() == 2);
}

TEST_CASE_METHOD(OnEachVendor, "a launch hands over its five words") {
  auto driver = open();
  Code code{chunked()}, other{{element()}, "other"};
  auto executable = driver->load(code.on(*driver));
  Address args = driver->allocate(64), guard = driver->allocate(8);
  Command zero[] = {Fill{args, 64, 0}, Fill{guard, 8, 0}, Fill{guard + 4, 4, 3}};
  driver->submit(zero);
  Launch l = launch(*executable, 0, runtime::Chunked{1001, 10}, args);
  l.guard = guard;
  l.asks = false;
  run(*driver, l);
  l.guard = guard + 4;
  l.asks = true;
  run(*driver, l);
  CHECK(read_word(*driver, args) == 1);  // once: the other was guarded
  REQUIRE(recorder.launches.size() == 2);
  const recording::Launch& seen = recorder.launches[0];
  CHECK(std::vector<uint64_t>(seen.words, seen.words + 5) ==
        std::vector<uint64_t>{args, guard, 1001, 10, 101});
  CHECK(recorder.launches[1].words[1] == guard + 4 + 1);  // the lowest bit: asks
  CHECK_THAT(seen.module, contains("module of k "));
  l.work = runtime::Chunked{};
  run(*driver, l);
  CHECK(recorder.calls["launch"] == 2);

  auto elements = driver->load(other.on(*driver));
  Launch e = launch(*elements, 0, runtime::Elements{35, {123, 456}}, args);
  e.asks = false;
  run(*driver, e);
  REQUIRE(recorder.launches.size() == 3);
  CHECK(std::vector<uint64_t>(recorder.launches[2].words, recorder.launches[2].words + 5) ==
        std::vector<uint64_t>{args, 0, 35, 123, 456});
  driver->release(args);
  driver->release(guard);
}

TEST_CASE_METHOD(OnEachVendor, "an argument block by value is read when it is submitted") {
  auto driver = open(0, true);
  Code code{serial(), element()};
  REQUIRE(ir::takes_value(code.kernel, driver->target().traits));
  recorder.first_bytes = ir::abi::layout(code.kernel).bytes;
  auto executable = driver->load(code.on(*driver));
  std::vector<std::byte> block = numbers(recorder.first_bytes), before = block;
  Launch l =
      launch(*executable, 1, runtime::Elements{1000}, reinterpret_cast<Address>(block.data()));
  std::vector<Command> commands(20, l);  // enough for a graph, which would keep the first block
  for (int round = 0; round < 3; round++) {
    driver->submit(commands);
    std::ranges::fill(block, std::byte(round));
  }
  driver->wait(driver->submit({}));
  REQUIRE(recorder.launches.size() == 60);
  CHECK((recorder.launches[0].first == before));
  CHECK((recorder.launches[19].first == before));
  CHECK((recorder.launches[20].first == std::vector(block.size(), std::byte(0))));
  CHECK((recorder.launches[59].first == std::vector(block.size(), std::byte(1))));
  CHECK(recorder.calls["capture_begin"] == 0);
  CHECK(recorder.launches[0].words[2] == 1000);
}

TEST_CASE_METHOD(OnEachVendor, "the back ends' tests pass a block by value where it is taken so") {
  for (bool by_value : {false, true}) {
    auto driver = open(0, by_value);
    recorder.launches.clear();
    recorder.first_bytes = by_value ? 256 : 8;
    {
      Buffer word(*driver, std::vector<uint32_t>{41});
      Program p(*driver, add_one);
      p.entry(0, word).entry(23, uint64_t(2323));
      p.run();
      REQUIRE(recorder.launches.size() == 1);
      const recording::Launch& l = recorder.launches[0];
      if (by_value) {
        REQUIRE(l.first.size() == 256);
        uint64_t words[32];
        std::memcpy(words, l.first.data(), 256);
        CHECK(words[8] == word.address());
        CHECK(words[31] == 2323);
      } else {
        CHECK(read_word(*driver, l.words[0] + 64) == uint32_t(word.address()));
      }
    }
  }
}

TEST_CASE_METHOD(OnEachVendor, "blocks that are large, or of many tasks, lie in memory") {
  auto driver = open(0, true);
  const ir::TargetTraits& traits = driver->target().traits;
  Code many{serial(), serial(), serial(), serial(), serial(), serial(), serial(), serial()};
  CHECK(!ir::takes_value(many.kernel, traits));
  CHECK(traits.value_tasks + 1 == gpu::Graphs::shortest);  // what is worth a graph can be one
  Code large{serial()};
  CHECK(ir::takes_value(large.kernel, traits));
  // 64 bytes of head, 8 a scalar, 32 behind the block: 4,096 is the most.
  large.kernel.bindings.resize(501);
  CHECK(!ir::takes_value(large.kernel, traits));
  large.kernel.bindings.resize(500);
  CHECK(ir::takes_value(large.kernel, traits));
  auto executable = driver->load(many.on(*driver));
  Address args = driver->allocate(64);
  Command zero = Fill{args, 64, 0};
  driver->submit({&zero, 1});
  run(*driver, launch(*executable, 7, runtime::Serial{}, args));
  CHECK(recorder.launches.at(0).words[0] == args);
  CHECK(read_word(*driver, args) == 1);
  driver->release(args);
}

TEST_CASE_METHOD(OnEachVendor, "commands and batches run in order") {
  auto driver = open();
  Code code{serial()};
  auto executable = driver->load(code.on(*driver));
  Address x = driver->allocate(4), y = driver->allocate(4);
  std::vector<Command> commands = {Fill{x, 4, 7}, launch(*executable, 0, runtime::Serial{}, x),
                                   Copy{y, x, 4}, launch(*executable, 0, runtime::Serial{}, x)};
  Ticket first = driver->submit(commands);
  Ticket last = driver->submit({&commands[1], 1});
  CHECK(first.number < last.number);
  CHECK(driver->submit({}) == last);
  CHECK(!driver->done(last));
  CHECK(recorder.launches.size() < 3);
  driver->wait(first);
  CHECK(driver->done(first));
  driver->wait(last);
  CHECK(driver->done(last));
  CHECK(read_word(*driver, x) == 10);
  CHECK(read_word(*driver, y) == 8);
  CHECK_THROWS_AS(driver->wait({0, last.number + 100}), InternalError);
  driver->release(x);
  driver->release(y);
}

TEST_CASE_METHOD(OnEachVendor, "done comes true by asking alone") {
  auto driver = open();
  Code code{serial()};
  auto executable = driver->load(code.on(*driver));
  Ticket last;
  for (int k = 0; k < 200; k++) {
    Command command = launch(*executable, 0, runtime::Serial{});
    last = driver->submit({&command, 1});
  }
  int asked = 0;
  CHECK(recorder.calls["event_record"] <= 200 / 32);
  while (!driver->done(last) && asked < 1000) asked++;
  CHECK(asked < 1000);
  CHECK(recorder.launches.size() == 200);
  CHECK(recorder.live["events"] <= 200);
}

TEST_CASE_METHOD(OnEachVendor,
                 "equal images are loaded once, and unloaded when nothing runs them") {
  auto driver = open();
  Code code{serial()}, other{{serial()}, "other"};
  auto a = driver->load(code.on(*driver)), b = driver->load(code.on(*driver));
  auto c = driver->load(other.on(*driver));
  CHECK(recorder.calls["load_module"] == 2);
  Command command = launch(*a, 0, runtime::Serial{});
  Ticket ticket = driver->submit({&command, 1});
  a.reset();
  b.reset();
  CHECK(recorder.live["modules"] == 2);  // what is submitted still needs it
  driver->wait(ticket);
  CHECK(recorder.launches.size() == 1);
  CHECK(recorder.live["modules"] == 1);
  a = driver->load(code.on(*driver));
  CHECK(recorder.calls["load_module"] == 3);
  driver.reset();  // programs may outlive their driver
  CHECK(recorder.live["modules"] == 2);
}

TEST_CASE_METHOD(OnEachVendor, "memory is given back when the work before is done") {
  recorder.pools = GENERATE(true, false);
  auto driver = open();
  CHECK(recorder.calls["pool_set"] == recorder.pools);  // so that the pool keeps memory
  Code code{serial()};
  auto executable = driver->load(code.on(*driver));
  Address x = driver->allocate(4), y = driver->allocate(4);
  Command commands[] = {Fill{x, 4, 0}, launch(*executable, 0, runtime::Serial{}, x), Copy{y, x, 4}};
  driver->submit(commands);
  driver->release(x);
  CHECK(recorder.live["allocations"] == 2);
  CHECK(read_word(*driver, y) == 1);
  driver->release(y);
  driver->wait(driver->submit({}));
  Address z = driver->allocate(4);
  driver->wait(driver->submit({&commands[0], 0}));
  std::vector<std::byte> data = numbers(4);
  driver->upload(z, data);
  CHECK((read(*driver, z, 4) == data));
  CHECK(recorder.live["allocations"] == (recorder.pools ? 2 : 1));  // or one waits to be taken anew
  driver->release(z);
}

TEST_CASE_METHOD(OnEachVendor, "a block is taken anew in its queue without the vendor's library") {
  auto driver = open();
  const uint32_t other = driver->make_queue();
  const Address x = driver->allocate(1000), y = driver->allocate(1000);
  driver->release(x);
  driver->release(y);
  int& asked = recorder.calls["pool_allocate"];
  CHECK(asked == 2);
  CHECK(driver->allocate(1000) == y);
  CHECK(asked == 2);
  const Address of_other = driver->allocate(1000, other), larger = driver->allocate(1001);
  CHECK(asked == 4);
  CHECK(of_other != x);
  CHECK(driver->allocate(1000) == x);
  CHECK(asked == 4);
  for (Address at : {x, y, larger}) driver->release(at);
  driver->release(of_other, other);
  CHECK(recorder.calls["pool_free"] == 0);
  const Address large = driver->allocate(100 << 20);
  driver->release(large);
  CHECK(recorder.calls["pool_free"] == 1);
}

TEST_CASE_METHOD(OnEachVendor,
                 "blocks wait only where they are asked for, and not all that ever were") {
  recorder.memory = 100 << 20;  // of which a quarter may wait
  auto driver = open();
  const uint32_t other = driver->make_queue();
  driver->release(driver->allocate(1000), other);  // as memory goes that several streams have used
  CHECK(recorder.calls["pool_free"] == 1);
  // Ten of one size, of which nobody wants one any more, make room for those of another.
  std::vector<Address> all;
  for (int k = 0; k < 10; k++) all.push_back(driver->allocate(2 << 20));
  for (Address at : all) driver->release(at);
  for (int k = 0; k < 3; k++) {
    all[0] = driver->allocate(6 << 20);
    driver->release(all[0]);
  }
  CHECK(recorder.calls["pool_free"] == 1 + 10);
  CHECK(recorder.calls["pool_allocate"] == 1 + 10 + 1);
}
