#pragma once
#include "quern/runtime/backend.h"

namespace quern::cuda {

/// Kernels to PTX through LLVM. The image is PTX text, which the driver compiles for its device;
/// target.isa says for which architecture and version of PTX.
class Compiler : public runtime::Compiler {
 public:
  runtime::Image compile(const ir::Kernel& kernel, const runtime::Target& target) const override;
  std::string listing(const ir::Kernel& kernel, const runtime::Target& target,
                      std::string_view kind) const override;
};

/// The target of a device with compute capability `major`.`minor`, 7.0 or newer: the newest
/// architecture that both it and this LLVM know.
runtime::Target target_for(int major, int minor);

}  // namespace quern::cuda
