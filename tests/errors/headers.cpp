// What a program pays for including Quern: few and light headers of the standard library. (What
// that costs in seconds is measured by `quern_bench compile`.)
#include <set>
#include <sstream>

#include "tests/catch.h"
#include "tests/errors/compiler.h"

TEST_CASE("the umbrella header takes only light headers from the standard library") {
  // <string>, and with it <stdexcept>, costs more to parse than all of Quern; <cmath>, <vector>,
  // <memory>, <functional> cost more still.
  const std::set<std::string> light = {"cstddef", "cstdint", "exception",  "initializer_list",
                                       "iosfwd",  "utility", "type_traits"};
  auto out = quern::test::run("echo '#include <quern/quern.h>' | " +
                              quern::test::syntax_check(QUERN_CXX) + "-H -x c++ -");
  REQUIRE(out.status == 0);
  // A line for each header opened: as many dots as it is deep, then its path.
  std::vector<std::string> stack;
  std::istringstream lines(out.text);
  size_t own = 0;
  auto is_own = [](const std::string& path) { return path.rfind(QUERN_ROOT, 0) == 0; };
  for (std::string line; std::getline(lines, line);) {
    size_t depth = line.find_first_not_of('.');
    if (depth == 0 || depth == std::string::npos || line[depth] != ' ') continue;
    std::string path = line.substr(depth + 1);
    stack.resize(depth - 1);
    bool direct = stack.empty() || is_own(stack.back());
    stack.push_back(path);
    if (is_own(path)) {
      own++;
      continue;
    }
    if (!direct || path.find("stdc-predef.h") != std::string::npos) continue;
    INFO(path);
    CHECK(light.count(path.substr(path.rfind('/') + 1)) == 1);
    CHECK(path.find("/bits/") == std::string::npos);
  }
  CHECK(own > 20);
}
