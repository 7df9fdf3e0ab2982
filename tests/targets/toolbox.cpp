#include "tests/targets/toolbox.h"

#include <llvm/Support/Program.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <future>

#include "backends/cuda/compiler.h"
#include "backends/rocm/compiler.h"
#include "runtime/variant.h"
#include "tests/targets/code_object.h"

namespace quern::test {

namespace {

std::atomic<size_t> kernels, ptx, assembled, objects;

/// One folder for the process, gone at its end.
const std::string& folder() {
  struct Folder {
    std::string path = "/tmp/quern-targets-XXXXXX";
    Folder() {
      if (!mkdtemp(path.data())) throw std::runtime_error("no folder " + path);
    }
    ~Folder() { std::filesystem::remove_all(path); }
  };
  static const Folder one;
  return one.path;
}

std::string contents(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// What ptxas says against the text; empty: nothing.
std::string assemble(const std::vector<std::byte>& text, const std::string& arch) {
  static std::atomic<int> number;
  std::string base = folder() + "/" + std::to_string(number++);
  std::string in = base + ".ptx", out = base + ".cubin", log = base + ".log";
  std::ofstream(in).write(reinterpret_cast<const char*>(text.data()), std::streamsize(text.size()));
  std::optional<llvm::StringRef> redirects[] = {llvm::StringRef(""), llvm::StringRef(log),
                                                llvm::StringRef(log)};
  int status = llvm::sys::ExecuteAndWait(*ptxas(), {*ptxas(), "-arch=" + arch, "-o", out, in},
                                         std::nullopt, redirects);
  std::string said = status == 0 ? "" : "ptxas: " + contents(log);
  for (const std::string& file : {in, out, log}) std::filesystem::remove(file);
  assembled++;
  return said;
}

std::string compile(const ir::Kernel& lowered, const Gpu& gpu) {
  try {
    runtime::Image image = gpu.compiler->compile(lowered, gpu.target);
    if (gpu.target.backend == "rocm") {
      objects++;
      return fault_of_code_object(image.code, lowered, gpu.target);
    }
    ptx++;
    return ptxas() ? assemble(image.code, gpu.ptxas_arch) : "";
  } catch (const std::exception& e) {
    return e.what();
  }
}

/// GPUs of one vendor take the same lowered kernel.
std::string compile_for(const std::string& backend, const ir::Kernel& kernel,
                        const ir::Signature& signature) {
  std::unique_ptr<ir::Kernel> lowered;
  std::string faults;
  for (const Gpu& gpu : gpus()) {
    if (gpu.target.backend != backend) continue;
    if (!lowered) lowered = runtime::prepare(kernel, signature, gpu.target).kernel;
    std::string fault = compile(*lowered, gpu);
    if (!fault.empty()) faults += gpu.name + ": " + fault + "\n";
  }
  return faults;
}

}  // namespace

const std::vector<Gpu>& gpus() {
  static const cuda::Compiler ptx_compiler;
  static const rocm::Compiler object_compiler;
  static const std::vector<Gpu> all = [] {
    std::vector<Gpu> list;
    for (int major : {7, 8, 9})
      list.push_back({"sm_" + std::to_string(major) + "0", cuda::target_for(10 * major),
                      &ptx_compiler, major == 7 ? "sm_75" : "sm_" + std::to_string(major) + "0"});
    for (const char* name : {"gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1201"})
      list.push_back({name, rocm::target_for(name), &object_compiler, ""});
    list.push_back({"gfx1030 in waves of 64", rocm::target_for("gfx1030", rocm::Wave::lanes_64),
                    &object_compiler, ""});
    return list;
  }();
  return all;
}

const std::optional<std::string>& ptxas() {
  static const std::optional<std::string> path = []() -> std::optional<std::string> {
    auto found = llvm::sys::findProgramByName("ptxas");
    if (!found) found = llvm::sys::findProgramByName("ptxas", {"/usr/local/cuda/bin"});
    if (!found) return std::nullopt;
    return *found;
  }();
  return path;
}

std::string compile_everywhere(const ir::Kernel& kernel, const ir::Signature& signature) {
  kernels++;
  auto ours = [&](const char* backend) { return compile_for(backend, kernel, signature); };
  auto amd = std::async(std::launch::async, ours, "rocm");
  std::string faults = ours("cuda");
  return faults + amd.get();
}

Made made() { return {kernels, ptx, assembled, objects}; }

}  // namespace quern::test
