#pragma once
// From a recording to the image of one signature.
#include <mutex>
#include <utility>

#include "quern/runtime/compiler.h"

namespace quern::runtime {

/// A kernel at level `structured`, and what optimising makes of it: once for each set of premises,
/// whatever is compiled then. May be used from several threads.
class Recording {
 public:
  explicit Recording(std::unique_ptr<const ir::Kernel> kernel) : kernel_(std::move(kernel)) {}

  const ir::Kernel& kernel() const { return *kernel_; }
  const ir::Kernel& optimised(const ir::Premises& premises);

 private:
  const std::unique_ptr<const ir::Kernel> kernel_;
  std::mutex mutex_;
  std::vector<std::pair<ir::Premises, std::unique_ptr<const ir::Kernel>>> optimised_;
};

/// The kernel as it is compiled for a target: optimised, split and (where wanted) lowered.
struct Prepared {
  std::unique_ptr<ir::Kernel> kernel;
  std::vector<uint64_t> operations;  ///< of an iteration of each task, estimated
};
Prepared prepare(Recording& source, const ir::Signature& signature, const Target& target);

/// What `source` takes, in the order of its bindings.
std::vector<Image::Parameter> parameters_of(const ir::Kernel& source);

/// The image of a recording, whole: what a Program loads. Throws Error where strict mode cannot be
/// kept on the target.
std::shared_ptr<const Image> compile(Recording& source, const ir::Signature& signature,
                                     const Target& target);

}  // namespace quern::runtime
