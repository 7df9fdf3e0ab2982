#include "autodiff/plans/slopes.h"

#include <vector>

#include "quern/ir/partials.h"

namespace quern::autodiff {

using namespace ir;

Slopes add_slopes(Kernel& kernel, const Activity& active) {
  std::vector<Inst*> operations;
  walk(kernel.body, [&](Inst* inst) {
    const bool varies = inst->results.size() == 1 && active(inst->result());
    if (varies && has_library_slope(inst->op, inst->type())) operations.push_back(inst);
  });
  Slopes slopes;
  Builder b(kernel);
  for (Inst* inst : operations) {
    b.after(inst).at(inst->loc);
    slopes[inst] = library_slope(b, inst->op, inst->operand(0));
  }
  return slopes;
}

}  // namespace quern::autodiff
