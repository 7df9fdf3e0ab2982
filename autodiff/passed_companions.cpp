#include "autodiff/passed_companions.h"

#include <utility>

namespace quern::autodiff {

namespace {
/// Calls f(uint32_t&) for each binding that the code names.
template <class F>
void each_named(const ir::Kernel& kernel, F&& f) {
  for (ir::Region* root : ir::roots(kernel))
    ir::walk(root, [&](ir::Inst* inst) {
      const ir::NameUse use = ir::info(inst->op).names;
      if (use == ir::NameUse::binding || use == ir::NameUse::axis || use == ir::NameUse::component)
        f(inst->part.binding);
      if (inst->is(ir::Op::parallel) && inst->options.over != ir::no_binding) f(inst->options.over);
    });
}
}  // namespace

PassedCompanions pass_companions(ir::Kernel& kernel, std::span<const uint32_t> fields) {
  const size_t count = kernel.bindings.size();
  std::vector<uint32_t> number(count, ir::no_binding);
  for (uint32_t k = 0; k < fields.size(); k++) number[fields[k]] = k;
  std::vector<bool> is_named(count);
  each_named(kernel, [&](uint32_t binding) { is_named[binding] = true; });

  PassedCompanions passed;
  std::vector<ir::Binding> kept;
  std::vector<uint32_t> moved_to(count);
  for (uint32_t k = 0; k < count; k++) {
    ir::Binding& b = kernel.bindings[k];
    if (b.is_derived()) passed.companions.push_back({number[b.of], b.companion});
    b.of = ir::Binding::not_derived;
    if (number[k] != ir::no_binding) {
      if (!is_named[k]) continue;
      passed.fields.push_back(number[k]);
    }
    moved_to[k] = uint32_t(kept.size());
    kept.push_back(std::move(b));
  }
  kernel.bindings = std::move(kept);
  each_named(kernel, [&](uint32_t& binding) { binding = moved_to[binding]; });
  return passed;
}

}  // namespace quern::autodiff
