#include "autodiff/plans/alike_rows.h"

#include <algorithm>
#include <unordered_set>

#include "ir/analysis/slice.h"

namespace quern::autodiff {

using namespace ir;

Value* iterations_of(Builder& b, const Inst* parallel, std::span<Value* const> bounds) {
  Value* all = b.integer(Type::i64, 1);
  for (size_t k = 0; k < parallel->region(0)->args.size(); k++) {
    Value* length = nullptr;
    if (parallel->options.over != no_binding) {
      length = b.extent(parallel->options.over, uint32_t(k), Type::i64);
    } else {
      Value* from = b.convert(bounds[2 * k], Type::i64);
      Value* to = b.convert(bounds[2 * k + 1], Type::i64);
      length = b.binary(Op::max, b.sub(to, from), b.integer(Type::i64, 0));
    }
    all = b.mul(all, length);
  }
  return all;
}

Value* places_of(Builder& b, Value* iterations) {
  Value* line = b.integer(Type::i64, 8);
  Value* lines = b.div(b.add(iterations, b.integer(Type::i64, 7)), line);
  Value* padded = b.mul(lines, line);
  return b.select(b.lt(iterations, line), iterations, padded);
}

Value* rounds_between(Builder& b, std::span<Value* const> bounds) {
  const Type type = bit_width(bounds[0]->type) < 64 ? Type::i64 : bounds[0]->type;
  Value* from = b.convert(bounds[0], type);
  Value* to = b.convert(bounds[1], type);
  Value* step = b.convert(bounds[2], type);
  Value* one = b.integer(type, 1);
  Value* span = b.sub(to, from);
  Value* last = b.div(b.sub(span, one), step);
  Value* count = b.convert(b.add(last, one), Type::i64);
  Value* any = b.lt(from, to);
  return b.select(any, count, b.integer(Type::i64, 0));
}

AlikeRows::AlikeRows(const Kernel& kernel, RowCounts& counts, const Inst* parallel)
    : counts_(counts), parallel_(parallel), uniform_(kernel, parallel->region(0)) {}

/// The regions around it, from the loop's body on, which does not count.
AlikeRows::Chain AlikeRows::chain_to(const Region* region) const {
  Chain chain;
  for (; region != parallel_->region(0); region = region->parent->parent) chain.push_back(region);
  std::ranges::reverse(chain);
  return chain;
}

/// Is what decides how often its regions run the same for all iterations?
bool AlikeRows::shares(const Inst* control) {
  if (control->is(Op::if_)) return uniform_(control->operand(0));
  if (!control->is(Op::loop)) return false;
  for (size_t k = 0; k < 3; k++)
    if (!uniform_(control->operand(k))) return false;
  uniform_.assume(control->region(0)->arg(0));
  return true;
}

bool AlikeRows::knows(const Region* region) {
  if (parallel_->options.over != no_binding && parallel_->region(0)->args.empty()) return false;
  for (const Region* r : chain_to(region))
    if (!shares(r->parent) || !counts_.is_by_integers(r->parent)) return false;
  return counts_.is_by_integers(parallel_);
}

bool AlikeRows::may_go_together() {
  if (together_) return *together_;
  constexpr uint64_t most_bytes = 32768,
                     copies = 3;  // to log, of adjoints, and of what is read again
  uint64_t bytes = 0;
  bool together = true;
  walk(parallel_->region(0), [&](const Inst* inst) {
    if (inst->is(Op::slot)) bytes += copies * inst->imm * byte_size(inst->elem);
    if (!inst->is(Op::loop) && !inst->is(Op::while_)) return;
    bool is_in_loop = false;
    for (const Region* r = inst->parent; r != parallel_->region(0); r = r->parent->parent)
      is_in_loop |= !r->parent->is(Op::if_);
    together = together && (!is_in_loop || (inst->is(Op::loop) && knows(inst->region(0))));
  });
  together_ = together && bytes <= most_bytes;
  return *together_;
}

Value* AlikeRows::count(Builder& b, const Region* region) {
  known_.clear();
  return count_from(b, chain_to(region), 0);
}

/// How often the last region of the chain runs each time that the one before number `at` does.
Value* AlikeRows::count_from(Builder& b, const Chain& chain, size_t at) {
  if (at == chain.size()) return b.integer(Type::i64, 1);
  const Inst* control = chain[at]->parent;
  Value* none = b.integer(Type::i64, 0);
  if (control->is(Op::if_)) {
    Value* taken = known(b, control->operand(0));
    Value* inside = count_from(b, chain, at + 1);
    return chain[at] == control->region(0) ? b.select(taken, inside, none)
                                           : b.select(taken, none, inside);
  }
  std::vector<Value*> bounds;
  for (size_t k = 0; k < 3; k++) bounds.push_back(known(b, control->operand(k)));
  const Value* index = chain[at]->arg(0);
  const bool varies = std::any_of(chain.begin() + ptrdiff_t(at) + 1, chain.end(),
                                  [&](const Region* r) { return depends(r, index); });
  if (!varies) return b.mul(rounds_between(b, bounds), count_from(b, chain, at + 1));
  Inst* loop = b.loop(bounds[0], bounds[1], bounds[2], {&none, 1});
  Region* around = b.region();
  Inst* point = b.point();
  b.at_end(loop->region(0));
  known_[index] = loop->region(0)->arg(0);
  Value* inside = count_from(b, chain, at + 1);
  Value* sum = b.add(loop->region(0)->arg(1), inside);
  b.yield({sum});
  point ? b.before(point) : b.at_end(around);
  return loop->result(0);
}

/// Its value there; those of indices are known.
Value* AlikeRows::known(Builder& b, const Value* v) {
  return repeat_outside(b, parallel_->region(0), v, known_);
}

bool AlikeRows::depends(const Region* region, const Value* index) const {
  std::vector<const Value*> open;
  for (const Use& use : region->parent->operands) open.push_back(use.value);
  std::unordered_set<const Value*> seen;
  while (!open.empty()) {
    const Value* v = open.back();
    open.pop_back();
    if (v == index) return true;
    if (!v->inst || !encloses(parallel_->region(0), v->inst->parent)) continue;
    for (const Use& use : v->inst->operands)
      if (seen.insert(use.value).second) open.push_back(use.value);
  }
  return false;
}

}  // namespace quern::autodiff
