#include "autodiff/stencils/gather.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "autodiff/stencils/closed_loops.h"
#include "autodiff/stencils/stencil.h"
#include "ir/analysis/ranges.h"
#include "quern/ir/builder.h"

namespace quern::autodiff {

using namespace ir;

namespace {

constexpr uint32_t most_arrays = 8;   ///< of a component
constexpr uint64_t most_offsets = 9;  ///< that a term is looked for at

/// A loop, or one of two versions.
struct Loop {
  Inst* inst = nullptr;
  uint32_t over = no_binding;  ///< the field whose elements it runs through
  Value* runs = nullptr;       ///< else it has no iterations; null: true
  bool is_closed = false;      ///< as ClosedLoops::closed is
};

class Gatherer {
 public:
  Gatherer(Kernel& kernel, std::span<const uint32_t> shapes, const Loop& loop,
           const Stencil& stencil)
      : kernel_(kernel),
        loop_(loop.inst),
        body_(loop_->region(0)),
        version_(loop),
        stencil_(stencil),
        mapping_(stencil.mapping),
        shape_(shapes[stencil.binding]),
        b_(kernel) {
    walks_field_ = loop.over != no_binding && shapes[loop.over] == shape_;
    for (uint32_t k = 0; k < mapping_.axes.size(); k++) walks_field_ &= mapping_.axes[k] == k;
    choose_place();
    find_landing();
  }

  bool run() {
    if (!number()) return false;
    declare();
    keep();
    gather();
    for (Inst* atomic : replaced_) atomic->erase();
    return true;
  }

 private:
  // ---- arrays

  using Place = std::pair<uint32_t, uint32_t>;  ///< component and array

  /// Does the loop run through all of the field along that axis, where indices go around?
  bool is_closed(size_t k) const {
    return version_.is_closed &&
           std::ranges::any_of(stencil_.terms, [&](const Term& t) { return goes_around(t, k); });
  }
  /// Is the element always that of the offsets, modulo the extents of closed axes?
  bool is_always_near(const Term& t) const {
    return t.is_exact() || (version_.is_closed && !t.wrappings.empty());
  }
  int64_t offset_of(const Term& t, size_t k) const {
    return version_.is_closed && goes_around(t, k) ? t.wrappings[k].offset : t.offsets[k];
  }

  /// An iteration's terms are kept at an element that it adds to in any case, as that is in the
  /// field; or at its own, where that is.
  void choose_place() {
    shift_.assign(mapping_.axes.size(), 0);
    has_place_ = walks_field_;
    for (const Term& t : stencil_.terms) {
      if (has_place_ || t.in_branch || !t.is_exact()) continue;
      has_place_ = true;
      shift_ = t.offsets;
    }
  }

  /// Terms that land at an element between the iteration's own and that of the offsets, wherever a
  /// border clamps their indices to.
  void find_landing() {
    stays_near_.assign(stencil_.terms.size(), false);
    if (!walks_field_) return;
    Ranges ranges(kernel_.body, &kernel_);  // fields on trees are not gone back through so
    for (size_t n = 0; n < stencil_.terms.size(); n++) {
      const Term& t = stencil_.terms[n];
      if (t.in_branch || is_always_near(t)) continue;
      uint64_t offsets = 1;
      bool is_between = true;
      for (uint32_t k = 0; k < t.offsets.size() && is_between; k++) {
        offsets *= uint64_t(std::abs(t.offsets[k])) + 1;
        is_between = offsets <= most_offsets && lies_between(ranges, t, k);
      }
      stays_near_[n] = is_between;
    }
  }
  bool lies_between(Ranges& ranges, const Term& t, uint32_t k) {
    const auto away = sum(ranges.exact(t.atomic->operand(k)), ranges.exact(body_->arg(k)), -1);
    if (!away) return false;
    const auto is_not_negative = [&](int64_t factor, int64_t constant) {
      const auto form = sum(Affine{{}, constant}, *away, factor);
      return form && ranges.not_negative(*form, body_);
    };
    return is_not_negative(1, -std::min<int64_t>(t.offsets[k], 0)) &&
           is_not_negative(-1, std::max<int64_t>(t.offsets[k], 0));
  }

