#include "ir/analysis/uniformity.h"

#include <vector>

#include "ir/analysis/facts.h"

namespace quern::ir {

bool Uniformity::operator()(const Value* v) {
  // Without recursion: chains of operations may be long.
  std::vector<const Value*> open = {v};
  while (!open.empty()) {
    const Value* at = open.back();
    if (known_.contains(at)) {
      open.pop_back();
      continue;
    }
    const Inst* inst = at->inst;
    const bool outside = !encloses(region_, inst ? inst->parent : at->region);
    if (outside || !inst || !inst->regions.empty() || !is_pure(inst->op) ||
        can_fail(kernel_, inst)) {
      known_[at] = outside;
      continue;
    }
    bool all = true, pending = false;
    for (const Use& use : inst->operands) {
      auto found = known_.find(use.value);
      if (found == known_.end()) {
        open.push_back(use.value);
        pending = true;
      } else {
        all &= found->second;
      }
    }
    if (!pending) known_[at] = all;
  }
  return known_.at(v);
}

}  // namespace quern::ir
