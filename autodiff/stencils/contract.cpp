#include "autodiff/stencils/contract.h"

#include <algorithm>
#include <optional>
#include <ranges>

#include "autodiff/stencils/contraction.h"
#include "autodiff/stencils/keeper.h"
#include "autodiff/stencils/written_out.h"
#include "ir/analysis/facts.h"
#include "ir/analysis/slice.h"
#include "quern/ir/builder.h"

namespace quern::autodiff {

using namespace ir;

namespace {

constexpr int64_t least_rounds = 256;    ///< of a piece of a sum
constexpr int64_t enough_sums = 16'384;  ///< to occupy any device
constexpr int64_t most_counted = int64_t(1) << 31;

bool is_in_order(const Kernel& kernel, const Inst* loop) {
  return kernel.modes.strict || loop->options.deterministic;
}

class Contractor {
 public:
  Contractor(Kernel& kernel, std::span<const uint32_t> shapes, Inst* loop, const Contraction& sums,
             const WrittenOut& written, const Keeper& keeper, Builder& b)
      : loop_(loop),
        body_(loop->region(0)),
        sums_(sums),
        written_(written),
        keeper_(keeper),
        shape_(sums.binding == no_binding ? no_binding : shapes[sums.binding]),
        in_order_(is_in_order(kernel, loop)),
        b_(b) {
    number_totals();
  }

  void run() {
    b_.at(loop_->loc);
    for (const Index& index : sums_.own) own_.push_back(bounds(index));
    for (const Index& index : sums_.summed) summed_.push_back(bounds(index));
    for (size_t k = 0; k < own_.size(); k++)
      elements_.push_back(shape_ == no_binding ? own_[k] : reached(k));
    Value* all = b_.integer(Type::i64, 1);
    for (const Bounds& of : summed_) all = times(all, count(of));
    for (size_t k = 0; k < own_.size(); k++)
      if (is_asked(k)) all = times(all, count(own_[k]));
    Value* has_rounds = b_.binary(Op::gt, all, b_.integer(Type::i64, 0));
    if (in_order_ || !sums_.summed[0].is_parallel()) return make(has_rounds, nullptr, nullptr);
    cut();
    Value* one = b_.integer(Type::i64, 1);
    Value* is_whole = b_.binary(Op::le, pieces_, one);
    Value* zero = b_.integer(Type::i64, 0);
    make(b_.binary(Op::bit_and, has_rounds, is_whole), nullptr, nullptr);
    Value* is_cut = b_.binary(Op::bit_and, has_rounds, b_.binary(Op::gt, pieces_, one));
    make(nullptr, zero, b_.select(is_cut, pieces_, zero));
  }

 private:
  struct Bounds {
    Value *lo, *hi;
  };

  /// Summands of one element have one sum.
  void number_totals() {
    for (size_t n = 0; n < sums_.summands.size(); n++) {
      size_t same = 0;
      while (same < n && !meet(sums_.summands[same], sums_.summands[n])) same++;
      total_.push_back(same < n ? total_[same] : totals_++);
    }
  }
  /// Certainly? Others have sums of their own, though these may go to one element.
  bool meet(const Summand& a, const Summand& b) const {
    const Inst *to = a.atomic, *also = b.atomic;
    if (to->binding() != also->binding() || to->component() != also->component()) return false;
    if (a.axes != b.axes) return false;
    for (uint32_t axis = 0; axis + 1 < to->operand_count(); axis++)
      if (!own_at(a, axis) && to->operand(axis) != also->operand(axis)) return false;
    return true;
  }
  /// The number of the own index that decides on that axis, if one does.
  static std::optional<size_t> own_at(const Summand& s, uint32_t axis) {
    const auto found = std::ranges::find(s.axes, axis);
    if (found == s.axes.end()) return std::nullopt;
    return size_t(found - s.axes.begin());
  }
  /// The first summand of that sum.
  size_t first_of(size_t total) const {
    return size_t(std::ranges::find(total_, total) - total_.begin());
  }

