// Programs that must not compile: one error, in words, with the user's line, in a few lines of
// text. Each file in refuse/ says on its first line what the compiler must say ("a | b": either),
// and marks the offending line with `// here`; `// here (g++)` where clang names only a library's
// line.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/catch.h"

namespace {

struct Case {
  std::vector<std::string> expected;
  int line = 0;
  bool gcc_only = false;
};

Case read(const std::filesystem::path& file) {
  Case c;
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

std::string compile(const std::filesystem::path& file, int& status) {
  std::string root = QUERN_ROOT;
  std::string command = std::string(QUERN_CXX) + " -std=c++20 -fsyntax-only -I" + root +
                        "/ir/include -I" + root + "/dsl/include " + file.string() + " 2>&1";
  std::string out;
  FILE* pipe = popen(command.c_str(), "r");
  REQUIRE(pipe);
  char buffer[4096];
  while (size_t n = fread(buffer, 1, sizeof buffer, pipe)) out.append(buffer, n);
  status = pclose(pipe);
  return out;
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

}  // namespace

TEST_CASE("programs that must not compile") {
  size_t cases = 0;
  for (const auto& entry : std::filesystem::directory_iterator(QUERN_TESTS "/refuse")) {
    Case c = read(entry.path());
    int status = 0;
    std::string out = compile(entry.path(), status);
    INFO(entry.path().filename().string() << ":\n" << out);
    CHECK(status != 0);
    bool said = false;
    for (const std::string& text : c.expected) said = said || out.find(text) != std::string::npos;
    CHECK(said);
    bool clang = out.find("error generated") != std::string::npos ||
                 out.find("errors generated") != std::string::npos;
    std::string place = entry.path().filename().string() + ":" + std::to_string(c.line) + ":";
    if (!clang || !c.gcc_only) CHECK(out.find(place) != std::string::npos);
    CHECK(count(out, "error:") <= 2);
    CHECK(lines_of_text(out) <= 12);
    cases++;
  }
  CHECK(cases >= 30);
}
