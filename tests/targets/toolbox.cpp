#include "tests/targets/toolbox.h"

#include <atomic>
#include <future>

#include "runtime/variant.h"
#include "tests/targets/code_object.h"
#include "tools/gpus/gpus.h"
#include "tools/gpus/ptxas.h"

namespace quern::test {

namespace {

std::atomic<size_t> kernels, ptx, assembled, objects;

std::string compile(const ir::Kernel& lowered, const gpus::Gpu& gpu) {
  try {
    runtime::Image image = gpu.compiler->compile(lowered, gpu.target);
    if (gpu.target.backend == "rocm") {
      objects++;
      return fault_of_code_object(image.code, lowered, gpu.target);
    }
    ptx++;
    if (!gpus::ptxas()) return "";
    assembled++;
    gpus::Assembled result = gpus::assemble(image.code, gpu.ptxas_arch);
    return result.done ? "" : "ptxas: " + result.log;
  } catch (const std::exception& e) {
    return e.what();
  }
}

/// GPUs of one vendor take the same lowered kernel.
std::string compile_for(const std::string& backend, const ir::Kernel& kernel,
                        const ir::Signature& signature) {
  std::unique_ptr<ir::Kernel> lowered;
  std::string faults;
  for (const gpus::Gpu& gpu : gpus::all()) {
    if (gpu.target.backend != backend) continue;
    if (!lowered) lowered = runtime::prepare(kernel, signature, gpu.target).kernel;
    std::string fault = compile(*lowered, gpu);
    if (!fault.empty()) faults += gpu.name + ": " + fault + "\n";
  }
  return faults;
}

}  // namespace

std::string compile_everywhere(const ir::Kernel& kernel, const ir::Signature& signature) {
  kernels++;
  auto ours = [&](const char* backend) { return compile_for(backend, kernel, signature); };
  auto amd = std::async(std::launch::async, ours, "rocm");
  std::string faults = ours("cuda");
  return faults + amd.get();
}

Made made() { return {kernels, ptx, assembled, objects}; }

}  // namespace quern::test
