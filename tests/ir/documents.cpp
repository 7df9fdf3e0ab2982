// docs/semantics.md says what every operation of the table means.
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "quern/ir/ir.h"
#include "tests/catch.h"

namespace {
/// The words that stand in code at the beginning of a line or of a table's row: `add a, b` `sub`.
/// Those of the section on derivatives, or of all others.
std::set<std::string> documented(bool derivatives) {
  std::ifstream in(QUERN_ROOT "/docs/semantics.md");
  REQUIRE(in);
  std::set<std::string> words;
  const std::regex code("`([^`]*)`"), word("[a-z_0-9]+");
  bool inside = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("#")) inside = line == "### Derivatives";
    if (inside != derivatives) continue;
    std::string cell = line.rfind("| `", 0) == 0 ? line.substr(2, line.find(" | ", 2) - 2)
                       : line.rfind("`", 0) == 0 ? line.substr(0, line.find('`', 1) + 1)
                                                 : "";
    for (std::sregex_iterator c(cell.begin(), cell.end(), code), end; c != end; ++c) {
      std::string names = (*c)[1];
      for (std::sregex_iterator w(names.begin(), names.end(), word); w != end; ++w)
        words.insert(w->str());
    }
  }
  return words;
}
}  // namespace

TEST_CASE("every operation stands in docs/semantics.md") {
  const std::set<std::string> words = documented(false);
  for (std::string name : {
#define QUERN_OP(name, rule, operands, classes, flags, fold, partial, weight) #name,
#define QUERN_FORM(name, form, kind, names, regions, levels, flags) #name,
#include "quern/ir/ops.def"
       }) {
    if (name.back() == '_') name.pop_back();  // while_ is written while
    INFO(name);
    CHECK(words.count(name) == 1);
  }
}

TEST_CASE("every operation that has a derivative stands with it in docs/semantics.md") {
  const std::set<std::string> words = documented(true);
  struct Row {
    std::string name, partial;
  };
  const Row rows[] = {
#define QUERN_OP(name, rule, operands, classes, flags, fold, partial, weight) {#name, #partial},
#define QUERN_FORM(name, form, kind, names, regions, levels, flags)
#include "quern/ir/ops.def"
  };
  for (const Row& row : rows) {
    INFO(row.name);
    CHECK(words.count(row.name) == (row.partial != "zero"));
  }
}
