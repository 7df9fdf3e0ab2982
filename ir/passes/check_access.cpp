#include "ir/passes/check_access.h"

#include <algorithm>
#include <map>
#include <utility>

#include "ir/analysis/affine.h"
#include "ir/analysis/facts.h"
#include "ir/passes/guarded_access.h"
#include "quern/ir/builder.h"

namespace quern::ir {

namespace {

/// The bounds of the loop that `v` is the index of.
bool loop_bounds(const Value* v, const Value*& lo, const Value*& hi) {
  const Inst* loop = v->region ? v->region->parent : nullptr;
  if (!loop) return false;
  size_t at = loop->is(Op::parallel) ? 2 * v->index : 0;
  if (!loop->is(Op::parallel) && !(loop->is(Op::loop) && v->index == 0)) return false;
  lo = loop->operand(at);
  hi = loop->operand(at + 1);
  return true;
}

bool is_extent(const Value* v, uint32_t binding, uint32_t axis) {
  return v->inst && v->inst->is(Op::extent) && v->inst->binding() == binding &&
         v->inst->axis() == axis;
}

bool is_first(const Value* v, uint32_t binding, uint32_t axis) {
  return v->inst && v->inst->is(Op::first) && v->inst->binding() == binding &&
         v->inst->axis() == axis;
}

/// first + extent, and a constant.
bool is_end(const Affine& form, uint32_t binding, uint32_t axis) {
  if (form.terms.size() != 2 || form.terms[0].factor != 1 || form.terms[1].factor != 1)
    return false;
  const Value *a = form.terms[0].symbol, *b = form.terms[1].symbol;
  if (is_extent(a, binding, axis)) std::swap(a, b);
  return is_first(a, binding, axis) && is_extent(b, binding, axis);
}

/// v = base + offset, of a signed value, which no loop's bounds and no extent let wrap.
struct Sum {
  const Value* base;
  int64_t offset = 0;
};

/// What must hold of a loop for accesses in one region of it to be in range in every round: the
/// index plus lo … hi lies within an axis.
struct Span {
  const Value* index;
  uint32_t binding, axis;
  int64_t lo, hi;
};

class Checker {
 public:
  explicit Checker(Kernel& kernel) : kernel_(kernel), b_(kernel) {}

  void run(Region* body) {
    std::vector<Inst*> accesses;
    walk(body, [&](Inst* inst) {
      if (inst->is(Op::check) || inst->site == no_site) return;
      if (kernel_.sites[inst->site].kind != Site::bounds) return;
      accesses.push_back(inst);
      if (!inst->is(Op::get) && !inst->is(Op::put)) collect(inst);
    });
    for (Inst* inst : accesses) {
      if (inst->is(Op::get) || inst->is(Op::put))
        guard_array(b_, inst, inst->operand(1), inst->operand(0)->inst->imm);
      else
        field(inst);
    }
  }

 private:
  /// Accesses that run together: the region they stand in, and the loop of their index.
  using Place = std::pair<Region*, Inst*>;

  // ---- what an index is made of

  static bool is_small(int64_t n) { return n >= INT32_MIN && n <= INT32_MAX; }

  Sum decompose(const Value* v) {
    const Affine& form = forms_.of(v);
    if (!is_signed(v->type) || !form.base() || !is_small(form.constant)) return {v};
    return {form.base(), form.constant};
  }

  bool provable(const Value* index, uint32_t binding, uint32_t axis, bool zero_based) {
    if (bit_width(index->type) < 32) return false;
    Sum at = decompose(index);
    const Value *lo = nullptr, *hi = nullptr;
    if (!loop_bounds(at.base, lo, hi)) return false;
    const Affine& end = forms_.of(hi);
    const bool may_wrap = !is_small(end.constant) || (end.constant && !is_signed(hi->type));
    if (may_wrap || end.constant + at.offset > 0) return false;
    if (!zero_based) {
      const Sum begin = decompose(lo);
      return is_first(begin.base, binding, axis) && begin.offset + at.offset >= 0 &&
             is_end(end, binding, axis);
    }
    if (!constant_of(lo) || !end.base()) return false;
    int64_t first = to_signed(constant_of(lo)->imm, lo->type);
    return first >= 0 && first + at.offset >= 0 && is_extent(end.base(), binding, axis);
  }

  // ---- facts about all rounds of a loop, tested once before it

  /// The loop whose rounds decide whether this index is in range, where one test before it can
  /// tell: null for other indices.
  Inst* deciding_loop(const Value* index, Sum& sum, bool zero_based) {
    if (!is_signed(index->type) || bit_width(index->type) < 32) return nullptr;
    sum = decompose(index);
    const Value *lo = nullptr, *hi = nullptr;
    if (!loop_bounds(sum.base, lo, hi)) return nullptr;
    if (index->type == Type::i64 && sum.offset != 0) return nullptr;
    if (zero_based && constant_of(lo) && to_signed(constant_of(lo)->imm, lo->type) + sum.offset < 0)
      return nullptr;
    return sum.base->region->parent;
  }

