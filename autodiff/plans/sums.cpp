#include "autodiff/plans/sums.h"

namespace quern::autodiff {

using namespace ir;

namespace {

size_t uses_of(const Value* v) {
  size_t count = 0;
  for (const Use* use = v->uses; use; use = use->next) count++;
  return count;
}

/// Counts the uses of `start` on the way from it to a sum.
class Way {
 public:
  explicit Way(const Value* start) : start_(start) {}

  bool leads_to(const Value* sum) {
    if (sum == start_) {
      used_++;
      return true;
    }
    const Inst* inst = sum->inst;
    if (!inst || uses_of(sum) != 1) return false;
    switch (inst->op) {
      case Op::add: return leads_by(inst, 0) || leads_by(inst, 1);
      case Op::sub: return leads_by(inst, 0);
      case Op::fma: return leads_by(inst, 2);
      case Op::if_:
        for (const Region* r : inst->regions)
          if (!leads_to(r->terminator()->operand(sum->index))) return false;
        return true;
      case Op::loop:
        return leads_by(inst, 3 + sum->index) &&
               is_only_added_to(inst->region(0)->arg(1 + sum->index),
                                inst->region(0)->terminator()->operand(sum->index));
      default: return false;
    }
  }
  size_t used() const { return used_; }

 private:
  /// One that does not lead there has counted nothing.
  bool leads_by(const Inst* inst, size_t operand) {
    const size_t before = used_;
    if (leads_to(inst->operand(operand))) return true;
    used_ = before;
    return false;
  }

  const Value* const start_;
  size_t used_ = 0;
};

}  // namespace

bool is_only_added_to(const Value* start, const Value* sum) {
  Way way(start);
  return way.leads_to(sum) && way.used() == uses_of(start);
}

}  // namespace quern::autodiff
