#include "dsl/files/bytes.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

#include "quern/error.h"

namespace quern::detail {
namespace fs = std::filesystem;

namespace {

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, Close>;

[[noreturn]] void fail(const char* verb, const std::string& path, const std::string& why, Loc loc) {
  throw Error(loc, std::string("cannot ") + verb + " '" + path + "': " + why);
}

/// Removes the unfinished file unless it was published.
struct Temporary {
  std::string name;
  ~Temporary() {
    std::error_code ignored;  // an error is already on its way
    if (!name.empty()) fs::remove(name, ignored);
  }
};

/// The reason it failed, or nothing.
std::string write_all(const std::string& name, const char* mode,
                      std::initializer_list<std::span<const std::byte>> parts) {
  errno = 0;
  File file(std::fopen(name.c_str(), mode));
  if (!file) return std::strerror(errno);
  for (std::span<const std::byte> part : parts)
    if (!part.empty() && std::fwrite(part.data(), 1, part.size(), file.get()) != part.size())
      return std::strerror(errno);
  return std::fclose(file.release()) == 0 ? "" : std::strerror(errno);
}

}  // namespace

std::vector<std::byte> read_bytes(const std::string& path, Loc loc) {
  File file(std::fopen(path.c_str(), "rb"));
  if (!file) fail("open", path, std::strerror(errno), loc);
  std::vector<std::byte> bytes;
  size_t used = 0, got = 0;
  do {
    if (used == bytes.size()) bytes.resize(std::max<size_t>(1 << 16, used * 2));
    got = std::fread(bytes.data() + used, 1, bytes.size() - used, file.get());
    used += got;
  } while (got > 0);
  if (std::ferror(file.get())) fail("read", path, std::strerror(errno), loc);
  bytes.resize(used);
  return bytes;
}

void write_bytes(const std::string& path, std::initializer_list<std::span<const std::byte>> parts,
                 Loc loc) {
  static std::atomic<unsigned> counter = 0;
  std::error_code failure;
  const fs::file_status status = fs::status(path, failure);
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    if (std::string why = write_all(path, "wb", parts); !why.empty()) fail("write", path, why, loc);
    return;
  }
  const fs::path target = fs::weakly_canonical(path, failure);  // the file behind a link
  if (failure) fail("write", path, failure.message(), loc);
  Temporary unfinished{target.string() + "." + std::to_string(getpid()) + "." +
                       std::to_string(counter++) + ".tmp"};
  if (std::string why = write_all(unfinished.name, "wbx", parts); !why.empty())
    fail("write", path, why, loc);
  if (fs::exists(status)) fs::permissions(unfinished.name, status.permissions(), failure);
  if (!failure) fs::rename(unfinished.name, target, failure);
  if (failure) fail("write", path, failure.message(), loc);
  unfinished.name.clear();
}

}  // namespace quern::detail
