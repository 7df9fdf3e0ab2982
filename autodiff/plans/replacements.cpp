#include "autodiff/plans/replacements.h"

#include <algorithm>
#include <optional>

namespace quern::autodiff {

using namespace ir;

namespace {

/// The two values of which an update passes one on, and its condition, if it has one.
struct Choice {
  const Value *first = nullptr, *second = nullptr, *condition = nullptr;

  static std::optional<Choice> of(const Value* updated) {
    const Inst* update = updated->inst;
    switch (update->op) {
      case Op::min:
      case Op::max:
      case Op::fmin:
      case Op::fmax: return Choice{update->operand(0), update->operand(1)};
      case Op::select: return Choice{update->operand(1), update->operand(2), update->operand(0)};
      case Op::if_: {
        const auto yielded = [&](size_t k) {
          return update->region(k)->terminator()->operand(updated->index);
        };
        return Choice{yielded(0), yielded(1), update->operand(0)};
      }
      default: return std::nullopt;
    }
  }
};

/// Is the value used to compare alone, but for what `is_known` says?
template <class F>
bool is_compared_only(const Value* v, const Activity& active, F&& is_known) {
  for (const Use* use = v->uses; use; use = use->next) {
    const Inst* user = use->user;
    const bool compares =
        user->results.size() == 1 && user->regions.empty() && !active(user->result());
    if (!compares && !is_known(use)) return false;
  }
  return true;
}

std::optional<Replacement> replacement_of(const Inst* loop, size_t k, const Activity& active) {
  const Region* body = loop->region(0);
  const Value* carried = body->arg(1 + k);
  const Value* updated = body->terminator()->operand(k);
  if (!updated->inst || updated->inst->parent != body) return std::nullopt;
  const std::optional<Choice> choice = Choice::of(updated);
  if (!choice || (choice->first == carried) == (choice->second == carried)) return std::nullopt;
  const Inst* update = updated->inst;
  const bool is_second = choice->first == carried;
  const Inst* end = update->is(Op::if_) ? update->region(is_second ? 0 : 1)->terminator() : nullptr;
  const auto passes_on = [&](const Use* use) {
    return end ? use == &end->operands[updated->index] : use->user == update;
  };
  const auto ends_round = [&](const Use* use) { return use->user == body->terminator(); };
  if (!is_compared_only(carried, active, passes_on)) return std::nullopt;
  if (!is_compared_only(updated, active, ends_round)) return std::nullopt;
  return Replacement{k, update, is_second ? choice->second : choice->first, is_second};
}

}  // namespace

const Value* condition_of(const Replacement& r) {
  return Choice::of(r.update->result(0))->condition;
}

std::vector<Replacement> replacements_of(const Inst* loop, const Activity& active) {
  if (!loop->is(Op::loop)) return {};
  std::vector<Replacement> all;
  for (size_t k = 0; k < loop->results.size(); k++) {
    if (!active(loop->result(k)) && !active(loop->region(0)->arg(1 + k))) continue;
    const std::optional<Replacement> found = replacement_of(loop, k, active);
    if (!found) return {};
    all.push_back(*found);
  }
  for (const Replacement& r : all)
    if (all.size() > 1 && (!condition_of(r) || condition_of(r) != condition_of(all[0]) ||
                           r.is_second != all[0].is_second))
      return {};
  return all;
}

Value* is_replaced(Builder& b, const Replacement& replacement,
                   const std::function<Value*(const Value*)>& now) {
  const Inst* update = replacement.update;
  const bool is_second = replacement.is_second;
  if (const Value* condition = condition_of(replacement))
    return is_second ? b.unary(Op::bit_not, now(condition)) : now(condition);
  // docs/semantics.md: the second one where it is beyond the first, of fmin and fmax for a NaN too
  Value *x = now(update->operand(0)), *y = now(update->operand(1));
  Value* second = update->is(Op::min) || update->is(Op::fmin) ? b.lt(y, x) : b.lt(x, y);
  if (update->is(Op::fmin) || update->is(Op::fmax))
    second = b.binary(Op::bit_or, second, b.binary(Op::ne, x, x));
  return is_second ? second : b.unary(Op::bit_not, second);
}

}  // namespace quern::autodiff
