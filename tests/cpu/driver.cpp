#include <algorithm>
#include <thread>

#include "backends/llvm/guard.h"
#include "quern/error.h"
#include "tests/catch.h"
#include "tests/cpu/support.h"

namespace llvm {
[[noreturn]] void report_fatal_error(const char* reason, bool crash_report);
}

using namespace quern;
using namespace quern::runtime;
using test::driver;
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

void expect_usable() {
  int32_t x = 41;
  Program(add_one).entry(0, &x).run();
  CHECK(x == 42);
}
}  // namespace

TEST_CASE("allocation is aligned, and refuses what the machine lacks with sizes") {
  for (uint64_t bytes : {1, 64, 100, 1 << 20, (1 << 20) + 4}) {
    Address a = driver().allocate(bytes);
    CHECK(a % 64 == 0);
    std::memset(driver().host_pointer(a), 1, bytes);
    driver().release(a);
  }
  CHECK_THROWS_AS(driver().allocate(1ull << 60), Error);
  CHECK(message_of([] { driver().allocate(1ull << 60); }).find("1152921504606846976 bytes") !=
        std::string::npos);
  expect_usable();
}

TEST_CASE("fill, copy, upload and download of any size") {
  for (uint64_t n : {1ul, 5ul, 300000ul, 1000003ul}) {
    Address a = driver().allocate(4 * n), b = driver().allocate(4 * n);
    Command commands[] = {Fill{a, 4 * n, 0xdeadbeef}, Copy{b, a, 4 * n}};
    driver().wait(driver().submit(commands));
    std::vector<uint32_t> out(n);
    driver().download(std::as_writable_bytes(std::span(out)), b);
    CHECK(std::count(out.begin(), out.end(), 0xdeadbeef) == int64_t(n));
    for (uint64_t k = 0; k < n; k++) out[k] = uint32_t(k * 7);
    driver().upload(a, std::as_bytes(std::span(out)));
    CHECK(std::memcmp(driver().host_pointer(a), out.data(), 4 * n) == 0);
    driver().release(a);
    driver().release(b);
  }
}

TEST_CASE("overlapping copies move") {
  Address a = driver().allocate(8 << 20);
  auto* words = reinterpret_cast<uint32_t*>(driver().host_pointer(a));
  uint64_t n = (8 << 20) / 4;
  for (uint64_t k = 0; k < n; k++) words[k] = uint32_t(k);
  Command command = Copy{a + 4, a, 4 * (n - 1)};
  driver().submit({&command, 1});
  bool good = words[0] == 0;
  for (uint64_t k = 1; k < n; k++) good &= words[k] == k - 1;
  CHECK(good);
  driver().release(a);
}

TEST_CASE("a guarded launch runs only where its word is not zero") {
  int32_t x = 0;
  uint32_t guard = 0;
  Program p(add_one);
  p.entry(0, &x);
  p.run(0, 1, 1, &guard);
  CHECK(x == 0);
  guard = 7;
  p.run(0, 1, 1, &guard);
  CHECK(x == 1);
}

TEST_CASE("kernels compile and run from several threads") {
  std::vector<int32_t> x(8);
  std::vector<std::thread> threads;
  for (auto& v : x)
    threads.emplace_back([&v] {
      for (int k = 0; k < 5; k++) Program(add_one).entry(0, &v).run();
    });
  for (auto& t : threads) t.join();
  for (int32_t v : x) CHECK(v == 5);
}

TEST_CASE("a fatal error or a crash inside LLVM is an exception, and the back end goes on") {
  for (int k = 0; k < 20; k++) {
    CHECK(message_of([] {
            codegen::guarded("a test", [] { llvm::report_fatal_error("no such thing", false); });
          }).find("a test: no such thing") != std::string::npos);
    CHECK_THROWS_AS(codegen::guarded("a test",
                                     [] {
                                       volatile int* nowhere = nullptr;
                                       *nowhere = 1;
                                     }),
                    InternalError);
    expect_usable();
  }
  CHECK_THROWS_AS(codegen::guarded("a test", [] { throw Error("mine"); }), Error);
}

TEST_CASE("what lowering should have replaced is an internal error") {
  auto kernel = ir::parse(R"(quern 1
    kernel @k level=lowered
    task serial {
      %p = arg<64> : address
      %v = read<1> %p : f32
      %s = sin %v : f32
      write<1> %p, %s
      yield
    })");
  CHECK_THROWS_AS(driver().compiler().compile(*kernel, driver().target()), InternalError);
  CHECK(message_of([&] {
          driver().compiler().compile(*kernel, driver().target());
        }).find("'sin'") != std::string::npos);
  expect_usable();
}

TEST_CASE("a damaged image is an internal error") {
  auto kernel = ir::parse(add_one);
  Image image = driver().compiler().compile(*kernel, driver().target());
  image.code.resize(image.code.size() / 2);
  CHECK_THROWS_AS(driver().load(*kernel, image), InternalError);
  image.code.clear();
  CHECK_THROWS_AS(driver().load(*kernel, image), InternalError);
  expect_usable();
}

TEST_CASE("listings") {
  auto kernel = ir::parse(add_one);
  auto text = [&](const char* kind) {
    return driver().compiler().listing(*kernel, driver().target(), kind);
  };
  CHECK(text("llvm").find("define void @task_0") != std::string::npos);
  CHECK(text("llvm-optimised").find("define void @task_0") != std::string::npos);
  CHECK(text("asm").find("task_0:") != std::string::npos);
  CHECK(text("ir").find("kernel @add_one") != std::string::npos);
  CHECK_THROWS_AS(text("ptx"), Error);
}
