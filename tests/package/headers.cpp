// Quern's headers beside other libraries': in either order, and no names of theirs taken.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "tests/catch.h"
#include "tests/errors/compiler.h"

namespace {

namespace fs = std::filesystem;
using quern::test::Output;

const std::string compile = std::string(QUERN_CXX) +
                            " -std=c++20 -fsyntax-only -I" QUERN_ROOT "/ir/include -I" QUERN_ROOT
                            "/runtime/include -I" QUERN_ROOT "/dsl/include -I" QUERN_ROOT
                            "/sparse/include -I" QUERN_ROOT "/autodiff/include ";

/// Every header that users may include.
std::vector<std::string> public_headers() {
  std::vector<std::string> names;
  for (const char* folder :
       {"/dsl/include/quern", "/sparse/include/quern", "/autodiff/include/quern"})
    for (const auto& entry : fs::directory_iterator(QUERN_ROOT + std::string(folder)))
      if (entry.is_regular_file() && entry.path().filename() != "else.h")
        names.push_back("quern/" + entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::string include(const std::string& header) { return "#include <" + header + ">\n"; }

std::string all_of_quern() {
  std::string text = include("quern/quern.h");
  for (const std::string& header : public_headers()) text += include(header);
  return text;
}

Output checked(const std::string& program, const std::string& options = "") {
  return quern::test::run("printf '%s' '" + program + "' | " + compile + options + " -x c++ -");
}

/// What a program does with the language, after all of its headers.
const std::string use = R"(
#include <quern/else.h>
namespace qn = quern;
using namespace qn::lang;
void run(qn::Device& device) {
  qn::Field<float> x{device, {8}};
  qn::Kernel k = [&] {
    for (auto i : x) {
      Var<int> n = 0;
      While(n < 3) { n += 1; }
      If(x[i] > 0.5f) { x[i] = 1.0f; } Else If(n > 2) { x[i] = 2.0f; } Else { x[i] = 0.0f; }
    }
  };
  k();
}
)";

struct Library {
  std::string header, options, use;
};

}  // namespace

TEST_CASE("other libraries' headers stand before or after Quern's") {
  const std::vector<Library> libraries = {
      {"Eigen/Dense", "-isystem /usr/include/eigen3",
       "float dot(Eigen::Vector3f a) { return a.dot(a); }\n"
       "auto choose(Eigen::ArrayXf a) { return (a > 0).select(a, -a).eval(); }\n"},
      {"fmt/format.h", "", "std::string text() { return fmt::format(\"{}\", 1); }\n"},
      {"CLI/CLI.hpp", "", "void parse(CLI::App& app, int& n) { app.add_option(\"n\", n); }\n"},
      {"opencv2/core.hpp", "-isystem /usr/include/opencv4", "cv::Mat image;\n"},
      {"openvdb/openvdb.h", "", "openvdb::FloatGrid::Ptr grid;\n"},
      {"vulkan/vulkan.h", "", "VkInstance instance;\n"},
      {"termios.h", "", "termios settings;\n"},
      {"complex.h", "", ""}};
  size_t tried = 0;
  for (const Library& library : libraries) {
    if (checked(include(library.header), library.options).status != 0) {
      WARN(library.header << " is not installed: nothing is known about it");
      continue;
    }
    tried++;
    const std::string theirs = include(library.header);
    for (const std::string& program : {theirs + all_of_quern() + use + library.use,
                                       all_of_quern() + theirs + use + library.use}) {
      Output out = checked(program, "-Wall -Wextra -Werror " + library.options);
      INFO(program << out.text.substr(0, 2000));
      CHECK(out.status == 0);
    }
  }
  CHECK(tried >= 4);  // what ./dev setup installs, and the C library's
}

TEST_CASE("Quern defines few macros, and takes the others away again") {
  std::ofstream file;
  Output out =
      quern::test::run("printf '%s' '" + all_of_quern() + "' | " + compile + " -dD -E -x c++ -");
  REQUIRE(out.status == 0);
  // `# LINE "FILE" …` says where the next lines are from; macros are defined and undefined in order.
  std::set<std::string> macros;
  bool own = false;
  std::istringstream lines(out.text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string first, name;
    words >> first >> name;
    if (first == "#" && line.find('"') != std::string::npos)
      own = line.find(QUERN_ROOT) != std::string::npos;
    else if (own && first == "#define")
      macros.insert(name.substr(0, name.find('(')));
    else if (first == "#undef")
      macros.erase(name);
  }
  std::set<std::string> outside_prefix;
  for (const std::string& name : macros)
    if (name.rfind("QUERN_", 0) != 0) outside_prefix.insert(name);
  CHECK(outside_prefix == std::set<std::string>{"If", "While"});
  CHECK(macros.count("QUERN_STRUCT") == 1);
  CHECK(macros.count("QUERN_BINARY") == 0);

  Output none =
      checked(all_of_quern() +
                  "#if defined(If) || defined(While) || defined(Else)\n#error macros\n#endif\n",
              "-DQUERN_NO_MACROS");
  INFO(none.text);
  CHECK(none.status == 0);
}