  Bounds bounds(const Index& index) {
    const Inst* of = index.loop;
    if (!index.is_parallel()) {
      Value* lo = repeat_outside(b_, body_, of->operand(0), outside_);
      return {lo, repeat_outside(b_, body_, of->operand(1), outside_)};
    }
    const size_t k = index.value->index;
    const uint32_t over = of->options.over;
    if (over == no_binding) return {of->operand(2 * k), of->operand(2 * k + 1)};
    Value* first = b_.first(over, uint32_t(k), index.value->type);
    Value* extent = b_.extent(over, uint32_t(k), index.value->type);
    return {first, b_.add(first, extent)};
  }

  // ---- elements

  /// Of the axis of that own index: of the field those that any summand may go to.
  Bounds reached(size_t k) {
    Value *lo = nullptr, *hi = nullptr;
    for (const Summand& s : sums_.summands) {
      const int64_t stride = s.strides[k];
      Value* last = plus(times_stride(plus(own_[k].hi, -1), stride), 1);
      Value* least = farthest(times_stride(own_[k].lo, stride), s.offsets[k], false);
      Value* most = farthest(last, s.offsets[k], true);
      lo = lo ? b_.binary(Op::min, lo, least) : least;
      hi = hi ? b_.binary(Op::max, hi, most) : most;
    }
    Value* first = b_.first(shape_, sums_.summands[0].axes[k], lo->type);
    Value* end = b_.add(first, b_.extent(shape_, sums_.summands[0].axes[k], lo->type));
    return {b_.binary(Op::max, lo, first), b_.binary(Op::min, hi, end)};
  }
  /// The bound and the greatest or least that the offset can be.
  Value* farthest(Value* bound, const Affine& offset, bool is_greatest) {
    const Type type = bound->type;
    bound = plus(bound, offset.constant);
    for (const Affine::Term& t : offset.terms) {
      const auto index = std::ranges::find(sums_.summed, t.symbol, &Index::value);
      Value* v = nullptr;
      if (index == sums_.summed.end()) {
        v = repeat_outside(b_, body_, t.symbol, outside_);
      } else {
        const Bounds& of = summed_[size_t(index - sums_.summed.begin())];
        v = (t.factor > 0) == is_greatest ? plus(of.hi, -1) : of.lo;
      }
      bound = b_.add(bound, multiple(v, t.factor, type));
    }
    return bound;
  }
  Value* plus(Value* v, int64_t constant) {
    return constant == 0 ? v : b_.add(v, b_.integer(v->type, constant));
  }
  Value* times_stride(Value* v, int64_t stride) { return multiple(v, stride, v->type); }
  Value* multiple(Value* v, int64_t factor, Type type) {
    v = b_.convert(v, type);
    return factor == 1 ? v : b_.mul(v, b_.integer(type, factor));
  }

  // ---- how many, as far as counts are told apart

  Value* count(const Bounds& of) {
    Value* lo = b_.convert(of.lo, Type::i64);
    Value* n = b_.sub(b_.convert(of.hi, Type::i64), lo);
    n = b_.binary(Op::max, n, b_.integer(Type::i64, 0));
    return b_.binary(Op::min, n, b_.integer(Type::i64, most_counted));
  }
  Value* times(Value* a, Value* b) {
    return b_.binary(Op::min, b_.mul(a, b), b_.integer(Type::i64, most_counted));
  }
  Value* quotient_up(Value* a, Value* b) {
    Value* more = b_.sub(b_.add(a, b), b_.integer(Type::i64, 1));
    return b_.div(more, b);
  }

  /// The first index that is summed over goes in pieces: of as many rounds that one more addition
  /// is little beside, and where there are sums enough of as many that there is one.
  void cut() {
    Value* one = b_.integer(Type::i64, 1);
    Value* of_rest = one;
    for (size_t k = 1; k < summed_.size(); k++) of_rest = times(of_rest, count(summed_[k]));
    of_rest = b_.binary(Op::max, of_rest, one);
    Value* sums = one;
    for (size_t k = 0; k < elements_.size(); k++)
      if (!written_.has_own(k)) sums = times(sums, count(elements_[k]));
    Value* first = count(summed_[0]);
    Value* least = quotient_up(b_.integer(Type::i64, least_rounds), of_rest);
    Value* enough = quotient_up(b_.mul(first, sums), b_.integer(Type::i64, enough_sums));
    length_ = b_.binary(Op::max, least, enough);
    Value* lo = b_.convert(summed_[0].lo, Type::i64);
    Value* all = b_.sub(b_.convert(summed_[0].hi, Type::i64), lo);
    pieces_ = quotient_up(b_.binary(Op::max, all, b_.integer(Type::i64, 0)), length_);
  }

