#include "autodiff/primal/at_launch.h"

#include <vector>

#include "ir/analysis/loops.h"

namespace quern::autodiff {

using namespace ir;

namespace {
constexpr int deepest = 64;  ///< operations looked back
}

std::optional<AtLaunch::Bounds> AtLaunch::bounds(const Value* index) {
  const std::optional<IndexBounds> of = bounds_of(index);
  if (!of) return std::nullopt;
  if (of->axis) {
    const auto [binding, axis] = *of->axis;
    const runtime::Storage* over = field(binding);
    if (!over || over->tree()) return std::nullopt;  // on a tree: those elements that are active
    const int64_t lo = over->first(axis);
    return Bounds{lo, lo + over->shape()[axis]};
  }
  const std::optional<int64_t> lo = number(of->lo), hi = number(of->hi);
  int64_t rounds = 0;
  if (!lo || !hi || __builtin_sub_overflow(*hi, *lo, &rounds)) return std::nullopt;
  return Bounds{*lo, *hi};
}

std::optional<int64_t> AtLaunch::number(const Value* v) {
  const std::optional<Bits> bits = value(v, 0);
  if (!bits) return std::nullopt;
  if (is_signed(v->type)) return to_signed(*bits, v->type);
  return *bits > uint64_t(INT64_MAX) ? std::nullopt : std::optional(int64_t(*bits));
}

std::optional<Bits> AtLaunch::value(const Value* v, int depth) {
  if (depth > deepest) return std::nullopt;
  if (const auto known = known_.find(v); known != known_.end()) return known->second;
  const std::optional<Bits> found = v->inst ? computed(v->inst, depth) : std::nullopt;
  known_[v] = found;
  return found;
}

std::optional<Bits> AtLaunch::computed(const Inst* inst, int depth) {
  switch (inst->op) {
    case Op::constant: return inst->imm;
    case Op::param:
      if (inst->binding() >= arguments_.size()) return std::nullopt;
      return arguments_[inst->binding()].bits;
    case Op::extent:
    case Op::first: {
      const runtime::Storage* of = field(inst->binding());
      if (!of) return std::nullopt;
      const int64_t n = inst->is(Op::extent) ? of->shape()[inst->axis()] : of->first(inst->axis());
      return bits_of_int(n, inst->type());
    }
    default: break;
  }
  if (!is_pure(inst->op) || inst->operands.empty()) return std::nullopt;
  std::vector<Bits> operands;
  for (const Use& use : inst->operands) {
    const std::optional<Bits> bits = value(use.value, depth + 1);
    if (!bits) return std::nullopt;
    operands.push_back(*bits);
  }
  Bits out = 0;
  const Type type = inst->operands.back().value->type;
  return evaluate(inst->op, type, inst->type(), operands, out) ? std::optional(out) : std::nullopt;
}

const runtime::Storage* AtLaunch::field(uint32_t binding) const {
  return binding < arguments_.size() ? arguments_[binding].storage.get() : nullptr;
}

}  // namespace quern::autodiff
