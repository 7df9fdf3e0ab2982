#pragma once
#include "quern/runtime/backend.h"

namespace quern::rocm {

/// Kernels to code objects through LLVM and lld. The image is a code object (a shared ELF object
/// with the kernels' metadata); target.isa says for which architecture.
class Compiler : public runtime::Compiler {
 public:
  runtime::Image compile(const ir::Kernel& kernel, const runtime::Target& target) const override;
  std::string listing(const ir::Kernel& kernel, const runtime::Target& target,
                      std::string_view kind) const override;
};

/// The target of a device whose architecture is `name`: "gfx90a", or as HIP tells it,
/// "gfx90a:sramecc+:xnack-". Throws Error where this LLVM does not know it, or the wave is not one
/// of its own.
enum class Wave { usual, lanes_32, lanes_64 };
runtime::Target target_for(const std::string& architecture, Wave wave = Wave::usual);

}  // namespace quern::rocm
