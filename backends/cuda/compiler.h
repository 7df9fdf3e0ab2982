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

/// What runs on a device of this architecture (80: compute capability 8.0) under a driver that
/// takes PTX up to `newest_ptx` (78: 7.8): code for the newest architecture up to it that the
/// driver knows; later devices run that of the newest one here. Throws Error below 70.
runtime::Target target_for(int architecture, int newest_ptx = 78);

}  // namespace quern::cuda