  bool number() {
    std::map<std::tuple<uint32_t, const Value*, const Region*, const Inst*>, uint32_t> known;
    std::map<uint32_t, uint32_t> count;
    for (const Term& t : stencil_.terms) {
      const uint32_t component = t.atomic->component();
      uint32_t array = 0;
      if (t.kept) {
        // In a branch what was kept says which terms there are, too.
        const Region* branch = t.in_branch ? t.atomic->parent : nullptr;
        const Inst* alone = t.in_branch && !is_always_near(t) ? t.atomic : nullptr;
        const auto [at, is_new] = known.try_emplace({component, t.kept, branch, alone}, 0);
        if (is_new) at->second = count[component]++;
        array = at->second;
      }
      places_.emplace_back(component, array);
    }
    return std::ranges::all_of(count, [](const auto& c) { return c.second <= most_arrays; });
  }

  void declare() {
    for (size_t n = 0; n < places_.size(); n++)
      while (stencil_.terms[n].kept && arrays_.size() <= places_[n].second) {
        Binding made = kernel_.bindings[stencil_.binding];
        made.name = "the terms of " + made.name;
        made.companion = "terms " + std::to_string(arrays_.size());
        kernel_.bindings.push_back(std::move(made));
        arrays_.push_back(uint32_t(kernel_.bindings.size() - 1));
      }
  }

  // ---- parts of the code

  Type index_type(size_t k) const { return body_->arg(k)->type; }
  Value* first(size_t k) { return b_.first(shape_, mapping_.axes[k], index_type(k)); }
  Value* end(size_t k) {
    Value* from = first(k);
    Value* extent = b_.extent(shape_, mapping_.axes[k], index_type(k));
    return b_.add(from, extent);
  }
  Value* plus(Value* v, int64_t offset) {
    return offset == 0 ? v : b_.add(v, b_.integer(v->type, offset));
  }
  /// Null is true.
  Value* both(Value* a, Value* b) { return !a ? b : !b ? a : b_.binary(Op::bit_and, a, b); }
  Value* within(Value* v, Value* lo, Value* hi) {
    Value* above = b_.binary(Op::ge, v, lo);
    Value* below = b_.lt(v, hi);
    return both(above, below);
  }
  Value* within_field(std::span<Value* const> indices) {
    Value* all = nullptr;
    for (size_t k = 0; k < indices.size(); k++) {
      if (is_closed(k)) continue;
      Value* from = first(k);
      Value* to = end(k);
      all = both(all, within(indices[k], from, to));
    }
    return all;
  }
  std::vector<Value*> shifted(std::span<Value* const> indices) {
    std::vector<Value*> at;
    for (size_t k = 0; k < indices.size(); k++) at.push_back(plus(indices[k], shift_[k]));
    return at;
  }
  /// Where the element lies in the field, of which the loop's indices are known.
  std::vector<Value*> element(std::span<Value* const> indices) const {
    std::vector<Value*> at = mapping_.fixed;
    for (size_t k = 0; k < indices.size(); k++) at[mapping_.axes[k]] = indices[k];
    return at;
  }
  static Value* known(const ValueMap& map, Value* v) {
    const auto copy = map.find(v);
    return copy == map.end() ? v : copy->second;
  }
  /// Do the term's questions hold? `map`: what stands for values that they ask about, if not they
  /// themselves. Null: in all iterations.
  Value* is_near(const Term& t, const ValueMap& map) {
    const auto now = [&](Value* v) { return known(map, v); };
    Value* all = nullptr;
    if (is_always_near(t)) return all;
    for (const Question& q : t.questions) {
      Value* holds = now(q.a);
      if (q.a->type != Type::b1)
        holds = b_.binary(q.op, holds, q.b ? now(q.b) : b_.integer(q.a->type, 0));
      else if (q.is_negated)
        holds = b_.unary(Op::bit_not, holds);
      all = both(all, holds);
    }
    return all;
  }

  // ---- the loop that computes terms

