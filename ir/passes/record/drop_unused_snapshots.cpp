#include "ir/passes/record/drop_unused_snapshots.h"

namespace quern::ir {

namespace {

void cut_after_exit(Region* region) {
  for (Inst* inst = region->first; inst; inst = inst->next) {
    if (!has(inst->op, flag::ends)) continue;
    while (region->last != inst) region->last->erase();
    return;
  }
}

/// Drops what is unused, last instruction first; true if only a plain yield remains to be run, so
/// that an owner without used results has no reason to stay.
bool sweep(Region* region) {
  cut_after_exit(region);
  bool idle = region->last && region->last->is(Op::yield);
  Inst* before = nullptr;
  for (Inst* inst = region->last; inst; inst = before) {
    before = inst->prev;
    bool idle_inside = true;
    for (Region* r : inst->regions) idle_inside = sweep(r) && idle_inside;
    bool removable = is_pure(inst->op) ||
                     (has(inst->op, flag::reads) && !has(inst->op, flag::writes)) ||
                     (inst->is(Op::if_) && !inst->results.empty() && idle_inside);
    if (!has(inst->op, flag::ends) && !removable) idle = false;
    if (removable && !inst->used()) inst->erase();
  }
  return idle;
}

}  // namespace

void drop_unused_snapshots(Kernel& kernel) {
  for (Region* root : roots(kernel)) sweep(root);
}

}  // namespace quern::ir