  void collect(Inst* inst) {
    const Binding& binding = kernel_.bindings[inst->binding()];
    for (uint32_t axis = 0; axis < binding.rank; axis++) {
      const Value* index = inst->operand(axis);
      Sum sum{};
      Inst* loop = deciding_loop(index, sum, binding.zero_based);
      if (!loop || provable(index, inst->binding(), axis, binding.zero_based)) continue;
      std::vector<Span>& spans = spans_[{inst->parent, loop}];
      auto same = std::find_if(spans.begin(), spans.end(), [&](const Span& s) {
        return s.index == sum.base && s.binding == inst->binding() && s.axis == axis;
      });
      if (same == spans.end())
        same = spans.insert(same, {sum.base, inst->binding(), axis, sum.offset, sum.offset});
      same->lo = std::min(same->lo, sum.offset);
      same->hi = std::max(same->hi, sum.offset);
    }
  }

  /// True where every round of the loop keeps the spans of the region.
  Value* holds(Region* region, Inst* loop) {
    Value*& known = holds_[{region, loop}];
    if (known) return known;
    Inst* point = b_.point();
    b_.before(loop);
    for (const Span& s : spans_.at({region, loop})) {
      const Value *first = nullptr, *last = nullptr;
      loop_bounds(s.index, first, last);
      Value* lo = b_.convert(const_cast<Value*>(first), Type::i64);
      Value* hi = b_.convert(const_cast<Value*>(last), Type::i64);
      Value* begin = b_.integer(Type::i64, 0);
      Value* limit = b_.extent(s.binding, s.axis, Type::i64);
      if (!kernel_.bindings[s.binding].zero_based) {
        begin = b_.first(s.binding, s.axis, Type::i64);  // within ±2^30
        limit = b_.add(begin, limit);
      }
      if (s.index->type == Type::i32)
        limit = b_.binary(Op::min, limit, b_.integer(Type::i64, int64_t(INT32_MAX) + 1));
      Value* least = b_.add(lo, b_.integer(Type::i64, s.lo));
      Value* above = b_.binary(Op::ge, least, begin);
      Value* below = b_.binary(Op::le, b_.add(hi, b_.integer(Type::i64, s.hi)), limit);
      Value* both = b_.binary(Op::bit_and, above, below);
      known = known ? b_.binary(Op::bit_and, known, both) : both;
    }
    b_.before(point);
    return known;
  }

  // ---- checks of one access

  void field(Inst* inst) {
    b_.before(inst).at(inst->loc);
    const bool zero_based = kernel_.bindings[inst->binding()].zero_based;
    uint32_t rank = kernel_.bindings[inst->binding()].rank;
    Value *ok = nullptr, *at = nullptr, *axis = nullptr, *extent = nullptr, *first = nullptr;
    Value* known = nullptr;
    bool all_known = true;
    for (uint32_t k = rank; k-- > 0;) {
      Value* index = inst->operand(k);
      if (provable(index, inst->binding(), k, zero_based)) continue;
      Sum sum{};
      if (Inst* loop = deciding_loop(index, sum, zero_based)) {
        Value* holds_here = holds(inst->parent, loop);
        if (!known) known = holds_here;
        if (known != holds_here) known = b_.binary(Op::bit_and, known, holds_here);
      } else {
        all_known = false;
      }
      Value* size = b_.extent(inst->binding(), k, Type::i64);
      Value* wide = b_.convert(index, Type::i64);
      Value* begin = zero_based ? nullptr : b_.first(inst->binding(), k, Type::i64);
      Value* inside = in_range(b_, begin ? b_.sub(wide, begin) : wide, size);
      Value* number = b_.integer(Type::i32, k);
      at = ok ? b_.select(inside, at, wide) : wide;
      axis = ok ? b_.select(inside, axis, number) : number;
      extent = ok ? b_.select(inside, extent, size) : size;
      if (begin) first = ok ? b_.select(inside, first, begin) : begin;
      ok = ok ? b_.binary(Op::bit_and, ok, inside) : inside;
    }
    if (!ok) return;
    // The form `known or …` lets the back end keep a copy of the loop without checks.
    if (known && all_known) ok = b_.binary(Op::bit_or, known, ok);
    std::vector<Value*> told = {at, axis, extent};
    if (first) told.push_back(first);
    guard_access(b_, inst, ok, told);
  }

  Kernel& kernel_;
  Builder b_;
  AffineForms forms_;
  std::map<Place, std::vector<Span>> spans_;
  std::map<Place, Value*> holds_;
};

}  // namespace

void check_access(Kernel& kernel) {
  if (!kernel.modes.checked) return;
  for (Task& task : kernel.tasks) Checker(kernel).run(task.body);
}

}  // namespace quern::ir
