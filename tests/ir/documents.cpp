// docs/semantics.md says what every operation of the table means.
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "quern/ir/ir.h"
#include "tests/catch.h"

TEST_CASE("every operation stands in docs/semantics.md") {
  std::ifstream in(QUERN_ROOT "/docs/semantics.md");
  REQUIRE(in);
  // The words that stand in code at the beginning of a line or of a table's row: `add a, b` `sub`.
  std::set<std::string> documented;
  const std::regex code("`([^`]*)`"), word("[a-z_0-9]+");
  for (std::string line; std::getline(in, line);) {
    std::string cell = line.rfind("| `", 0) == 0 ? line.substr(2, line.find(" | ", 2) - 2)
                       : line.rfind("`", 0) == 0 ? line.substr(0, line.find('`', 1) + 1)
                                                 : "";
    for (std::sregex_iterator c(cell.begin(), cell.end(), code), end; c != end; ++c) {
      std::string names = (*c)[1];
      for (std::sregex_iterator w(names.begin(), names.end(), word); w != end; ++w)
        documented.insert(w->str());
    }
  }
  for (std::string name : {
#define QUERN_OP(name, rule, operands, classes, flags, fold, partial, weight) #name,
#define QUERN_FORM(name, form, kind, names, regions, levels, flags) #name,
#include "quern/ir/ops.def"
       }) {
    if (name.back() == '_') name.pop_back();  // while_ is written while
    INFO(name);
    CHECK(documented.count(name) == 1);
  }
}
