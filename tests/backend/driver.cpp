// Memory, commands, errors, threads and listings of every driver.
#include <algorithm>
#include <random>
#include <thread>

#include "quern/error.h"
#include "tests/backend/harness/harness.h"

using namespace quern;
using namespace quern::runtime;
using test::Buffer;
using test::expect_usable;
using test::message_of;
using test::OnEachDriver;
using test::OnEachLowering;
using test::Program;

namespace {
std::vector<uint32_t> numbers(uint64_t n) {
  std::vector<uint32_t> v(n);
  for (uint64_t k = 0; k < n; k++) v[k] = uint32_t(k * 2654435761u);
  return v;
}
}  // namespace

TEST_CASE("every back end built in is present, or says why it is not") {
  size_t present = 0;
  for (const Backend& backend : backends()) {
    std::string why;
    std::vector<Target> targets = backend.probe(why);
    present += !targets.empty() && test::is_tested(backend.name);
    if (targets.empty()) {
      CHECK(!why.empty());
      WARN("not tested: " << backend.name << ": " << why);
    }
    for (const Target& t : targets) {
      CHECK(t.backend == backend.name);
      CHECK(!t.device.empty());
      CHECK(!t.isa.empty());
    }
  }
  CHECK(test::drivers().size() == present);
  CHECK(test::lowering_drivers().size() >= 1);
}

TEST_CASE_METHOD(OnEachDriver,
                 "allocation is aligned, apart, and refuses what the machine lacks with sizes") {
  std::mt19937 random(5);
  struct Piece {
    Address at;
    uint64_t bytes;
  };
  std::vector<Piece> live;
  for (int k = 0; k < 400; k++) {
    if (live.size() > 40 || (!live.empty() && random() % 3 == 0)) {
      size_t which = random() % live.size();
      driver.release(live[which].at);
      live.erase(live.begin() + ptrdiff_t(which));
      continue;
    }
    uint64_t bytes = k % 50 == 7 ? 40 << 20 : 1 + random() % (1u << (random() % 22));
    live.push_back({driver.allocate(bytes), bytes});
  }
  std::ranges::sort(live, {}, &Piece::at);
  for (size_t k = 0; k < live.size(); k++) {
    CHECK(live[k].at % 64 == 0);
    if (k > 0) CHECK(live[k - 1].at + live[k - 1].bytes <= live[k].at);
  }
  for (const Piece& p : live) driver.release(p.at);
  CHECK_THROWS_AS(driver.allocate(1ull << 60), Error);
  CHECK_THAT(message_of([&] { driver.allocate(1ull << 60); }),
             contains("1152921504606846976 bytes"));
  CHECK_THROWS_AS(driver.allocate(~0ull), Error);
  expect_usable(driver);
}

TEST_CASE_METHOD(OnEachDriver, "fill, copy, upload and download of any size") {
  for (uint64_t n : {1ul, 5ul, 300000ul, 2500003ul}) {
    Buffer a(driver, 4 * n), b(driver, 4 * n);
    Command commands[] = {Fill{a.address(), 4 * n, 0xdeadbeef},
                          Copy{b.address(), a.address(), 4 * n}};
    driver.wait(driver.submit(commands));
    std::vector<uint32_t> out = b.read<uint32_t>();
    CHECK(uint64_t(std::ranges::count(out, 0xdeadbeef)) == n);
    out = numbers(n);
    driver.upload(a.address(), std::as_bytes(std::span(out)));
    CHECK(a.read<uint32_t>() == out);
    if (std::byte* host = driver.host_pointer(a.address()))
      CHECK(std::memcmp(host, out.data(), 4 * n) == 0);
  }
  expect_usable(driver);
}

TEST_CASE_METHOD(OnEachDriver, "overlapping copies move, odd offsets and sizes too") {
  for (auto [to, from, bytes] : {std::array<uint64_t, 3>{4, 0, 801},
                                 {0, 4, 801},
                                 {13, 2, 801},
                                 {1, 100, 801},
                                 {4, 0, (8 << 20) - 4}}) {
    std::vector<uint8_t> expected(std::max(to, from) + bytes);
    for (size_t k = 0; k < expected.size(); k++) expected[k] = uint8_t(k * 7 + k / 256);
    Buffer a(driver, expected);
    Command command = Copy{a.address() + to, a.address() + from, bytes};
    driver.wait(driver.submit({&command, 1}));
    std::memmove(&expected[to], &expected[from], bytes);
    CHECK(a.read<uint8_t>() == expected);
  }
}

TEST_CASE_METHOD(OnEachLowering, "commands of a batch, and batches, run in order") {
  Buffer x(driver, std::vector<int32_t>{0}), y(driver, std::vector<int32_t>{0});
  Program p(driver, test::add_one);
  p.entry(0, x).upload_args();
  std::vector<Command> commands;
  for (int k = 0; k < 20; k++) commands.push_back(p.launch(0, 1));
  commands.push_back(Copy{y.address(), x.address(), 4});
  commands.push_back(Fill{x.address(), 4, 100});
  commands.push_back(p.launch(0, 1));
  Ticket last;
  for (int k = 0; k < 30; k++) last = driver.submit(commands);
  driver.wait(last);
  CHECK(driver.done(last));
  CHECK(x.first<int32_t>() == 101);
  CHECK(y.first<int32_t>() == 121);
  CHECK(driver.done(driver.submit({})));
}