  void keep() {
    std::vector<Value*> own;
    for (Value& index : body_->args) own.push_back(&index);
    b_.before(body_->first).at(loop_->loc);
    Value* has_place = has_place_ ? nullptr : within_field(own);

    std::map<Place, Value*> values;
    for (size_t n = 0; n < places_.size(); n++) {
      const Term& t = stencil_.terms[n];
      if (!t.kept) continue;
      Value*& value = values[places_[n]];
      if (!t.in_branch) value = t.kept;
      if (value) continue;
      b_.before(body_->first).at(t.atomic->loc);
      Value* zero = b_.real(t.kept->type, 0);
      value = b_.slot(t.kept->type);
      b_.put(value, zero);
    }
    for (size_t n = 0; n < places_.size(); n++) {
      const Term& t = stencil_.terms[n];
      b_.before(t.atomic).at(t.atomic->loc);
      if (stays_near_[n]) {
        replaced_.push_back(t.atomic);
        continue;
      }
      Value* here = both(has_place, is_near(t, {}));
      Value* slot = t.in_branch ? values.at(places_[n]) : nullptr;
      if (!here) {
        if (slot) b_.put(slot, t.kept);
        replaced_.push_back(t.atomic);
        continue;
      }
      split(t, here, slot);
    }

    b_.before(body_->terminator()).at(loop_->loc);
    Inst* branch = has_place ? b_.if_(has_place) : nullptr;
    if (branch) b_.at_end(branch->region(0));
    for (auto [place, value] : values) {
      if (value->type == Type::slot) value = b_.get(value);
      b_.store(arrays_[place.second], place.first, element(shifted(own)), value);
    }
    if (!branch) return;
    b_.yield();
    b_.at_end(branch->region(1)).yield();
  }

  /// The atomic takes what goes elsewhere than `here`.
  void split(const Term& t, Value* here, Value* slot) {
    Value* elsewhere = b_.unary(Op::bit_not, here);
    Inst* branch = b_.if_(both(t.condition, elsewhere));
    b_.at_end(branch->region(0));
    move(b_, t.atomic);
    b_.yield();
    b_.at_end(branch->region(1));
    if (slot) b_.put(slot, t.kept);
    b_.yield();
  }

  // ---- the loop that adds them up

  struct Bounds {
    Value *lo, *hi;
  };

  /// Of the loop that computes terms.
  Bounds bounds(size_t k) {
    if (walks_field_) {
      Value* from = first(k);
      return {from, end(k)};
    }
    const uint32_t over = version_.over;
    if (over == no_binding) return {loop_->operand(2 * k), loop_->operand(2 * k + 1)};
    Value* from = b_.first(over, uint32_t(k), index_type(k));
    Value* extent = b_.extent(over, uint32_t(k), index_type(k));
    return {from, b_.add(from, extent)};
  }

  /// Of the elements of the field that terms may be added to. Nothing wraps.
  Bounds reached(size_t k, const Bounds& of) {
    const auto [least, most] =
        std::ranges::minmax(stencil_.terms, {}, [&](const Term& t) { return t.offsets[k]; });
    const int64_t before = least.offsets[k], behind = most.offsets[k];
    Value* from = first(k);
    Value* to = end(k);
    Value* lo = before < 0 ? plus(b_.binary(Op::max, of.lo, plus(from, -before)), before)
                           : b_.binary(Op::max, plus(of.lo, before), from);
    Value* hi = behind > 0 ? plus(b_.binary(Op::min, of.hi, plus(to, -behind)), behind)
                           : b_.binary(Op::min, plus(of.hi, behind), to);
    return {lo, hi};
  }

