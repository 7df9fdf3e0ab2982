#include "autodiff/plans/augmentable.h"

namespace quern::autodiff {

using namespace ir;

namespace {

bool is_once(const Inst* loop, const Inst* parallel) {
  const Region* r = loop->parent;
  while (r->parent->is(Op::if_)) r = r->parent->parent;
  return r->parent == parallel;
}

bool leaves_variables(const Inst* loop) {
  bool leaves = false;
  walk(loop->region(0), [&](const Inst* inst) {
    const bool is_outside =
        inst->is(Op::put) && !encloses(loop->region(0), inst->operand(0)->inst->parent);
    leaves |= inst->is(Op::reduce) || is_outside;
  });
  return leaves;
}

}  // namespace

const Inst* alike_in(const Kernel& kernel, const Inst* loop) {
  if (!loop->is(Op::loop)) return nullptr;
  for (size_t k = 0; k < 3; k++) {
    const Inst* bound = loop->operand(k)->inst;
    if (!bound || (bound->parent != kernel.body && !bound->is(Op::constant))) return nullptr;
  }
  const Inst* around = loop;
  while (around->parent != kernel.body) around = around->parent->parent;
  return around->is(Op::parallel) ? around : nullptr;
}

bool may_be_augmented(const Inst* loop, const Inst* parallel) {
  return is_once(loop, parallel) && !leaves_variables(loop);
}

}  // namespace quern::autodiff
