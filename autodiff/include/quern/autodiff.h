#pragma once
// Derivatives of kernels. A `Tape` records launches and goes back through them: adjoints of fields,
// in their `grad()`; of loops in time it keeps a few states (`steps`). `vjp(kernel)` does it for
// one launch, `value_and_grad(kernel)` for one with a single result, `hessian_vector(kernel)`
// twice; `jacobian(kernel)` and `hessian(kernel)` are the whole matrices of functions of a few
// scalars. `jvp(kernel)` runs forward: it computes what the kernel does, and tangents beside it,
// which fields keep in their `dual()`.
#include "quern/autodiff/gradient.h"
#include "quern/autodiff/hessian.h"
#include "quern/autodiff/jacobian.h"
#include "quern/autodiff/jvp.h"
#include "quern/autodiff/steps.h"
#include "quern/autodiff/tape.h"
#include "quern/autodiff/vjp.h"
