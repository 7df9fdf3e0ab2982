#include "backends/rocm/link.h"

#include <lld/Common/Driver.h>
#include <llvm/Support/raw_ostream.h>
#include <stdlib.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>

#include "quern/error.h"

LLD_HAS_DRIVER(elf)

namespace quern::rocm {

namespace {

namespace fs = std::filesystem;

/// A folder for lld's files, gone at the end.
class Folder {
 public:
  Folder() {
    std::string pattern = (fs::temp_directory_path() / "quern-XXXXXX").string();
    if (!mkdtemp(pattern.data()))
      throw Error("cannot make a folder for lld like " + pattern + ": " + std::strerror(errno));
    path_ = pattern;
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  std::string file(const char* name) const { return (path_ / name).string(); }

 private:
  fs::path path_;
};

void write(const std::string& path, std::span<const std::byte> bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()), std::streamsize(bytes.size()));
  out.close();
  if (!out) throw Error("cannot write " + std::to_string(bytes.size()) + " bytes to " + path);
}

std::vector<std::byte> read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::vector<std::byte> bytes(size_t(fs::file_size(path)));
  in.read(reinterpret_cast<char*>(bytes.data()), std::streamsize(bytes.size()));
  if (!in) throw Error("cannot read " + path);
  return bytes;
}

/// lld keeps its state in globals.
std::mutex& lld_mutex() {
  static std::mutex one;
  return one;
}

}  // namespace

std::vector<std::byte> link(std::span<const std::byte> object, const std::string& name) {
  Folder folder;
  const std::string in = folder.file("kernel.o"), out = folder.file("kernel.so");
  write(in, object);
  const char* args[] = {"ld.lld", "-shared", "--no-undefined", in.c_str(), "-o", out.c_str()};
  std::string text;
  llvm::raw_string_ostream errors(text);
  std::lock_guard lock(lld_mutex());
  lld::Result result = lld::lldMain(args, llvm::nulls(), errors, {{lld::Gnu, &lld::elf::link}});
  if (result.retCode != 0) throw InternalError("lld cannot link kernel '" + name + "': " + text);
  return read(out);
}

}  // namespace quern::rocm
