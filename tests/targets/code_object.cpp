#include "tests/targets/code_object.h"

#include "backends/llvm/toolchain.h"
#include "quern/ir/abi.h"
#include "tools/gpus/code_object.h"

namespace quern::test {

namespace {

/// `first`: bytes of its first argument; four words follow.
std::string fault_of_kernel(const gpus::ObjectKernel& kernel, const std::string& name,
                            uint64_t first) {
  if (kernel.name != name || kernel.symbol != name + ".kd")
    return name + " is called " + kernel.name + ", " + kernel.symbol;
  if (kernel.arguments.size() < 5) return name + " has too few arguments";
  for (size_t a = 0; a < 5; a++)
    if (kernel.arguments[a].offset != (a ? first + 8 * (a - 1) : 0) ||
        kernel.arguments[a].size != (a ? 8 : first))
      return "argument " + std::to_string(a) + " of " + name + " is not where it belongs";
  if (kernel.vector_registers > 512) return name + " has too many registers";
  if (!kernel.has_code) return "it lacks " + name;
  if (kernel.descriptor_bytes != 64) return name + ".kd is not a kernel descriptor";
  if (kernel.instructions < 1) return name + " does not disassemble";
  return "";
}

}  // namespace

std::string fault_of_code_object(const std::vector<std::byte>& code, const ir::Kernel& kernel,
                                 const runtime::Target& target) {
  gpus::CodeObject object = gpus::read_code_object(code, target);
  if (object.format != "elf64-amdgpu") return "it is for " + object.format;
  if (object.cpu != codegen::Isa::parse(target.isa).cpu) return "it is for " + object.cpu;
  if (!object.has_metadata) return "it has no metadata";
  if (object.kernels.size() != kernel.tasks.size())
    return "its metadata tells of " + std::to_string(object.kernels.size()) + " kernels";
  if (!object.undefined.empty()) return "it leaves " + object.undefined[0] + " undefined";
  const uint64_t first = ir::takes_value(kernel, target.traits) ? ir::abi::layout(kernel).bytes : 8;
  for (size_t k = 0; k < kernel.tasks.size(); k++) {
    std::string fault = fault_of_kernel(object.kernels[k], runtime::task_symbol(k), first);
    if (!fault.empty()) return fault;
  }
  return "";
}

}  // namespace quern::test
