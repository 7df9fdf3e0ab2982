#include "ir/analysis/loops.h"

namespace quern::ir {

std::optional<IndexBounds> bounds_of(const Value* v) {
  const Inst* loop = v->region ? v->region->parent : nullptr;
  if (!loop) return std::nullopt;
  if (loop->is(Op::loop) && v->index == 0)
    return IndexBounds{loop->operand(0), loop->operand(1), {}};
  if (!loop->is(Op::parallel)) return std::nullopt;
  if (loop->options.over != no_binding)
    return IndexBounds{nullptr, nullptr, Part{loop->options.over, v->index}};
  return IndexBounds{loop->operand(2 * v->index), loop->operand(2 * v->index + 1), {}};
}

}  // namespace quern::ir
