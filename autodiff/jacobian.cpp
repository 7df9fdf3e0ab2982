// Matrices of derivatives: what their columns are made of.
#include "quern/autodiff/jacobian.h"

#include "dsl/recording.h"

namespace quern::detail {

namespace {
ir::Type float_type(bool is_double) { return is_double ? ir::Type::f64 : ir::Type::f32; }
}  // namespace

uint64_t derivative_bits(double v, bool is_double) {
  return ir::bits_of_real(v, float_type(is_double));
}

double derivative_value(uint64_t bits, bool is_double) {
  return ir::real_of(bits, float_type(is_double));
}

void expect_no_writes(KernelObject* kernel, Loc loc) {
  if (!kernel) throw Error(loc, "this Kernel holds no kernel: it was moved from");
  const ir::Kernel& primal = kernel->program->kernel();
  ir::walk(primal.body, [&](const ir::Inst* inst) {
    if (inst->is(ir::Op::store) ||
        (inst->is(ir::Op::atomic) && inst->atomic() != ir::AtomicOp::load))
      throw Error(inst->loc, primal.bindings[inst->binding()].name +
                                 " is written here, by a kernel that is launched once for each "
                                 "column of a matrix of derivatives: use jvp(), vjp() or "
                                 "hessian_vector(), or yield what is written");
  });
}

}  // namespace quern::detail
