// Quern as a dependency of somebody else's project (outside/): installed and found, and added as a
// folder of sources.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <regex>

#include "tests/catch.h"
#include "tests/errors/compiler.h"

namespace {

namespace fs = std::filesystem;
using quern::test::Output;

/// A folder that goes with its owner.
class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "quern-package-XXXXXX").string();
    if (!mkdtemp(name.data())) throw std::runtime_error("cannot make " + name);
    path_ = name;
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  fs::path path_;
};

std::string must_run(const std::string& command) {
  Output out = quern::test::run(command);
  INFO(command << "\n" << out.text);
  REQUIRE(out.status == 0);
  return out.text;
}

/// Configures and builds the outside project in `build` and runs its programs: on every device that
/// the build has, and that is present, results are right. `holder` is the shared library that Quern
/// is in: it stays when it is closed.
void expect_working(const std::string& build, const std::string& options,
                    const std::string& holder = "libplugin.so") {
  must_run("cmake -S " QUERN_TESTS "/outside -B " + build + " -G Ninja " + options);
  must_run("cmake --build " + build);
  for (const std::string& out : {must_run(build + "/sums " QUERN_BUILT),
                                 must_run(build + "/host " + build + "/libplugin.so " QUERN_BUILT),
                                 must_run(build + "/picture " + build + "/grey.png"),
                                 must_run(build + "/grids " + build + "/u.vdb")}) {
    INFO(out);
    CHECK_THAT(out, contains("right"));
    CHECK(out.find("wrong") == std::string::npos);
    if (out.find("absent") != std::string::npos) WARN(out);
  }
  CHECK_THAT(must_run("readelf -d " + build + "/" + holder), contains("NODELETE"));
}

}  // namespace

TEST_CASE("an outside project finds the installed Quern, wherever it was moved") {
  Folder folder;
  must_run("cmake --install " QUERN_BUILD " --prefix " + (folder / "first"));
  fs::rename(folder / "first", folder / "moved");
  expect_working(folder / "build",
                 "-DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_COMPILER=" QUERN_CXX
                 " -DCMAKE_CXX_FLAGS=" QUERN_SANITIZE_FLAGS " -DCMAKE_PREFIX_PATH=" +
                     (folder / "moved") + " -DEXPECTED_PREFIX=" + (folder / "moved"));
}

TEST_CASE("find_package refuses another version and back ends that are not there") {
  Folder folder;
  must_run("cmake --install " QUERN_BUILD " --prefix " + (folder / "prefix"));
  std::ofstream(folder / "CMakeLists.txt")
      << "cmake_minimum_required(VERSION 3.25)\n"
         "project(asking LANGUAGES CXX)\n"
         "foreach(wanted 99 0.1 \"0.1 COMPONENTS interpreter\" \"0.1 COMPONENTS opencl\" "
         "\"0.1 COMPONENTS files vdb\")\n"
         "  separate_arguments(words UNIX_COMMAND \"${wanted}\")\n"
         "  unset(quern_DIR CACHE)\n"
         "  find_package(quern ${words} QUIET)\n"
         "  message(\"${wanted}: found=${quern_FOUND}\")\n"
         "endforeach()\n";
  std::string out = must_run("cmake -S " + (folder / "") + " -B " + (folder / "build") +
                             " -DCMAKE_PREFIX_PATH=" + (folder / "prefix"));
  auto found = [&](const std::string& wanted) {
    return std::regex_search(out, std::regex(wanted + ": found=(1|TRUE)"));
  };
  CHECK(found("0.1"));
  CHECK(found("0.1 COMPONENTS interpreter"));
  CHECK_FALSE(found("99"));
  CHECK_FALSE(found("0.1 COMPONENTS opencl"));
  CHECK(found("0.1 COMPONENTS files vdb") == QUERN_BUILT_VDB);
}

TEST_CASE("what a back end needs and lacks is named, with its package and the option") {
  Folder folder;
  auto refusal = [&](const std::string& options) {
    Output out = quern::test::run("cmake -S " QUERN_ROOT " -B " + (folder / "build") +
                                  " -DQUERN_DEVELOP=OFF " + options);
    INFO(out.text);
    CHECK(out.status != 0);
    return std::regex_replace(out.text, std::regex("\\s+"), " ");
  };
  CHECK_THAT(refusal("-DCMAKE_DISABLE_FIND_PACKAGE_LLVM=ON"),
             contains("(Debian: llvm-19-dev). To do without it, configure with -DQUERN_CPU=OFF "
                      "-DQUERN_CUDA=OFF -DQUERN_ROCM=OFF"));
  // Without the back ends on LLVM nobody asks for it; Vulkan's library is still needed.
  CHECK_THAT(
      refusal("-DCMAKE_DISABLE_FIND_PACKAGE_SPIRV-Tools=ON -DQUERN_CPU=OFF -DQUERN_CUDA=OFF "
              "-DQUERN_ROCM=OFF"),
      contains("(Debian: spirv-tools). To do without it, configure with -DQUERN_VULKAN=OFF"));
  must_run("cmake -S " QUERN_ROOT " -B " + (folder / "build") + " -DQUERN_VULKAN=OFF");
}

// The cases from here on build all of Quern, twice each.
namespace {
const std::string in_release = "-DCMAKE_BUILD_TYPE=Release ";

void expect_quiet(const std::string& compiler) {
  Folder folder;
  must_run("cmake -S " QUERN_ROOT " -B " + (folder / "build") + " -G Ninja " + in_release +
           "-DQUERN_DEVELOP=OFF -DQUERN_WERROR=ON -DCMAKE_CXX_COMPILER=" + compiler);
  must_run("cmake --build " + (folder / "build"));
}
}  // namespace

TEST_CASE("an outside project adds Quern's sources, in Release, with g++", "[.long][package-gcc]") {
  Folder folder;
  expect_working(folder / "build",
                 in_release + "-DQUERN_SOURCE=" QUERN_ROOT " -DCMAKE_CXX_COMPILER=g++");
}

TEST_CASE("Quern's own sources compile in Release without warnings, with g++",
          "[.long][package-gcc]") {
  expect_quiet("g++");
}

TEST_CASE("an outside project adds Quern's sources, in Release, shared, with clang",
          "[.long][package-clang]") {
  must_run("command -v clang++-19");
  Folder folder;
  expect_working(folder / "build",
                 in_release + "-DQUERN_SOURCE=" QUERN_ROOT
                              " -DBUILD_SHARED_LIBS=ON -DCMAKE_CXX_COMPILER=clang++-19",
                 "quern/libquern.so");
  // Nothing of the libraries inside is shown to others of the process.
  std::string shown = must_run("nm -DC --defined-only " + (folder / "build/quern/libquern.so"));
  CHECK_THAT(shown, contains("quern::"));
  for (const char* inside : {"llvm::", "lld::", "spv"}) CHECK_THAT(shown, !contains(inside));
}

TEST_CASE("Quern's own sources compile in Release without warnings, with clang",
          "[.long][package-clang]") {
  must_run("command -v clang++-19");
  expect_quiet("clang++-19");
}
