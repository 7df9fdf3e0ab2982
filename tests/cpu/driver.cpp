// What only the CPU's back end has: LLVM's errors, its listings, the limits of a thread's stack.
#include "backends/llvm/guard.h"
#include "quern/error.h"
#include "tests/backend/harness/harness.h"

namespace llvm {
[[noreturn]] void report_fatal_error(const char* reason, bool crash_report);
}

using namespace quern;
using test::Buffer;
using test::driver;
using test::message_of;
using test::Program;

namespace {
[[gnu::no_sanitize("undefined")]] void crash() {
  volatile int* nowhere = nullptr;
  *nowhere = 1;
}
}  // namespace

TEST_CASE("a fatal error or a crash inside LLVM is an exception, and the back end goes on") {
  for (int k = 0; k < 20; k++) {
    CHECK(message_of([] {
            codegen::guarded("a test", [] { llvm::report_fatal_error("no such thing", false); });
          }).find("a test: no such thing") != std::string::npos);
    CHECK_THROWS_AS(codegen::guarded("a test", crash), InternalError);
    test::expect_usable(driver("cpu"));
  }
  CHECK_THROWS_AS(codegen::guarded("a test", [] { throw Error("mine"); }), Error);
}

TEST_CASE("large local arrays work, too large ones are refused") {
  auto text = [](int count) {
    std::string s = test::serial(R"(
    %out = arg<64> : address
    %k = arg<72> : i64
    %a = slot<COUNT> : slot i64
    %x = get %a, %k : i64
    %one = constant<1> : i64
    %y = add %x, %one : i64
    put %a, %k, %y
    %z = get %a, %k : i64
    write<1> %out, %z)");
    return s.replace(s.find("COUNT"), 5, std::to_string(count));
  };
  Buffer out(driver("cpu"), 8);
  Program(driver("cpu"), text(100000)).entry(0, out).entry(1, int64_t(99999)).run();
  CHECK(out.first<int64_t>() == 1);
  CHECK_THROWS_AS(Program(driver("cpu"), text(200000)), Error);
}

TEST_CASE("listings of LLVM and of machine code") {
  auto kernel = ir::parse(test::add_one);
  auto text = [&](const char* kind) {
    return test::compiler(driver("cpu")).listing(*kernel, driver("cpu").target(), kind);
  };
  CHECK_THAT(text("llvm"), contains("define void @task_0"));
  CHECK_THAT(text("llvm-optimised"), contains("define void @task_0"));
  CHECK_THAT(text("asm"), contains("task_0:"));
}
