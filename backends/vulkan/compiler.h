#pragma once
#include "quern/runtime/compiler.h"

namespace quern::vulkan {

/// Kernels to SPIR-V, a module for each task.
class Compiler : public runtime::Compiler {
 public:
  /// With what the device rounds as it should.
  runtime::Target target_on(runtime::Driver& driver) const override;
  std::string listing(const ir::Kernel& kernel, const runtime::Target& target,
                      std::string_view kind) const override;

 protected:
  std::vector<std::byte> code(const ir::Kernel& kernel,
                              const runtime::Target& target) const override;
};

const runtime::Compiler& compiler();

/// What SPIRV-Tools has against a module; empty: nothing.
std::string invalidity(std::span<const uint32_t> module);
std::string disassemble(std::span<const uint32_t> module);

}  // namespace quern::vulkan
