// Runs the cases of tests/passes/*.qir (see filetest.h). Each is also run by the interpreter before
// and after, but for those with fields on trees, which are the runtime's: tests/sparse/ runs such.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "ir/passes/registry.h"
#include "quern/ir/text.h"
#include "quern/ir/verify.h"
#include "tests/catch.h"
#include "tests/passes/filetest.h"
#include "tests/passes/meaning.h"

using namespace quern;
using namespace quern::ir;

namespace {

std::string at(const test::CaseFile& file, const test::FileCase& c) {
  return file.path + ":" + std::to_string(c.line) + " (" + c.name + ")";
}

/// The text after the passes of one case, checked on the way.
std::string result_of(const test::CaseFile& file, const test::FileCase& c) {
  auto kernel = parse(c.before, at(file, c));
  expect_valid(*kernel, "parsing " + at(file, c));
  auto before = clone(*kernel);
  for (const std::string& name : c.passes) {
    const NamedPass* pass = pass_named(name);
    if (!pass) throw Error(at(file, c) + ": there is no pass '" + name + "'");
    pass->run(*kernel);
    expect_valid(*kernel, name);
  }
  const bool has_trees =
      std::ranges::any_of(kernel->bindings, [](const Binding& b) { return b.layout.is_sparse(); });
  const std::string difference =
      c.passes.empty() || has_trees ? "" : test::difference(*before, *kernel);
  if (!difference.empty()) FAIL_CHECK(at(file, c) << " means something else: " << difference);
  return print(*kernel, {.notes = c.shown});
}

std::vector<std::string> files() {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(QUERN_TESTS))
    if (entry.path().extension() == ".qir") out.push_back(entry.path().string());
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

TEST_CASE("passes turn text into the text expected") {
  const char* bless = std::getenv("QUERN_BLESS");
  REQUIRE_FALSE(files().empty());
  for (const std::string& path : files()) {
    const test::CaseFile file = test::read_cases(path);
    std::vector<std::string> results;
    for (const test::FileCase& c : file.cases) {
      try {
        results.push_back(result_of(file, c));
      } catch (const std::exception& e) {
        FAIL_CHECK(at(file, c) << ": " << e.what());
        results.push_back(c.expected);
      }
      if (!bless && results.back() != c.expected)
        FAIL_CHECK(at(file, c) << " expected\n" << c.expected << "\nbut got\n" << results.back());
    }
    if (bless && std::strcmp(bless, "1") == 0)
      std::ofstream(path, std::ios::binary) << test::blessed(file, results);
  }
}

TEST_CASE("every pass has one name") {
  for (const NamedPass& p : passes()) CHECK(pass_named(p.name) == &p);
  CHECK(pass_named("no_such_pass") == nullptr);
}