  // ---- the loop

  /// `runs`: else it has no iterations; null: true. With pieces if they are given.
  void make(Value* runs, Value* first_piece, Value* end_piece) {
    std::vector<Value*> operands;
    const Type type = index_type();
    if (end_piece) operands = {b_.convert(first_piece, type), b_.convert(end_piece, type)};
    for (size_t k = 0; k < elements_.size(); k++) {
      if (written_.has_own(k)) continue;
      const Bounds& of = elements_[k];
      operands.push_back(b_.convert(of.lo, type));
      Value* hi = runs ? b_.select(runs, of.hi, of.lo) : of.hi;
      operands.push_back(b_.convert(hi, type));
    }
    const std::vector<Type> types(operands.size() / 2, type);
    Inst* made = b_.make(Op::parallel, std::span<const Type>(), operands);
    made->kind = uint8_t(types.size());
    made->options = loop_->options;
    made->options.over = no_binding;
    made->options.block = 0;
    b_.set_regions(made, {b_.make_region(std::span<const Type>(types))});
    Region* body = made->region(0);
    b_.at_end(body);
    std::vector<Value*> element(elements_.size(), nullptr);
    size_t next = end_piece ? 1 : 0;
    for (size_t k = 0; k < elements_.size(); k++)
      if (!written_.has_own(k))
        element[k] = b_.convert(body->arg(next++), sums_.own[k].value->type);
    std::vector<Bounds> rounds = summed_;
    if (end_piece) rounds[0] = piece(b_.convert(body->arg(0), Type::i64));
    const std::vector<Value*> totals = total(rounds, element);
    for (size_t n = 0; n < totals.size(); n++) {
      const Summand& summand = sums_.summands[first_of(n % totals_)];
      const Inst* atomic = summand.atomic;
      const std::vector<Value*> at = place(summand, element_in(int64_t(n / totals_), element));
      b_.at(atomic->loc);
      Value* is_there = is_certain(n % totals_) ? nullptr : is_in_field(summand, at);
      Inst* branch = is_there ? b_.if_(is_there) : nullptr;
      if (branch) b_.at_end(branch->region(0));
      b_.atomic(AtomicOp::add, atomic->binding(), atomic->component(), atomic->elem, at,
                {&totals[n], 1});
      if (!branch) continue;
      b_.yield();
      b_.at_end(branch->region(1)).yield();
      b_.after(branch);
    }
    b_.yield();
    b_.after(made);
  }

  /// Of the loop, whose indices have one.
  Type index_type() const {
    const Type first = sums_.own[0].value->type;
    const auto has_it = [&](const Index& index) { return index.value->type == first; };
    return std::ranges::all_of(sums_.own, has_it) ? first : Type::i64;
  }

  std::vector<Value*> place(const Summand& s, std::span<Value* const> element) {
    ValueMap map = outside_;
    for (size_t k = 0; k < element.size(); k++) map[sums_.own[k].value] = element[k];
    std::vector<Value*> at;
    for (uint32_t axis = 0; axis + 1 < s.atomic->operand_count(); axis++) {
      const auto own = own_at(s, axis);
      at.push_back(own ? element[*own] : repeat_outside(b_, body_, s.atomic->operand(axis), map));
    }
    return at;
  }

  bool is_certain(size_t total) const {
    for (size_t n = 0; n < total_.size(); n++)
      if (total_[n] == total && sums_.summands[n].is_certain()) return true;
    return false;
  }
  /// On the axes that no own index decides on; null: there are none. Where conditions hold it is.
  Value* is_in_field(const Summand& s, std::span<Value* const> element) {
    Value* all = nullptr;
    for (uint32_t axis = 0; axis < element.size(); axis++) {
      if (own_at(s, axis)) continue;
      Value* first = b_.first(shape_, axis, element[axis]->type);
      Value* extent = b_.extent(shape_, axis, element[axis]->type);
      all = both(all, b_.binary(Op::ge, element[axis], first));
      all = both(all, b_.lt(element[axis], b_.add(first, extent)));
    }
    return all;
  }

