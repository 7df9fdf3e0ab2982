#pragma once
#include <quern/files.h>
#include <quern/host.h>
#include <quern/quern.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/catch.h"

namespace qn = quern;

/// A folder of its own that goes with the test.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "quern-XXXXXX").string();
    if (!mkdtemp(name.data())) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  /// A file with these bytes; its path.
  std::string file(const std::string& name, const std::string& bytes) const {
    std::ofstream(*this / name, std::ios::binary) << bytes;
    return *this / name;
  }
  int files() const { return int(std::distance(std::filesystem::directory_iterator(path_), {})); }

 private:
  std::filesystem::path path_;
};

inline std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

/// `f` throws Error that blames `line` of `file` and says each of `texts`.
template <class F>
void fails(const char* file, int line, std::initializer_list<std::string> texts, const F& f) {
  try {
    f();
  } catch (const qn::Error& e) {
    INFO(e.what());
    for (const std::string& text : texts) {
      INFO("wanted: " << text);
      CHECK(e.message().find(text) != std::string::npos);
    }
    CHECK(std::string(e.loc().file) == file);
    CHECK(e.loc().line == line);
    return;
  }
  FAIL("no error in line " << line);
}
#define FAILS(expression, ...) fails(__FILE__, __LINE__, {__VA_ARGS__}, [&] { (void)(expression); })
