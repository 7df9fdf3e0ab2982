#include "ir/passes/bind.h"

namespace quern::ir {

void bind(Kernel& kernel, const Signature& signature) {
  kernel.modes = signature.modes;
  for (size_t k = 0; k < kernel.bindings.size(); k++) {
    Binding& b = kernel.bindings[k];
    if (b.kind != Binding::field) continue;
    if (k >= signature.fields.size())
      throw InternalError("the signature of kernel '" + kernel.name + "' lacks a binding");
    b.contiguous = signature.fields[k].contiguous;
    b.alias_class = signature.fields[k].alias_class + 1;
  }
}

}  // namespace quern::ir
