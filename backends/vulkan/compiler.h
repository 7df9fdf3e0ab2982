#pragma once
#include "backends/vulkan/codegen.h"
#include "quern/runtime/backend.h"

namespace quern::vulkan {

/// Image: one SPIR-V module for each task.
class Compiler : public runtime::Compiler {
 public:
  runtime::Image compile(const ir::Kernel& kernel, const runtime::Target& target) const override;
  std::string listing(const ir::Kernel& kernel, const runtime::Target& target,
                      std::string_view kind) const override;
};

/// The modules of an image. Throws InternalError where it is damaged.
std::vector<std::vector<uint32_t>> unpack(const runtime::Image& image);

/// What SPIRV-Tools has against a module; empty: nothing.
std::string invalidity(std::span<const uint32_t> module);
std::string disassemble(std::span<const uint32_t> module);

}  // namespace quern::vulkan
