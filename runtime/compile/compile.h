#pragma once
// From a recording to the image of one signature.
#include "quern/runtime/compiler.h"

namespace quern::runtime {

/// The kernel as it is compiled for a target: optimised, split and (where wanted) lowered.
struct Prepared {
  std::unique_ptr<ir::Kernel> kernel;
  std::vector<uint64_t> operations;  ///< of an iteration of each task, estimated
};
Prepared prepare(const ir::Kernel& kernel, const ir::Signature& signature, const Target& target);

/// What `source` takes, in the order of its bindings.
std::vector<Image::Parameter> parameters_of(const ir::Kernel& source);

/// The image of a recording, whole: what a Program loads. Throws Error where strict mode cannot be
/// kept on the target.
std::shared_ptr<const Image> compile(const ir::Kernel& source, const ir::Signature& signature,
                                     const Target& target);

}  // namespace quern::runtime
