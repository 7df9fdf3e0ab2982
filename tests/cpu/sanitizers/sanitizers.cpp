// Builds with a sanitizer watch the code of kernels as they watch Quern's own: what is planted in
// kernels of the program quern_planted is reported.
#include "backends/llvm/sanitizer.h"
#include "tests/catch.h"
#include "tests/errors/compiler.h"

using namespace quern;
using codegen::Sanitizer;

namespace {

test::Output planted(const std::string& what) {
  return test::run("QUERN_THREADS=2 ASAN_OPTIONS=detect_leaks=0 '" QUERN_PLANTED "' " + what);
}

void expect_report(const std::string& what, const std::string& report) {
  const test::Output out = planted(what);
  INFO(what << ":\n" << out.text);
  CHECK(out.status != 0);
  CHECK_THAT(out.text, contains(report));
}

}  // namespace

TEST_CASE("a sanitizer finds what is planted in the code of kernels, and nothing else") {
  static_assert(codegen::own_sanitizer != Sanitizer::none);
  if (codegen::own_sanitizer == Sanitizer::address) {
    expect_report("field", "AddressSanitizer: heap-buffer-overflow");
    expect_report("field", "400-byte region");
    expect_report("local", "AddressSanitizer: stack-buffer-overflow");
  } else {
    expect_report("race", "ThreadSanitizer: data race");
  }
  const test::Output out = planted("none");
  INFO(out.text);
  CHECK(out.status == 0);
  CHECK_THAT(out.text, !contains("Sanitizer"));
  CHECK_THAT(out.text, contains("2500004 125000\n"));
}
