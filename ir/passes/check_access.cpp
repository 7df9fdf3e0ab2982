#include "ir/passes/check_access.h"

#include <algorithm>
#include <map>

#include "ir/passes/facts.h"
#include "ir/passes/guarded_access.h"
#include "quern/ir/builder.h"

namespace quern::ir {

namespace {

/// v = base + offset, through additions of constants to a signed value.
struct Sum {
  const Value* base;
  int64_t offset = 0;
};

Sum decompose(const Value* v) {
  Sum s{v};
  while (is_signed(v->type) && s.base->inst &&
         (s.base->inst->is(Op::add) || s.base->inst->is(Op::sub))) {
    const Inst* inst = s.base->inst;
    const Inst* c = constant_of(inst->operand(1));
    if (!c) break;
    int64_t n = to_signed(c->imm, v->type);
    if (n > INT32_MAX || n < INT32_MIN + 1ll || s.offset > INT32_MAX || s.offset < INT32_MIN) break;
    s.offset += inst->is(Op::add) ? n : -n;
    s.base = inst->operand(0);
  }
  return s;
}

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

bool provable(const Value* index, uint32_t binding, uint32_t axis) {
  if (bit_width(index->type) < 32) return false;
  Sum at = decompose(index);
  const Value *lo = nullptr, *hi = nullptr;
  if (!loop_bounds(at.base, lo, hi) || !constant_of(lo)) return false;
  int64_t first = to_signed(constant_of(lo)->imm, lo->type);
  Sum end = decompose(hi);
  return first >= 0 && first + at.offset >= 0 && is_extent(end.base, binding, axis) &&
         end.offset + at.offset <= 0;
}

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

  // ---- facts about all rounds of a loop, tested once before it

  /// The loop whose rounds decide whether this index is in range, where one test before it can
  /// tell: null for other indices.
  static Inst* deciding_loop(const Value* index, Sum& sum) {
    if (!is_signed(index->type) || bit_width(index->type) < 32) return nullptr;
    sum = decompose(index);
    const Value *lo = nullptr, *hi = nullptr;
    if (!loop_bounds(sum.base, lo, hi)) return nullptr;
    if (index->type == Type::i64 && sum.offset != 0) return nullptr;
    if (constant_of(lo) && to_signed(constant_of(lo)->imm, lo->type) + sum.offset < 0)
      return nullptr;
    return sum.base->region->parent;
  }

  void collect(Inst* inst) {
    for (uint32_t axis = 0; axis < kernel_.bindings[inst->binding()].rank; axis++) {
      const Value* index = inst->operand(axis);
      Sum sum{};
      Inst* loop = deciding_loop(index, sum);
      if (!loop || provable(index, inst->binding(), axis)) continue;
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
      Value* limit = b_.extent(s.binding, s.axis, Type::i64);
      if (s.index->type == Type::i32)
        limit = b_.binary(Op::min, limit, b_.integer(Type::i64, int64_t(INT32_MAX) + 1));
      Value* least = b_.add(lo, b_.integer(Type::i64, s.lo));
      Value* above = b_.binary(Op::ge, least, b_.integer(Type::i64, 0));
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
    uint32_t rank = kernel_.bindings[inst->binding()].rank;
    Value *ok = nullptr, *at = nullptr, *axis = nullptr, *extent = nullptr;
    Value* known = nullptr;
    bool all_known = true;
    for (uint32_t k = rank; k-- > 0;) {
      Value* index = inst->operand(k);
      if (provable(index, inst->binding(), k)) continue;
      Sum sum{};
      if (Inst* loop = deciding_loop(index, sum)) {
        Value* holds_here = holds(inst->parent, loop);
        if (!known) known = holds_here;
        if (known != holds_here) known = b_.binary(Op::bit_and, known, holds_here);
      } else {
        all_known = false;
      }
      Value* size = b_.extent(inst->binding(), k, Type::i64);
      Value* wide = b_.convert(index, Type::i64);
      Value* inside = in_range(b_, wide, size);
      Value* number = b_.integer(Type::i32, k);
      at = ok ? b_.select(inside, at, wide) : wide;
      axis = ok ? b_.select(inside, axis, number) : number;
      extent = ok ? b_.select(inside, extent, size) : size;
      ok = ok ? b_.binary(Op::bit_and, ok, inside) : inside;
    }
    if (!ok) return;
    // The form `known or …` lets the back end keep a copy of the loop without checks.
    if (known && all_known) ok = b_.binary(Op::bit_or, known, ok);
    guard_access(b_, inst, ok, {at, axis, extent});
  }

  Kernel& kernel_;
  Builder b_;
  std::map<Place, std::vector<Span>> spans_;
  std::map<Place, Value*> holds_;
};

}  // namespace

void check_access(Kernel& kernel) {
  if (!kernel.modes.checked) return;
  for (Task& task : kernel.tasks) Checker(kernel).run(task.body);
}

}  // namespace quern::ir
