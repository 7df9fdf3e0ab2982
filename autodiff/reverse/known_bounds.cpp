#include "autodiff/reverse/known_bounds.h"

#include "ir/analysis/slice.h"

namespace quern::autodiff {

using namespace ir;

void compute_bounds_before(Kernel& kernel) {
  Builder b(kernel);
  for (Inst* parallel : *kernel.body) {
    if (!parallel->is(Op::parallel)) continue;
    Slicer slicer(kernel, parallel->region(0));
    ValueMap made;
    walk(parallel->region(0), [&](Inst* loop) {
      if (!loop->is(Op::loop)) return;
      for (size_t k = 0; k < 3; k++) {
        Value* bound = loop->operand(k);
        if (!encloses(parallel->region(0), bound->inst ? bound->inst->parent : bound->region))
          continue;
        if (!made.contains(bound)) {
          const Slice slice = slicer.of(bound);
          if (!slice || !slice.is_pure()) continue;
          b.before(parallel).at(loop->loc);
          ValueMap copies;
          repeat(b, slice, copies);
          made[bound] = copies.at(bound);
        }
        loop->operands[k].set(made.at(bound));
      }
    });
  }
}

}  // namespace quern::autodiff
