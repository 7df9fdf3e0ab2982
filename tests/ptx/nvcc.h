#pragma once
// PTX of CUDA's own compiler, where it is installed.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/catch.h"

namespace quern::test {

/// What nvcc makes of a source file; "", and a warning, where it is not installed.
inline std::string compiled_by_nvcc(const std::string& source, const std::string& options) {
  for (const std::string nvcc : {"nvcc", "/usr/local/cuda/bin/nvcc"}) {
    if (std::system((nvcc + " --version >/dev/null 2>&1").c_str()) != 0) continue;
    std::string folder = std::filesystem::temp_directory_path() / "quern-nvcc-XXXXXX";
    REQUIRE(mkdtemp(folder.data()));
    const std::string file = folder + "/out.ptx";
    const int status = std::system(
        (nvcc + " -ptx -arch=compute_80 " + options + " -o " + file + " " + source).c_str());
    std::stringstream text;
    text << std::ifstream(file).rdbuf();
    std::filesystem::remove_all(folder);
    REQUIRE(status == 0);
    return text.str();
  }
  NOT_RUN("nvcc is not installed: nothing was compared with its code");
  return "";
}

}  // namespace quern::test