  Bounds piece(Value* number) {
    const Type type = sums_.summed[0].value->type;
    Value* from = b_.convert(summed_[0].lo, Type::i64);
    Value* lo = b_.add(from, b_.mul(number, length_));
    Value* hi = b_.binary(Op::min, b_.add(lo, length_), b_.convert(summed_[0].hi, Type::i64));
    lo = b_.convert(lo, type);
    return {lo, b_.convert(hi, type)};
  }

  /// The sums over the rounds, one in the other.
  std::vector<Value*> total(std::span<const Bounds> rounds, const std::vector<Value*>& element) {
    std::vector<Value*> sums;
    for (size_t n = 0; n < totals_ * size_t(written_.own_rounds()); n++)
      sums.push_back(nothing(sums_.summands[first_of(n % totals_)].value()->type));
    std::vector<Inst*> loops;
    ValueMap map = outside_;
    for (size_t k = 0; k < rounds.size(); k++) {
      if (written_.has_summed(k)) continue;
      Value* step = b_.integer(rounds[k].lo->type, 1);
      loops.push_back(b_.loop(rounds[k].lo, rounds[k].hi, step, sums));
      Region* body = loops.back()->region(0);
      b_.at_end(body);
      map[sums_.summed[k].value] = body->arg(0);
      for (size_t n = 0; n < sums.size(); n++) sums[n] = body->arg(1 + n);
    }
    add_all(sums, element, map);
    for (Inst* loop : std::views::reverse(loops)) {
      b_.yield(sums);
      for (size_t n = 0; n < sums.size(); n++) sums[n] = loop->result(n);
      b_.after(loop);
    }
    return sums;
  }
  /// All summands of a round of the loops, for each round that is written out.
  void add_all(std::vector<Value*>& sums, const std::vector<Value*>& element, const ValueMap& map) {
    for (int64_t round = 0; round < written_.rounds(); round++)
      for (size_t n = 0; n < sums_.summands.size(); n++) {
        ValueMap of_summand = map;
        for (const auto& [index, value] : written_.at(round))
          of_summand[index->value] = b_.integer(index->value->type, value);
        Value*& sum = sums[size_t(round % written_.own_rounds()) * totals_ + total_[n]];
        sum = add(sum, sums_.summands[n], element_in(round, element), of_summand);
      }
  }
  /// The element with own indices that are written out.
  std::vector<Value*> element_in(int64_t round, std::vector<Value*> element) {
    for (const auto& [index, value] : written_.at(round))
      for (size_t k = 0; k < element.size(); k++)
        if (sums_.own[k] == *index) element[k] = b_.integer(index->value->type, value);
    return element;
  }

