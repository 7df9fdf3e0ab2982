#include "tests/targets/toolbox.h"

#include <atomic>
#include <future>
#include <map>
#include <string_view>

#include "runtime/compile/compile.h"
#include "tests/targets/code_object.h"
#include "tools/gpus/gpus.h"
#include "tools/gpus/ptxas.h"

namespace quern::test {

namespace {

std::atomic<size_t> kernels, ptx, assembled, objects;

/// What makes zeros of subnormal numbers in PTX: sums of f32 in memory, which strict kernels have
/// none of, and nothing else.
std::string flush_of(const std::vector<std::byte>& code, bool strict) {
  const std::string_view text(reinterpret_cast<const char*>(code.data()), code.size());
  if (text.find(".ftz") != text.npos) return "it flushes subnormal numbers";
  for (const char* sum : {"atom.global.add.f32", "red.global.add.f32"})
    if (strict && text.find(sum) != text.npos) return std::string("it is strict, and has ") + sum;
  return "";
}

std::string compile(const ir::Kernel& lowered, const gpus::Gpu& gpu) {
  try {
    runtime::Image image = gpu.compiler->compile(lowered, gpu.target);
    if (gpu.target.backend == "rocm") {
      objects++;
      return fault_of_code_object(image.code, lowered, gpu.target);
    }
    ptx++;
    if (std::string fault = flush_of(image.code, lowered.modes.strict); !fault.empty())
      return fault;
    if (!gpus::ptxas()) return "";
    assembled++;
    gpus::Assembled result = gpus::assemble(image.code, gpu.ptxas_arch);
    return result.done ? "" : "ptxas: " + result.log;
  } catch (const std::exception& e) {
    return e.what();
  }
}

}  // namespace

std::string compile_everywhere(runtime::Recording& source, const ir::Signature& signature) {
  kernels++;
  const std::vector<gpus::Gpu>& all = gpus::all();
  std::map<std::string, std::unique_ptr<ir::Kernel>> lowered;  // one a vendor
  for (const gpus::Gpu& gpu : all) {
    auto& own = lowered[gpu.target.backend];
    if (!own) own = runtime::prepare(source, signature, gpu.target).kernel;
  }
  std::vector<std::string> faults(all.size());
  std::atomic<size_t> next = 0;
  auto work = [&] {
    for (size_t k; (k = next++) < all.size();)
      faults[k] = compile(*lowered.at(all[k].target.backend), all[k]);
  };
  auto beside = std::async(std::launch::async, work);
  work();
  beside.get();
  std::string text;
  for (size_t k = 0; k < all.size(); k++)
    if (!faults[k].empty()) text += all[k].name + ": " + faults[k] + "\n";
  return text;
}

Made made() { return {kernels, ptx, assembled, objects}; }

}  // namespace quern::test
