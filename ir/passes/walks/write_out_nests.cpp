#include "ir/passes/walks/write_out_nests.h"

#include "ir/passes/optimise/write_out.h"
#include "ir/passes/walks/strips.h"

namespace quern::ir {

namespace {

/// Is there a loop whose bounds are known only where its index is?
bool is_triangular(const Inst* loop) {
  for (const Inst* inst : *loop->region(0)) {
    if (!inst->is(Op::loop)) continue;
    if (!known_rounds(inst) || is_triangular(inst)) return true;
  }
  return false;
}

/// In the code of a walk's iteration, of which `written` is written out so far.
void write_out_in(Kernel& kernel, Region* region, bool in_loop, WrittenCode& written) {
  for (Inst *inst = region->first, *next; inst; inst = next) {
    next = inst->next;
    if (in_loop && inst->is(Op::loop) && is_triangular(inst) && written.add(inst)) {
      write_out(kernel, inst);
      continue;
    }
    for (Region* inner : inst->regions)
      write_out_in(kernel, inner, in_loop || inst->is(Op::loop), written);
  }
}

}  // namespace

void write_out_nests(Kernel& kernel, const TargetTraits& target) {
  if (target.strip == 0) return;
  for (Inst* walk : walks_of(kernel)) {
    WrittenCode written;
    write_out_in(kernel, walk->region(0), false, written);
  }
}

}  // namespace quern::ir
