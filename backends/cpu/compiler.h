#pragma once
#include "quern/runtime/backend.h"

namespace quern::cpu {

/// Kernels to object files through LLVM. The image is the object file; target.isa says for what.
class Compiler : public runtime::Compiler {
 public:
  runtime::Image compile(const ir::Kernel& kernel, const runtime::Target& target) const override;
  std::string listing(const ir::Kernel& kernel, const runtime::Target& target,
                      std::string_view kind) const override;
};

}  // namespace quern::cpu