  void gather() {
    b_.after(loop_).at(loop_->loc);
    const bool is_over = walks_field_ && !version_.runs;
    std::vector<Bounds> domain;
    std::vector<Value*> operands;
    for (size_t k = 0; k < mapping_.axes.size(); k++) {
      domain.push_back(bounds(k));
      if (is_over) continue;
      const bool is_all = walks_field_ || is_closed(k);
      const Bounds made = is_all ? domain.back() : reached(k, domain.back());
      operands.push_back(made.lo);
      operands.push_back(version_.runs ? b_.select(version_.runs, made.hi, made.lo) : made.hi);
    }
    Inst* made = b_.make(Op::parallel, std::span<const Type>(), operands);
    made->kind = loop_->kind;
    made->options = loop_->options;
    made->options.over = is_over ? version_.over : no_binding;
    std::vector<Type> types;
    for (const Value& index : body_->args) types.push_back(index.type);
    b_.set_regions(made, {b_.make_region(std::span<const Type>(types))});
    b_.at_end(made->region(0));
    std::vector<Value*> own;
    for (Value& index : made->region(0)->args) own.push_back(&index);
    std::map<uint32_t, Value*> sums;
    for (size_t n : in_order()) {
      Value*& sum = sums[places_[n].first];
      for (const std::vector<int64_t>& offsets : offsets_of(n)) {
        Value* value = gathered(n, offsets, own, domain);
        sum = sum ? b_.add(sum, value) : value;
      }
    }
    for (auto& [component, sum] : sums)
      b_.atomic(AtomicOp::add, stencil_.binding, component, sum->type, element(own), {&sum, 1});
    b_.yield();
  }

  /// The terms of an element, by offsets: the first iteration's first, unless they come around.
  std::vector<size_t> in_order() const {
    std::vector<size_t> order;
    for (size_t n = 0; n < stencil_.terms.size(); n++) order.push_back(n);
    std::ranges::stable_sort(order, [&](size_t x, size_t y) {
      return stencil_.terms[y].offsets < stencil_.terms[x].offsets;
    });
    return order;
  }

  /// Where the term may be, from its iteration: the last first.
  std::vector<std::vector<int64_t>> offsets_of(size_t n) const {
    const Term& t = stencil_.terms[n];
    std::vector<std::vector<int64_t>> all = {{}};
    for (size_t k = 0; k < t.offsets.size(); k++) {
      const int64_t offset = offset_of(t, k);
      int64_t at = offset;
      std::vector<std::vector<int64_t>> longer;
      for (bool is_last = false; !is_last; at += at < 0 ? 1 : -1) {
        is_last = !stays_near_[n] || at == 0;
        for (const std::vector<int64_t>& before : all) {
          longer.push_back(before);
          longer.back().push_back(at);
        }
      }
      all = std::move(longer);
    }
    std::ranges::sort(all, std::ranges::greater());
    return all;
  }

  /// What the iteration that has the element `own` at the offsets gives it, or -0.
  Value* gathered(size_t n, std::span<const int64_t> offsets, std::span<Value* const> own,
                  std::span<const Bounds> domain) {
    const Term& t = stencil_.terms[n];
    b_.at(t.atomic->loc);
    std::vector<Value*> from, in_field;
    Value* there = nullptr;
    ValueMap map;
    for (size_t k = 0; k < own.size(); k++) {
      const int64_t offset = offsets[k];
      const bool is_around = is_closed(k) && goes_around(t, k);
      const bool in_domain = offset == 0 ? walks_field_ || is_closed(k) : is_around;
      Value* index = plus(own[k], -offset);
      if (is_around && offset != 0) index = around(index, offset, k);
      Value* at = is_around ? plus(index, shift_[k]) : plus(own[k], shift_[k] - offset);
      from.push_back(index);
      in_field.push_back((in_domain && shift_[k] == 0) || at == own[k] ? at : clamped(at, k));
      if (!in_domain) there = both(there, within(index, domain[k].lo, domain[k].hi));
      map[body_->arg(k)] = index;
    }
    if (!has_place_) there = both(there, within_field(from));
    Value* value = t.value();
    if (t.kept)
      map[t.kept] =
          b_.load(arrays_[places_[n].second], places_[n].first, t.kept->type, element(in_field));
    Value* nothing = b_.real(value->type, -0.0);  // leaves what it is added to as it is
    const auto computed = [&](Value* where) {
      if (!t.in_branch) {
        repeat(b_, t.code, map);
        where = both(where, lands(n, offsets, own, map));
      }
      Value* now = known(map, value);
      return where ? b_.select(where, now, nothing) : now;
    };
    if (!there || t.code.is_pure()) return computed(there);
    // Where there is no such iteration its reads could be out of range.
    Inst* branch = b_.if_(there, {&value->type, 1});
    b_.at_end(branch->region(0));
    b_.yield({computed(nullptr)});
    b_.at_end(branch->region(1)).yield({nothing});
    for (size_t k = 0; walks_field_ && k + 1 < own.size(); k++)
      if (shift_[k] == 0) read_at(in_field[k], from[k], k, branch->region(0));
    b_.after(branch);
    return branch->result();
  }

