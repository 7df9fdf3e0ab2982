#include "tools/gpus/ptxas.h"

#include <llvm/Support/Program.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace quern::gpus {

namespace {

/// One folder for the process, gone at its end.
const std::string& folder() {
  struct Folder {
    std::string path = std::filesystem::temp_directory_path() / "quern-ptxas-XXXXXX";
    Folder() {
      if (!mkdtemp(path.data())) throw std::runtime_error("no folder " + path);
    }
    ~Folder() { std::filesystem::remove_all(path); }
  };
  static const Folder one;
  return one.path;
}

std::vector<char> contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

const std::optional<std::string>& ptxas() {
  static const std::optional<std::string> path = []() -> std::optional<std::string> {
    auto found = llvm::sys::findProgramByName("ptxas");
    if (!found) found = llvm::sys::findProgramByName("ptxas", {"/usr/local/cuda/bin"});
    if (!found) return std::nullopt;
    return *found;
  }();
  return path;
}

Assembled assemble(std::span<const std::byte> ptx, const std::string& arch) {
  static std::atomic<int> number;
  std::string base = folder() + "/" + std::to_string(number++);
  std::string in = base + ".ptx", out = base + ".cubin", log = base + ".log";
  std::ofstream(in).write(reinterpret_cast<const char*>(ptx.data()), std::streamsize(ptx.size()));
  std::optional<llvm::StringRef> redirects[] = {llvm::StringRef(""), llvm::StringRef(log),
                                                llvm::StringRef(log)};
  int status = llvm::sys::ExecuteAndWait(*ptxas(), {*ptxas(), "-v", "-arch=" + arch, "-o", out, in},
                                         std::nullopt, redirects);
  std::vector<char> said = contents(log);
  Assembled result{status == 0, {said.begin(), said.end()}, contents(out)};
  for (const std::string& file : {in, out, log}) std::filesystem::remove(file);
  return result;
}

}  // namespace quern::gpus
