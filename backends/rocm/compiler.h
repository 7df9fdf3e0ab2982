#pragma once
#include "quern/runtime/compiler.h"

namespace quern::rocm {

/// Kernels to code objects through LLVM and lld. The image's code is a code object (a shared ELF
/// object with the kernels' metadata); target.isa says for which architecture. Throws Error where
/// this LLVM does not know it.
class Compiler : public runtime::Compiler {
 public:
  std::string listing(const ir::Kernel& kernel, const runtime::Target& target,
                      std::string_view kind) const override;
  std::string version() const override;

 protected:
  std::vector<std::byte> code(const ir::Kernel& kernel,
                              const runtime::Target& target) const override;
};

const runtime::Compiler& compiler();

}  // namespace quern::rocm
