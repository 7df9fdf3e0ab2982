// The form of the files of text tests.
#include "tests/passes/filetest.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "tests/catch.h"

using namespace quern;

namespace {

/// A file that goes when the test ends.
struct Temporary {
  explicit Temporary(const std::string& text)
      : path((std::filesystem::temp_directory_path() /
              ("quern_filetest_" + std::to_string(getpid()) + ".qir"))
                 .string()) {
    std::ofstream(path, std::ios::binary) << text;
  }
  ~Temporary() { std::filesystem::remove(path); }
  std::string path;
};

std::string complaint(const std::string& text) {
  const Temporary file(text);
  try {
    test::read_cases(file.path);
  } catch (const std::runtime_error& e) {
    return std::string(e.what()).substr(file.path.size());
  }
  return "";
}

}  // namespace

TEST_CASE("a file of cases is read and blessed") {
  const Temporary file(
      "; about\n\n; case one\n; run a, b\nx\n\ny\n; expect\nold\nlines\n\n; between\n"
      "; case two\n; run c\nz\n; expect\n");
  const test::CaseFile cases = test::read_cases(file.path);
  REQUIRE(cases.cases.size() == 2);
  CHECK(cases.cases[0].name == "one");
  CHECK(cases.cases[0].line == 3);
  CHECK(cases.cases[0].passes == std::vector<std::string>{"a", "b"});
  CHECK(cases.cases[0].before == "x\n\ny\n");
  CHECK(cases.cases[0].expected == "old\nlines\n");
  CHECK(cases.cases[1].expected.empty());
  CHECK(test::blessed(cases, {"old\nlines\n", ""}) == cases.text);
  CHECK(test::blessed(cases, {"new\n", "more\n"}) ==
        "; about\n\n; case one\n; run a, b\nx\n\ny\n; expect\nnew\n\n; between\n"
        "; case two\n; run c\nz\n; expect\nmore\n");
}

TEST_CASE("a broken file of cases is refused with its line") {
  CHECK(complaint("; case a\n; case b\n") == ":2: the case before has no '; expect'");
  CHECK(complaint("; case\n") == ":1: a case has no name");
  CHECK(complaint("; run a\n") == ":1: '; run' does not follow '; case'");
  CHECK(complaint("; case a\n; run\n") == ":2: '; run' names no pass");
  CHECK(complaint("; case a\nquern 1\n") == ":2: a case starts without '; run'");
  CHECK(complaint("; case a\n; expect\n") == ":2: '; expect' does not follow '; run' and a kernel");
  CHECK(complaint("; case a\n; run b\n") == ":2: the last case has no '; expect'");
}
