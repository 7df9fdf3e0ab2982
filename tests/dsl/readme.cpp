#include <fstream>
#include <iterator>
#include <string>

#include "tests/catch.h"

TEST_CASE("the README's first program is examples/first.cpp") {
  auto text = [](const std::string& path) {
    std::ifstream in(path);
    REQUIRE(in.good());
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  const std::string root = QUERN_ROOT "/";
  CHECK(text(root + "README.md").find(text(root + "examples/first.cpp")) != std::string::npos);
}
