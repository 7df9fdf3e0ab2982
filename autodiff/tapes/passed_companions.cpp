#include "autodiff/tapes/passed_companions.h"

#include <utility>

#include "quern/ir/bindings.h"

namespace quern::autodiff {

PassedCompanions pass_companions(ir::Kernel& kernel, std::span<const uint32_t> fields) {
  const size_t count = kernel.bindings.size();
  std::vector<uint32_t> number(count, ir::no_binding);
  for (uint32_t k = 0; k < fields.size(); k++) number[fields[k]] = k;
  std::vector<bool> is_named(count);
  ir::each_named_binding(kernel, [&](uint32_t binding) { is_named[binding] = true; });

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
  ir::each_named_binding(kernel, [&](uint32_t& binding) { binding = moved_to[binding]; });
  return passed;
}

}  // namespace quern::autodiff
