#pragma once
// What the invocations of a workgroup do together.
#include <map>

#include "backends/vulkan/arithmetic.h"

namespace quern::vulkan {

/// Reductions over a workgroup of `size` invocations, through its shared memory.
class Block {
 public:
  Block(SpirvWriter& writer, Arithmetic& scalar, uint32_t size)
      : w(writer), scalar_(scalar), size_(size) {}

  /// The invocation's number in its workgroup, u32.
  Id thread();
  /// All values combined by halving, for every invocation. All of the workgroup must come here.
  Id reduce(ir::AtomicOp op, ir::Type t, Id v);

 private:
  Id place(ir::Type t, Id index);
  void barrier();

  SpirvWriter& w;
  Arithmetic& scalar_;
  uint32_t size_;
  Id number_ = 0;                  ///< the built-in variable
  std::map<ir::Type, Id> shared_;  ///< an array for each width
};

}  // namespace quern::vulkan
