#include "tests/targets/assembly.h"

#include <stdexcept>

#include "quern/ir/lower.h"
#include "quern/ir/text.h"
#include "runtime/compile/compile.h"
#include "tools/gpus/gpus.h"

namespace quern::test {

std::string assembly(const std::string& name, const std::string& kernel_text, Modes modes) {
  std::unique_ptr<ir::Kernel> kernel = ir::parse("quern 1\n" + kernel_text);
  ir::Signature signature;
  for (uint32_t k = 0; k < kernel->bindings.size(); k++) {
    const ir::Binding& b = kernel->bindings[k];
    signature.fields.push_back({true, k + 1, true, b.layout, b.alignment});
  }
  signature.modes.strict = modes.strict;
  runtime::Recording source(std::move(kernel));
  for (const gpus::Gpu& gpu : gpus::all()) {
    if (gpu.name != name) continue;
    auto lowered = runtime::prepare(source, signature, gpu.target).kernel;
    bool amd = gpu.target.backend == "rocm";
    return gpu.compiler->listing(*lowered, gpu.target, amd ? "amdgcn" : "ptx");
  }
  throw std::runtime_error("no GPU " + name);
}

std::string element_wise(const std::string& code, const std::string& type, const std::string& out) {
  return "kernel @k level=structured\nbinding field rank=1 " + type +
         " \"x\"\nbinding field rank=1 " + type + " \"y\"\nbinding field rank=1 " +
         (out.empty() ? type : out) +
         " \"out\"\nbody {\n%z = constant<0> : i32\n%n = extent<0.0> : i32\n"
         "parallel ordinal=0 %z, %n {(%i: i32)\n%a = load<0.0> %i : " +
         type + "\n%b = load<1.0> %i : " + type + "\n" + code +
         "\nstore<2.0> %i, %r\nyield\n}\nyield\n}\n";
}

}  // namespace quern::test
