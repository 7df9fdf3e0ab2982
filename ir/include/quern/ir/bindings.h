#pragma once
// Bindings by their numbers.
#include "quern/ir/ir.h"

namespace quern::ir {

/// Calls f(uint32_t&) for each binding that the code names.
template <class F>
void each_named_binding(const Kernel& kernel, F&& f) {
  for (Region* root : roots(kernel))
    walk(root, [&](Inst* inst) {
      const NameUse use = info(inst->op).names;
      if (use == NameUse::binding || use == NameUse::axis || use == NameUse::component)
        f(inst->part.binding);
      if (inst->is(Op::parallel) && inst->options.over != no_binding) f(inst->options.over);
    });
}

/// Those that a launch looks up come behind those that are passed, as a kernel has them; each kind
/// stays in its order.
void put_companions_last(Kernel& kernel);

}  // namespace quern::ir