  /// The sum and what the iteration and round that the element is of give it, if there is one. It
  /// is computed for the nearest one, so that nothing branches at borders.
  Value* add(Value* sum, const Summand& s, std::span<Value* const> element, ValueMap& map) {
    b_.at(s.atomic->loc);
    Value* is_there = nullptr;
    for (size_t k = 0; k < element.size(); k++) {
      Value* index = element[k];
      for (const Affine::Term& t : s.offsets[k].terms) {
        Value* v = repeat_outside(b_, body_, t.symbol, map);
        index = b_.sub(index, multiple(v, t.factor, index->type));
      }
      index = plus(index, -s.offsets[k].constant);
      map[sums_.own[k].value] = is_asked(k) ? nearest(index, k, s.strides[k], is_there) : index;
    }
    std::vector<Value*> iteration;
    for (const Value& index : body_->args) iteration.push_back(map.at(&index));
    for (const Value* v : s.kept) map[v] = keeper_.kept(b_, v, iteration);
    Value* made = value_where(s.conditions, s, map);
    if (is_there) made = b_.select(is_there, made, nothing(made->type));
    made = b_.add(sum, made);
    if (!in_order_) made->inst->kind |= reassociate;
    return made;
  }
  /// The own index whose multiple it is, or one near it; `is_there` learns whether it is one.
  Value* nearest(Value* index, size_t k, int64_t stride, Value*& is_there) {
    const Bounds& of = own_[k];
    if (stride != 1) {
      Value* from = b_.sub(index, times_stride(of.lo, stride));
      Value* by = b_.integer(index->type, stride);
      Value* rest = b_.binary(Op::rem, from, by);
      is_there = both(is_there, b_.binary(Op::ge, from, b_.integer(index->type, 0)));
      is_there = both(is_there, b_.binary(Op::eq, rest, b_.integer(index->type, 0)));
      index = b_.add(of.lo, b_.div(from, by));
    } else {
      is_there = both(is_there, b_.binary(Op::ge, index, of.lo));
    }
    is_there = both(is_there, b_.lt(index, of.hi));
    index = b_.binary(Op::min, index, plus(of.hi, -1));
    return b_.binary(Op::max, index, of.lo);
  }
  /// Is there an element of which a summand has no iteration or round?
  bool is_asked(size_t k) const {
    const Summand& first = sums_.summands[0];
    return !first.offsets[k].is_constant() ||
           std::ranges::any_of(sums_.summands, [&](const Summand& s) {
             return s.offsets[k] != first.offsets[k] || s.strides[k] != 1;
           });
  }
  Value* nothing(Type type) { return b_.real(type, -0.0); }
  /// Each of the conditions is asked where those before hold.
  Value* value_where(std::span<const Summand::Condition> conditions, const Summand& s,
                     ValueMap& map) {
    if (conditions.empty()) return repeat_outside(b_, body_, s.value(), map);
    const auto [what, is_negated, is_sparing] = conditions[0];
    const Type type = s.value()->type;
    Value* condition = repeat_outside(b_, body_, what, map);
    if (is_sparing) {
      Value* made = value_where(conditions.subspan(1), s, map);
      Value* none = nothing(type);
      return is_negated ? b_.select(condition, none, made) : b_.select(condition, made, none);
    }
    Inst* branch = b_.if_(condition, {&type, 1});
    b_.at_end(branch->region(is_negated ? 1 : 0));
    ValueMap inside = map;
    b_.yield({value_where(conditions.subspan(1), s, inside)});
    b_.at_end(branch->region(is_negated ? 0 : 1));
    b_.yield({nothing(type)});
    b_.after(branch);
    return branch->result();
  }
  Value* both(Value* a, Value* b) { return a ? b_.binary(Op::bit_and, a, b) : b; }

  Inst* const loop_;
  Region* const body_;
  const Contraction& sums_;
  const WrittenOut& written_;
  const Keeper& keeper_;
  const uint32_t shape_;  ///< a field that has the shape of the one that all is added to
  const bool in_order_;
  Builder& b_;
  ValueMap outside_;           ///< bounds that were computed in the loop
  std::vector<size_t> total_;  ///< by summand: which of the sums it is part of
  size_t totals_ = 0;
  std::vector<Bounds> own_, summed_;
  std::vector<Bounds> elements_;  ///< by own index: those that are added to
  Value *length_ = nullptr, *pieces_ = nullptr;
};

bool contract(Kernel& kernel, std::span<const uint32_t> fields, std::span<const uint32_t> shapes,
              Inst* loop) {
  Keeper keeper(kernel, fields, loop);
  std::vector<Contraction> found = contractions_of(kernel, loop, kernel.modes.strict);
  const bool in_order = is_in_order(kernel, loop);
  Builder b(kernel);
  b.after(loop);
  std::vector<Inst*> replaced;
  for (Contraction& sums : found) {
    std::erase_if(sums.summands, [&](const Summand& s) {
      return !std::ranges::all_of(s.kept, [&](auto* v) { return keeper.has_room_for(v); });
    });
    if (sums.summands.empty()) continue;
    const WrittenOut written(sums);
    if (written.asks_in_rounds() && !in_order) continue;
    for (const Summand& s : sums.summands) {
      for (Value* v : s.kept) keeper.keep(v);
      replaced.push_back(s.atomic);
    }
    Contractor(kernel, shapes, loop, sums, written, keeper, b).run();
  }
  for (Inst* atomic : replaced) atomic->erase();
  return !replaced.empty();
}

}  // namespace

bool contract_sums(Kernel& kernel, std::span<const uint32_t> fields, std::vector<uint32_t> shapes) {
  std::vector<Inst*> loops;
  walk(kernel.body, [&](Inst* inst) {
    if (inst->is(Op::parallel)) loops.push_back(inst);
  });
  bool changed = false;
  for (Inst* loop : loops) changed |= contract(kernel, fields, shapes, loop);
  return changed;
}

}  // namespace quern::autodiff