TEST_CASE_METHOD(OnEachDriver, "queues wait for tickets of each other") {
  const uint32_t one = driver.make_queue(), two = driver.make_queue();
  const Address between = driver.allocate(4, one);
  Buffer x(driver, std::vector<uint32_t>{0}), y(driver, std::vector<uint32_t>{0});
  const Ticket made = driver.submit({});  // the buffers are there
  Ticket last = made;
  for (uint32_t k = 1; k <= 20; k++) {
    const Command fill = Fill{x.address(), 4, k}, to = Copy{between, x.address(), 4},
                  from = Copy{y.address(), between, 4};
    const Ticket filled = driver.submit({&fill, 1}, {one, {&last, 1}});
    const Ticket there = driver.submit({&to, 1}, {two, {&filled, 1}});
    last = driver.submit({&from, 1}, {0, {&there, 1}});
  }
  driver.wait(last);
  CHECK(driver.done(last));
  uint32_t word = 0;
  driver.download(std::as_writable_bytes(std::span(&word, 1)), y.address());
  CHECK(word == 20);
  word = 7;
  driver.upload(between, std::as_bytes(std::span(&word, 1)), two);
  driver.download(std::as_writable_bytes(std::span(&word, 1)), between, two);
  CHECK(word == 7);
  driver.release(between, two);
  expect_usable(driver);
}

TEST_CASE_METHOD(OnEachLowering,
                 "memory and kernels may be given up while launches that use them run") {
  for (int k = 0; k < 50; k++) {
    Buffer out(driver, std::vector<int32_t>{k});
    Address between = driver.allocate(1 << 16);
    auto p = std::make_unique<Program>(driver, test::add_one);
    p->entry(0, between).upload_args();
    std::vector<Command> commands = {Fill{between, 1 << 16, uint32_t(k)}, p->launch(0, 1),
                                     Copy{out.address(), between, 4}};
    driver.submit(commands);
    p.reset();
    driver.release(between);
    CHECK(out.first<int32_t>() == k + 1);
  }
}

TEST_CASE_METHOD(OnEachLowering, "a guarded launch runs only where its word is not zero") {
  Buffer x(driver, std::vector<int32_t>{0}), guard(driver, std::vector<uint32_t>{0, 7});
  Program p(driver, test::add_one);
  p.entry(0, x);
  p.run(0, 1, 1, guard.address());
  CHECK(x.first<int32_t>() == 0);
  p.run(0, 1, 1, guard.address() + 4);
  CHECK(x.first<int32_t>() == 1);
}

TEST_CASE_METHOD(OnEachLowering, "kernels compile and run from several threads") {
  std::vector<std::unique_ptr<Buffer>> x;
  for (int k = 0; k < 8; k++)
    x.push_back(std::make_unique<Buffer>(driver, std::vector<int32_t>{0}));
  std::vector<std::thread> threads;
  for (auto& b : x)
    threads.emplace_back([&] {
      for (int k = 0; k < 5; k++) Program(driver, test::add_one).entry(0, *b).run();
    });
  for (auto& t : threads) t.join();
  for (auto& b : x) CHECK(b->first<int32_t>() == 5);
}

TEST_CASE_METHOD(OnEachLowering, "what lowering should have replaced is an internal error") {
  auto kernel = ir::parse(test::serial(R"(
      %p = arg<64> : address
      %v = read<1> %p : f32
      %s = sin %v : f32
      write<1> %p, %s)"));
  auto compile = [&] { test::compiler(driver).compile(*kernel, test::target(driver)); };
  CHECK_THROWS_AS(compile(), InternalError);
  CHECK_THAT(message_of(compile), contains("'sin'"));
  expect_usable(driver);
}

TEST_CASE_METHOD(OnEachLowering, "a kernel that has nothing to do compiles and loads") {
  CHECK_NOTHROW(Program(driver, "quern 1\nkernel @nothing level=lowered\n"));
}

TEST_CASE_METHOD(OnEachLowering, "a damaged image is an internal error") {
  auto kernel = ir::parse(test::add_one);
  const Image image = test::compiler(driver).compile(*kernel, test::target(driver));
  for (size_t bytes : {image.code.size() / 2, size_t(8), size_t(0)}) {
    Image damaged = image;
    damaged.code.resize(bytes);
    CHECK_THROWS_AS(driver.load(damaged), InternalError);
  }
  expect_usable(driver);
}

TEST_CASE_METHOD(OnEachDriver,
                 "listings: the IR everywhere, an unknown kind names those there are") {
  auto kernel = ir::parse(test::add_one);
  auto text = [&](const char* kind) {
    return test::compiler(driver).listing(*kernel, test::target(driver), kind);
  };
  CHECK_THAT(text("ir"), contains("kernel @add_one"));
  CHECK_THROWS_AS(text("cuneiform"), Error);
  CHECK_THAT(message_of([&] { text("cuneiform"); }), contains("ir"));
}
