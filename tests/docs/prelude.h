#pragma once
// What every block of docs/guide.md may use.
#include <quern/algorithms.h>
#include <quern/autodiff.h>
#include <quern/autodiff/check.h>
#include <quern/complex.h>
#include <quern/decompose.h>
#include <quern/dlpack.h>
#include <quern/files.h>
#include <quern/matrix.h>
#include <quern/quaternion.h>
#include <quern/rays.h>
#include <quern/runtime/observer.h>
#include <quern/sample.h>
#include <quern/sparse.h>
#include <quern/sparse/files.h>
#include <quern/sparse/vdb.h>

#include <cmath>
#include <filesystem>

#include "tests/end_to_end/devices.h"

using namespace qn::lang;
using cudaStream_t = struct CUstream_st*;  // as CUDA's headers have it

#define expect(...) REQUIRE((__VA_ARGS__))

inline bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

/// A folder for the blocks that write files.
inline const std::string folder = [] {
  std::filesystem::path path = std::filesystem::temp_directory_path() / "quern-guide";
  std::filesystem::create_directories(path);
  return path.string();
}();
