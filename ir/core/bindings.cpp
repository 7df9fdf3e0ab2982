#include "quern/ir/bindings.h"

#include <utility>
#include <vector>

namespace quern::ir {

void put_companions_last(Kernel& kernel) {
  std::vector<Binding> sorted;
  std::vector<uint32_t> moved_to(kernel.bindings.size());
  for (const bool derived : {false, true})
    for (size_t k = 0; k < kernel.bindings.size(); k++) {
      if (kernel.bindings[k].is_derived() != derived) continue;
      moved_to[k] = uint32_t(sorted.size());
      sorted.push_back(std::move(kernel.bindings[k]));
    }
  kernel.bindings = std::move(sorted);
  for (Binding& b : kernel.bindings)
    if (b.is_derived()) b.of = moved_to[b.of];
  each_named_binding(kernel, [&](uint32_t& binding) { binding = moved_to[binding]; });
}

}  // namespace quern::ir
