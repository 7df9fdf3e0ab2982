#include "autodiff/differentiable.h"

#include "dsl/recording.h"

namespace quern::detail {

const ir::Kernel& expect_differentiable(const KernelObject* kernel, Loc loc) {
  expect_no_recording("differentiating a kernel", loc);
  if (!kernel) throw Error(loc, "this Kernel holds no kernel: it was moved from");
  const ir::Kernel& primal = kernel->program->kernel();
  for (const ir::Binding& b : primal.bindings)
    if (b.is_derived())
      throw Error(b.loc, "the kernel names " + b.name +
                             ", which its launches look up, so it cannot be differentiated (at " +
                             place(loc) + "): make it a parameter of its own");
  return primal;
}

}  // namespace quern::detail
