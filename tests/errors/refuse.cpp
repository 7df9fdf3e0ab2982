// Programs that must not compile: one error, in words, with the user's line, in a few lines of
// text. Each file in refuse/ says on its first line what the compiler must say ("a | b": either),
// and marks the offending line with `// here`; `// here (g++)` where clang names only a library's
// line.
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/catch.h"
#include "tests/errors/compiler.h"

namespace {

/// Lines that a refusal may take, excerpts of the source excepted: "included from", "in function",
/// the error, and for what types it was instantiated. The longest takes 8.
constexpr size_t most_lines = 9;

struct Case {
  std::filesystem::path file;
  std::vector<std::string> expected;
  int line = 0;
  bool gcc_only = false;
};

Case read(const std::filesystem::path& file) {
  Case c;
  c.file = file;
  std::ifstream in(file);
  std::string text;
  for (int line = 1; std::getline(in, text); line++) {
    const std::string mark = "// expect: ";
    if (line == 1) {
      REQUIRE(text.rfind(mark, 0) == 0);
      text = text.substr(mark.size());
      for (size_t at; (at = text.find(" | ")) != std::string::npos; text = text.substr(at + 3))
        c.expected.push_back(text.substr(0, at));
      c.expected.push_back(text);
    }
    if (text.find("// here") != std::string::npos) c.line = line;
    if (text.find("// here (g++)") != std::string::npos) c.gcc_only = true;
  }
  return c;
}

size_t count(const std::string& text, const std::string& word) {
  size_t n = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) n++;
  return n;
}

/// Lines of a compiler's output, less the source excerpts ("  36 |  code") that compilers add to
/// taste.
size_t lines_of_text(const std::string& out) {
  std::istringstream in(out);
  size_t n = 0;
  for (std::string line; std::getline(in, line);) {
    size_t first = line.find_first_not_of(" 0123456789");
    n += first != std::string::npos && line[first] != '|';
  }
  return n;
}

void expect_refusals(const std::string& compiler) {
  std::vector<Case> cases;
  for (const auto& entry : std::filesystem::directory_iterator(QUERN_TESTS "/refuse"))
    cases.push_back(read(entry.path()));
  CHECK(cases.size() >= 40);
  std::vector<quern::test::Output> outputs(cases.size());
  quern::test::in_parallel(cases.size(), [&](size_t k) {
    outputs[k] = quern::test::run(quern::test::syntax_check(compiler) + cases[k].file.string());
  });
  for (size_t k = 0; k < cases.size(); k++) {
    const Case& c = cases[k];
    const std::string& out = outputs[k].text;
    INFO(compiler << " " << c.file.filename().string() << ":\n" << out);
    CHECK(outputs[k].status != 0);
    bool said = false;
    for (const std::string& text : c.expected) said = said || out.find(text) != std::string::npos;
    CHECK(said);
    bool clang = count(out, " error generated") + count(out, " errors generated") > 0;
    std::string place = c.file.filename().string() + ":" + std::to_string(c.line) + ":";
    if (!clang || !c.gcc_only) CHECK(out.find(place) != std::string::npos);
    CHECK(count(out, "error: ") == 1);
    CHECK(lines_of_text(out) <= most_lines);
  }
}

}  // namespace

TEST_CASE("programs that must not compile", "[host]") { expect_refusals(QUERN_CXX); }

TEST_CASE("programs that must not compile with clang either", "[.long][clang]") {
  const quern::test::Output found = quern::test::run("command -v clang++-19");
  INFO("command -v clang++-19");
  REQUIRE(found.status == 0);
  expect_refusals("clang++-19");
}
