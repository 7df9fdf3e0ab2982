#pragma once
#include "quern/runtime/compiler.h"

namespace quern::cpu {

/// Kernels to object files through LLVM, for the CPU that this process runs on: the image's code is
/// the object file.
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

}  // namespace quern::cpu
