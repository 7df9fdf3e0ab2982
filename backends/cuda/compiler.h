#pragma once
#include "quern/runtime/compiler.h"

namespace quern::cuda {

/// Kernels to PTX through LLVM. The image's code is PTX text, which the driver compiles for its
/// device; target.isa says for which architecture and version of PTX.
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

}  // namespace quern::cuda