  /// Reads at `index` along an axis are at `in_field` instead, which is equal there. Vectors read
  /// where the branch is not taken, too, with masks: for rows that are no memory that takes a
  /// processor hundreds of cycles each.
  static void read_at(Value* in_field, const Value* index, size_t axis, Region* taken) {
    for (Inst* inst : *taken)
      if (inst->is(Op::load) && axis + 1 < inst->operand_count() && inst->operand(axis) == index)
        inst->set_operand(axis, in_field);
  }

  /// Is the element of an iteration, of which `map` has the values, `own`? Null: always. That of the
  /// term's own offsets is so away from borders, which `split_walks` knows by the questions.
  Value* lands(size_t n, std::span<const int64_t> offsets, std::span<Value* const> own,
               const ValueMap& map) {
    const Term& t = stencil_.terms[n];
    if (!stays_near_[n]) return is_near(t, map);
    Value* all = nullptr;
    for (size_t k = 0; k < own.size(); k++)
      if (t.offsets[k] != 0)
        all = both(all, b_.binary(Op::eq, known(map, t.atomic->operand(k)), own[k]));
    if (!std::ranges::equal(offsets, t.offsets)) return all;
    Value* near = is_near(t, map);
    return all ? b_.binary(Op::bit_or, near, all) : nullptr;
  }

  /// The iteration of a closed axis, so far behind the element, around its ends.
  Value* around(Value* index, int64_t offset, size_t k) {
    Value* extent = b_.extent(shape_, mapping_.axes[k], index_type(k));
    return offset > 0 ? b_.select(b_.lt(index, first(k)), b_.add(index, extent), index)
                      : b_.select(b_.lt(index, end(k)), index, b_.sub(index, extent));
  }

  Value* clamped(Value* index, size_t k) {
    Value* last = plus(end(k), -1);
    Value* below = b_.binary(Op::min, index, last);
    return b_.binary(Op::max, below, first(k));
  }

  Kernel& kernel_;
  Inst* const loop_;
  Region* const body_;
  const Loop version_;
  const Stencil& stencil_;
  const Mapping& mapping_;
  const uint32_t shape_;        ///< a field that has the shape of the stencil's
  bool walks_field_;            ///< an iteration for each of its elements, and no others
  std::vector<int64_t> shift_;  ///< from an iteration to where its terms are kept, by index
  bool has_place_ = false;      ///< that is an element in all iterations
  /// By term: does it land between the iteration's own element and that of its offsets?
  std::vector<bool> stays_near_;
  Builder b_;
  std::vector<Place> places_;  ///< by term
  std::vector<uint32_t> arrays_;
  std::vector<Inst*> replaced_;
};

}  // namespace

bool gather_terms(Kernel& kernel, std::vector<uint32_t> shapes) {
  std::vector<Inst*> loops;
  walk(kernel.body, [&](Inst* inst) {
    if (inst->is(Op::parallel)) loops.push_back(inst);
  });
  bool changed = false;
  const auto gather = [&](const Loop& loop) {
    for (const Stencil& stencil : stencils_of(kernel, loop.inst))
      changed |= Gatherer(kernel, shapes, loop, stencil).run();
  };
  for (Inst* loop : loops) {
    const uint32_t over = loop->options.over;
    const auto made = close_loop(kernel, shapes, loop, stencils_of(kernel, loop));
    if (!made) {
      gather({loop, over});
      continue;
    }
    changed = true;
    gather({made->closed, over, made->is_closed, true});
    gather({made->open, over, made->is_open});
  }
  return changed;
}

}  // namespace quern::autodiff
