#include "tests/targets/toolbox.h"

#include <atomic>
#include <charconv>
#include <cstdlib>
#include <future>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string_view>

#include "quern/ir/text.h"
#include "runtime/compile/compile.h"
#include "tests/targets/code_object.h"
#include "tools/gpus/ptxas.h"

namespace quern::test {

namespace {

std::atomic<size_t> kernels, ptx, assembled, objects;
std::mutex images_mutex;
std::map<std::string, size_t> images;  ///< of each GPU

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

uint64_t hash(const std::string& text) {  // FNV-1a
  uint64_t h = 0xcbf29ce484222325;
  for (unsigned char c : text) h = (h ^ c) * 0x100000001b3;
  return h;
}

const char* setting(const char* name) {
  const char* text = std::getenv(name);
  return text ? text : "";
}

bool all_gpus() { return setting("QUERN_TARGETS") == std::string("all"); }

/// Throws std::runtime_error where QUERN_SAMPLE is no number.
uint64_t sample_number() {
  const std::string_view text = setting("QUERN_SAMPLE");
  uint64_t n = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (!text.empty() && (error != std::errc() || end != text.data() + text.size()))
    throw std::runtime_error("QUERN_SAMPLE is '" + std::string(text) + "'; it takes a number");
  return n;
}

}  // namespace

std::vector<const gpus::Gpu*> gpus_for(const ir::Kernel& kernel) {
  const std::vector<gpus::Gpu>& all = gpus::all();
  std::vector<const gpus::Gpu*> chosen;
  if (all_gpus())
    for (const gpus::Gpu& gpu : all) chosen.push_back(&gpu);
  else
    chosen.push_back(&all[(hash(ir::print(kernel)) + sample_number()) % all.size()]);
  return chosen;
}

std::string compile_for_gpus(runtime::Recording& source, const ir::Signature& signature) {
  kernels++;
  const std::vector<const gpus::Gpu*> chosen = gpus_for(source.kernel());
  std::map<std::string, std::unique_ptr<ir::Kernel>> lowered;  // one a vendor
  for (const gpus::Gpu* gpu : chosen) {
    auto& own = lowered[gpu->target.backend];
    if (!own) own = runtime::prepare(source, signature, gpu->target).kernel;
  }
  std::vector<std::string> faults(chosen.size());
  std::atomic<size_t> next = 0;
  auto work = [&] {
    for (size_t k; (k = next++) < chosen.size();)
      faults[k] = compile(*lowered.at(chosen[k]->target.backend), *chosen[k]);
  };
  auto beside = std::async(std::launch::async, work);
  work();
  beside.get();
  std::string text;
  std::lock_guard lock(images_mutex);
  for (size_t k = 0; k < chosen.size(); k++) {
    images[chosen[k]->name]++;
    if (!faults[k].empty()) text += chosen[k]->name + ": " + faults[k] + "\n";
  }
  return text;
}

Made made() { return {kernels, ptx, assembled, objects}; }

size_t gpus_of_a_kernel() { return all_gpus() ? gpus::all().size() : 1; }

std::string sampled() {
  std::string text =
      all_gpus()
          ? "each kernel for every GPU (QUERN_TARGETS=all):"
          : "each kernel for one GPU (QUERN_SAMPLE=" + std::to_string(sample_number()) + "):";
  std::lock_guard lock(images_mutex);
  for (const gpus::Gpu& gpu : gpus::all())
    text += " " + gpu.name + " " + std::to_string(images[gpu.name]);
  return text;
}

}  // namespace quern::test
