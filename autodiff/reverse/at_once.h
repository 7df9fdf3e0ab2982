#pragma once
// Gradients at once: a kernel that only adds to one number needs no way back of its own.
//
// What such a launch gives to the adjoints of all that it reads is a multiple of the number's
// adjoint, by a factor that does not depend on anything behind the launch. So who launches on a tape
// launches a kernel that computes the value and these factors together, as going back through an
// iteration begins with running it anyway, and keeps them; going back multiplies them. Nothing is
// computed twice or kept for each iteration, and no snapshot of a field is taken. (By hand one does
// the same in the gradient of a likelihood; a reverse sweep per statement, "preaccumulation", does
// it for the smallest parts: Griewank and Walther, Evaluating Derivatives, 2nd ed., chapter 10.)
//
// Not in strict mode, where sums have an order: a multiple of a sum has not the bits of a sum of
// multiples. And where it pays: factors go through memory once more, so a launch with more elements
// of inputs than work keeps to the other way.
#include <memory>
#include <vector>

#include "autodiff/reverse/reverse.h"

namespace quern::autodiff {

/// Does it change something but values? Random numbers are drawn again as they were.
bool has_effect(const ir::Inst* inst);

/// The binding of the one number that a kernel, at level structured and optimised, adds floats to,
/// if that is all that it does, in parallel loops that stand directly in its body or outside of
/// them, and no function has a pullback of its own, which might ask how large its adjoint is; else
/// no_binding. `inputs`: as reverse() takes them; the number is one.
uint32_t number_added_to(const ir::Kernel& kernel, const std::vector<bool>& inputs);

/// Is it worth keeping so many bytes to be spared so many additions?
bool pays_at_once(uint64_t additions, uint64_t bytes);

/// `out` holds, of such a kernel, one that does what it does and adds to adjoints what an adjoint of
/// 1 of that number gives. Becomes what reverse() comes back with: that kernel is the augmented one,
/// and `out.kernel`, an empty one with the primal's bindings before, multiplies. `count`: likewise.
void make_at_once(const ir::Kernel& primal, const LoopPlans& plans, uint32_t number, Reverse& out,
                  std::unique_ptr<ir::Kernel> count, std::unique_ptr<ir::Kernel> kernel);

}  // namespace quern::autodiff
