#include "ir/analysis/ranges.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <numeric>

#include "ir/analysis/facts.h"

namespace quern::ir {

namespace {

// ---- numbers whose ends stand for what lies beyond them

bool is_infinite(int64_t n) { return n == INT64_MIN || n == INT64_MAX; }

int64_t plus(int64_t a, int64_t b) {
  if (is_infinite(a)) return a;
  if (is_infinite(b)) return b;
  int64_t out;
  if (__builtin_add_overflow(a, b, &out)) return a < 0 ? INT64_MIN : INT64_MAX;
  return out;
}

int64_t times(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  int64_t out;
  if (is_infinite(a) || is_infinite(b) || __builtin_mul_overflow(a, b, &out))
    return (a < 0) != (b < 0) ? INT64_MIN : INT64_MAX;
  return out;
}

int64_t minus(int64_t a) {
  if (is_infinite(a)) return a < 0 ? INT64_MAX : INT64_MIN;
  return -a;
}

Interval operator+(const Interval& a, const Interval& b) {
  return {plus(a.least, b.least), plus(a.most, b.most)};
}

Interval operator*(const Interval& a, const Interval& b) {
  const int64_t ends[] = {times(a.least, b.least), times(a.least, b.most), times(a.most, b.least),
                          times(a.most, b.most)};
  return {*std::ranges::min_element(ends), *std::ranges::max_element(ends)};
}

Interval united(const Interval& a, const Interval& b) {
  return {std::min(a.least, b.least), std::max(a.most, b.most)};
}

/// The interval if no number in it wraps; else all values of the type.
Interval fitted(const Interval& v, Type type) {
  const Interval all = interval_of(type);
  const bool beyond = (v.least == INT64_MIN && is_signed(type)) || v.most == INT64_MAX;
  return beyond || !all.contains(v) ? all : v;
}

Affine symbol_form(const Value* v) { return {{{v, 1}}, 0}; }

bool is_comparison(Op op) {
  return op == Op::lt || op == Op::le || op == Op::gt || op == Op::ge || op == Op::eq ||
         op == Op::ne;
}

/// The number a shift by it means, where that is a constant.
std::optional<int> shift_count(const Inst* inst) {
  const Inst* c = constant_of(inst->operand(1));
  if (!c) return std::nullopt;
  return int(c->imm % bit_width(inst->type()));
}

std::optional<int64_t> number(const Value* v) {
  const Inst* c = constant_of(v);
  if (!c || !is_int(v->type)) return std::nullopt;
  if (v->type == Type::u64 && c->imm > uint64_t(INT64_MAX)) return std::nullopt;
  return is_signed(v->type) ? to_signed(c->imm, v->type) : int64_t(c->imm);
}

}  // namespace

Interval interval_of(Type type) {
  if (type == Type::b1) return {0, 1};
  if (!is_int(type)) return {};
  const unsigned width = bit_width(type);
  if (is_unsigned(type)) return {0, width == 64 ? INT64_MAX : int64_t((uint64_t(1) << width) - 1)};
  if (width == 64) return {};
  return {-(int64_t(1) << (width - 1)), (int64_t(1) << (width - 1)) - 1};
}

std::optional<Affine> sum(const Affine& a, const Affine& b, int64_t factor) {
  Affine out = a;
  int64_t product;
  if (__builtin_mul_overflow(b.constant, factor, &product) ||
      __builtin_add_overflow(a.constant, product, &out.constant))
    return std::nullopt;
  auto before = [](const Affine::Term& x, const Value* v) {
    return std::less<const Value*>()(x.symbol, v);
  };
  for (const Affine::Term& term : b.terms) {
    auto at = std::lower_bound(out.terms.begin(), out.terms.end(), term.symbol, before);
    if (at == out.terms.end() || at->symbol != term.symbol)
      at = out.terms.insert(at, {term.symbol, 0});
    if (__builtin_mul_overflow(term.factor, factor, &product) ||
        __builtin_add_overflow(at->factor, product, &at->factor))
      return std::nullopt;
    if (at->factor == 0) out.terms.erase(at);
  }
  if (out.terms.size() > AffineForms::most_terms) return std::nullopt;
  return out;
}

Ranges::Ranges(const Region* root, const Kernel* bound) : bound_(bound) {
  walk(const_cast<Region*>(root), [&](const Inst* inst) {
    for (const Part& axis : narrow_axes(inst)) narrow_.insert(axis);
  });
}

// ---- symbols

const Value* Ranges::name(Op op, Part part, Type type) {
  const Value*& known = names_[{op, part}];
  if (!known) {
    Value& made = values_.emplace_back();
    made.type = type;
    known = &made;
    named_[known] = {op, part, type};
    order_.try_emplace(known, order_.size());
  }
  return known;
}

std::vector<Affine::Term> Ranges::ordered(const Affine& form) const {
  std::vector<Affine::Term> terms = form.terms;
  std::ranges::sort(terms, {}, [&](const Affine::Term& t) { return order_.at(t.symbol); });
  return terms;
}

const Value* Ranges::extent(uint32_t binding, uint32_t axis) {
  return name(Op::extent, {binding, axis}, Type::i64);
}
const Value* Ranges::first(uint32_t binding, uint32_t axis) {
  return name(Op::first, {binding, axis}, Type::i64);
}

const Ranges::Named* Ranges::named(const Value* symbol) const {
  auto found = named_.find(symbol);
  return found == named_.end() ? nullptr : &found->second;
}

bool Ranges::is_narrow(uint32_t binding, uint32_t axis) const {
  return narrow_.contains({binding, axis});
}

Interval Ranges::first_index(Part axis) const {
  constexpr int64_t near = int64_t(1) << 30, far = int64_t(1) << 62;
  const bool is_near = bound_ && std::ranges::none_of(bound_->bindings[axis.binding].layout.pools,
                                                      &Placement::Pool::is_hashed);
  if (is_near) return {-near, near};
  if (is_narrow(axis.binding, axis.component)) return {INT32_MIN, INT32_MAX};
  return {-far, far};
}

// ---- numbers

Interval Ranges::of(const Value* v) { return of(v, 0); }

Interval Ranges::of(const Affine& form) {
  Interval all = {form.constant, form.constant};
  for (const Affine::Term& t : form.terms) {
    const Named* n = named(t.symbol);
    // The last index of an axis whose indices fit into 32 bits does too.
    if (n && n->op == Op::first && t.factor == 1 && is_narrow(n->part.binding, n->part.component)) {
      const Value* extent =
          names_.contains({Op::extent, n->part}) ? names_.at({Op::extent, n->part}) : nullptr;
      if (extent && form.factor_of(extent) == 1) {
        all = all + Interval{first_index(n->part).least, INT32_MAX};
        continue;
      }
    }
    if (n && n->op == Op::extent && t.factor == 1 &&
        is_narrow(n->part.binding, n->part.component) && names_.contains({Op::first, n->part}) &&
        form.factor_of(names_.at({Op::first, n->part})) == 1)
      continue;
    all = all + of(t.symbol) * Interval{t.factor, t.factor};
  }
  // What went beyond one end and came back may be anything.
  if (all.least == INT64_MAX || all.most == INT64_MIN) return {};
  return all;
}

Interval Ranges::of(const Value* v, int depth) {
  if (auto known = intervals_.find(v); known != intervals_.end()) return known->second;
  const Interval all = interval_of(v->type);
  if (const Named* n = named(v)) {
    if (n->op == Op::extent)
      return {0, is_narrow(n->part.binding, n->part.component) ? INT32_MAX : int64_t(1) << 62};
    if (n->op == Op::first) return first_index(n->part);
    return all;
  }
  if (depth > deepest || !(is_int(v->type) || v->type == Type::b1)) return all;
  Interval found = all;
  if (v->inst && v->inst->regions.empty()) {
    found = computed(v->inst, depth);
  } else if (v->inst) {
    if (v->inst->is(Op::if_)) {
      const Region *yes = v->inst->region(0), *no = v->inst->region(1);
      if (yes->last->is(Op::yield) && no->last->is(Op::yield))
        found = united(of(yes->last->operand(v->index), depth + 1),
                       of(no->last->operand(v->index), depth + 1));
    }
  } else if (const std::optional<IndexBounds> b = bounds_of(v)) {
    const Interval lo = b->axis ? of(start_of(*b)) : of(b->lo, depth + 1);
    const Interval hi = b->axis ? of(end_of(*b)) : of(b->hi, depth + 1);
    found.least = std::max(found.least, lo.least);
    found.most = std::min(found.most, plus(hi.most, -1));
    if (found.most < found.least) found.most = found.least;  // it never runs
  }
  return intervals_[v] = found;
}

Interval Ranges::computed(const Inst* inst, int depth) {
  const Type type = inst->type();
  const Interval all = interval_of(type);
  auto operand = [&](size_t k) { return of(inst->operand(k), depth + 1); };
  switch (inst->op) {
    case Op::constant: {
      if (type == Type::b1) return all;
      const std::optional<int64_t> n = number(inst->result());
      return n ? Interval{*n, *n} : all;
    }
    case Op::extent: return fitted(of(extent(inst->binding(), inst->axis())), type);
    case Op::first: return fitted(of(first(inst->binding(), inst->axis())), type);
    default: break;
  }
  if (!is_int(type)) return all;
  switch (inst->op) {
    case Op::add: return fitted(operand(0) + operand(1), type);
    case Op::sub: return fitted(operand(0) + operand(1) * Interval{-1, -1}, type);
    case Op::neg: return fitted(operand(0) * Interval{-1, -1}, type);
    case Op::mul: return fitted(operand(0) * operand(1), type);
    case Op::shl: {
      const std::optional<int> n = shift_count(inst);
      if (!n || *n > 62) return all;
      const int64_t by = int64_t(1) << *n;
      return fitted(operand(0) * Interval{by, by}, type);
    }
    case Op::shr: {
      const std::optional<int> n = shift_count(inst);
      if (!n || *n == 0) return n ? operand(0) : all;
      const Interval a = operand(0);
      const int64_t most =
          type == Type::u64 && a.most == INT64_MAX ? int64_t(~uint64_t(0) >> *n) : a.most >> *n;
      return {a.least >> *n, most};
    }
    case Op::min: {
      const Interval a = operand(0), b = operand(1);
      return {std::min(a.least, b.least), std::min(a.most, b.most)};
    }
    case Op::max: {
      const Interval a = operand(0), b = operand(1);
      return {std::max(a.least, b.least), std::max(a.most, b.most)};
    }
    case Op::select: return united(operand(1), operand(2));
    case Op::abs: {
      const Interval a = operand(0);
      if (a.least >= 0) return a;
      return fitted({0, std::max(minus(a.least), a.most)}, type);
    }
    case Op::rem: {  // by zero: the number itself
      const Interval a = operand(0), b = operand(1);
      Interval out = {std::min<int64_t>(a.least, 0), std::max<int64_t>(a.most, 0)};
      if (b.least >= 1 && b.most != INT64_MAX) {
        out.least = std::max(out.least, 1 - b.most);
        out.most = std::min(out.most, b.most - 1);
      }
      return out;
    }
    case Op::div: {
      const Interval a = operand(0), b = operand(1);
      if (b.least < 1 || is_infinite(a.least) || is_infinite(a.most)) return all;
      return {std::min(a.least / b.least, a.least / b.most),
              std::max(a.most / b.least, a.most / b.most)};
    }
    case Op::bit_and: {
      const Interval a = operand(0), b = operand(1);
      if (a.least < 0 && b.least < 0) return all;
      if (a.least < 0) return {0, b.most};
      return {0, b.least < 0 ? a.most : std::min(a.most, b.most)};
    }
    case Op::popcount:
    case Op::clz:
    case Op::ctz: return {0, int64_t(bit_width(type))};
    case Op::convert: {
      const Type from = inst->operand(0)->type;
      if (from == Type::b1) return {0, 1};
      return is_int(from) ? fitted(operand(0), type) : all;
    }
    default: return all;
  }
}

// ---- sums

const Affine& Ranges::exact(const Value* v, int depth) {
  if (auto known = exact_.find(v); known != exact_.end()) return known->second;
  std::optional<Affine> form;
  if (is_int(v->type) && v->inst && depth <= deepest) form = exact_sum(v, depth);
  if (!form) order_.try_emplace(v, order_.size());
  return exact_.emplace(v, form ? *form : symbol_form(v)).first->second;
}

std::optional<Affine> Ranges::exact_sum(const Value* v, int depth) {
  const Inst* inst = v->inst;
  auto operand = [&](size_t k) { return exact(inst->operand(k), depth + 1); };
  auto scaled = [&](const Affine& a, int64_t by) { return sum({}, a, by); };
  std::optional<Affine> form;
  switch (inst->op) {
    case Op::constant:
      if (std::optional<int64_t> n = number(v)) return Affine{{}, *n};
      return std::nullopt;
    case Op::extent: form = symbol_form(extent(inst->binding(), inst->axis())); break;
    case Op::first: form = symbol_form(first(inst->binding(), inst->axis())); break;
    case Op::param: return symbol_form(name(Op::param, {inst->binding(), 0}, v->type));
    case Op::add: form = sum(operand(0), operand(1), 1); break;
    case Op::sub: form = sum(operand(0), operand(1), -1); break;
    case Op::neg: form = scaled(operand(0), -1); break;
    case Op::mul: {
      const Affine a = operand(0), b = operand(1);
      if (b.is_constant())
        form = scaled(a, b.constant);
      else if (a.is_constant())
        form = scaled(b, a.constant);
      break;
    }
    case Op::shl: {
      const std::optional<int> n = shift_count(inst);
      if (n && *n <= 62) form = scaled(operand(0), int64_t(1) << *n);
      break;
    }
    case Op::convert:
      if (is_int(inst->operand(0)->type)) form = operand(0);
      break;
    default: break;
  }
  if (!form) return form;
  // It is the value if it fits, whatever its symbols are.
  const Interval range = of(*form), all = interval_of(v->type);
  const bool bounded = range.least != INT64_MIN && range.most != INT64_MAX;
  const bool same = form->base() && form->constant == 0 && v->type == form->base()->type;
  if (!same && !(bounded && all.contains(range))) return std::nullopt;
  return form;
}

std::optional<Affine> Ranges::expanded(const Affine& form) {
  std::optional<Affine> out = Affine{{}, form.constant};
  for (const Affine::Term& t : form.terms)
    if (out) out = sum(*out, exact(t.symbol), t.factor);
  return out;
}

Affine Ranges::start_of(const IndexBounds& b) {
  return b.axis ? symbol_form(first(b.axis->binding, b.axis->component)) : exact(b.lo);
}

Affine Ranges::end_of(const IndexBounds& b) {
  if (!b.axis) return exact(b.hi);
  return *sum(start_of(b), symbol_form(extent(b.axis->binding, b.axis->component)), 1);
}

// ---- facts

/// high - low + constant ≥ 0
void Ranges::add(std::vector<Affine>& facts, const Affine& high, const Affine& low,
                 int64_t constant) {
  std::optional<Affine> form = sum(high, low, -1);
  if (!form || __builtin_add_overflow(form->constant, constant, &form->constant)) return;
  if (!form->is_constant() && facts.size() < most_facts) facts.push_back(std::move(*form));
}

std::vector<Affine> Ranges::facts_of(const Value* condition, bool truth, const Region* region) {
  std::vector<Affine> facts;
  follow(condition, truth, region, facts, 0);
  return facts;
}

void Ranges::follow(const Value* c, bool truth, const Region* region, std::vector<Affine>& facts,
                    int depth) {
  const Inst* inst = c->inst;
  if (!inst || depth > deepest) return;
  auto also = [&](const Value* v, bool t) { follow(v, t, region, facts, depth + 1); };
  auto is_bool = [](const Value* v, bool t) {
    const Inst* k = constant_of(v);
    return k && (k->imm != 0) == t;
  };
  if (inst->is(Op::bit_not)) return also(inst->operand(0), !truth);
  if (inst->is(truth ? Op::bit_and : Op::bit_or)) {
    also(inst->operand(0), truth);
    return also(inst->operand(1), truth);
  }
  // Where one choice is the other answer, it was not taken.
  if (inst->is(Op::select) || inst->is(Op::if_)) {
    const Value *yes = nullptr, *no = nullptr;
    if (inst->is(Op::select)) {
      yes = inst->operand(1);
      no = inst->operand(2);
    } else {
      for (const Region* r : inst->regions)
        if (!r->last->is(Op::yield)) return;
      yes = inst->region(0)->last->operand(c->index);
      no = inst->region(1)->last->operand(c->index);
    }
    if (is_bool(no, !truth)) {
      also(inst->operand(0), true);
      also(yes, truth);
    } else if (is_bool(yes, !truth)) {
      also(inst->operand(0), false);
      also(no, truth);
    }
    return;
  }
  if (!is_comparison(inst->op) || !is_int(inst->operand(0)->type)) return;
  const Affine a = exact(inst->operand(0)), b = exact(inst->operand(1));
  switch (inst->op) {
    case Op::lt: return truth ? add(facts, b, a, -1) : add(facts, a, b, 0);
    case Op::le: return truth ? add(facts, b, a, 0) : add(facts, a, b, -1);
    case Op::gt: return truth ? add(facts, a, b, -1) : add(facts, b, a, 0);
    case Op::ge: return truth ? add(facts, a, b, 0) : add(facts, b, a, -1);
    default: break;
  }
  if (inst->is(Op::eq) == truth) {
    add(facts, a, b, 0);
    add(facts, b, a, 0);
    return;
  }
  // Not equal: where one is not less, it is more.
  const std::optional<Affine> up = sum(a, b, -1), down = sum(b, a, -1);
  if (up && region && not_negative(*up, region)) add(facts, a, b, -1);
  if (down && region && not_negative(*down, region)) add(facts, b, a, -1);
}

const std::vector<Affine>& Ranges::facts(const Region* region) {
  auto known = facts_.find(region);
  if (known != facts_.end()) return known->second;
  std::vector<Affine> own;
  const Inst* around = region->parent;
  const Region* outer = around ? around->parent : nullptr;
  for (const Value& index : region->args)
    if (const std::optional<IndexBounds> b = bounds_of(&index)) {
      const Affine at = exact(&index);
      add(own, end_of(*b), at, -1);
      add(own, at, start_of(*b), 0);
    }
  if (around && around->is(Op::if_))
    follow(around->operand(0), region == around->region(0), outer, own, 0);
  if (outer)
    for (const Affine& f : facts(outer))
      if (own.size() < most_facts) own.push_back(f);
  return facts_.emplace(region, std::move(own)).first->second;
}

std::vector<Affine> Ranges::facts_of(const Value* symbol, const Region* region) {
  std::vector<Affine> facts;
  const Inst* inst = symbol->inst;
  if (!inst || !is_int(symbol->type) || inst->operand_count() == 0) return facts;
  const Affine own = symbol_form(symbol);
  switch (inst->op) {
    case Op::min:
      for (const Use& use : inst->operands) add(facts, exact(use.value), own, 0);
      break;
    case Op::max:
      for (const Use& use : inst->operands) add(facts, own, exact(use.value), 0);
      break;
    case Op::rem: {
      const Affine a = exact(inst->operand(0)), b = exact(inst->operand(1));
      if (of(inst->operand(0)).least >= 0 || not_negative(a, region)) {
        add(facts, own, {}, 0);
        add(facts, a, own, 0);
      }
      const std::optional<Affine> above = sum(b, {{}, 1}, -1);
      if (above && not_negative(*above, region)) add(facts, b, own, -1);
      break;
    }
    case Op::div: {
      const std::optional<int64_t> by = number(inst->operand(1));
      const Affine a = exact(inst->operand(0));
      if (!by || *by < 1 || (of(inst->operand(0)).least < 0 && !not_negative(a, region))) break;
      if (std::optional<Affine> whole = sum({}, own, *by)) {
        add(facts, own, {}, 0);
        add(facts, a, *whole, 0);
        add(facts, *whole, a, *by - 1);
      }
      break;
    }
    case Op::shr: {
      const std::optional<int> n = shift_count(inst);
      if (!n || *n > 30) break;
      if (std::optional<Affine> whole = sum({}, own, int64_t(1) << *n)) {
        add(facts, exact(inst->operand(0)), *whole, 0);
        add(facts, *whole, exact(inst->operand(0)), (int64_t(1) << *n) - 1);
      }
      break;
    }
    default: break;
  }
  return facts;
}

std::vector<Ranges::Case> Ranges::cases(const Value* symbol, const Region* region) {
  const Inst* inst = symbol->inst;
  if (!inst || !is_int(symbol->type)) return {};
  if (inst->is(Op::min) || inst->is(Op::max)) {
    std::vector<Case> out;
    for (const Use& use : inst->operands) out.push_back({exact(use.value), {}});
    return out;
  }
  const Value *yes = nullptr, *no = nullptr;
  if (inst->is(Op::select)) {
    yes = inst->operand(1);
    no = inst->operand(2);
  } else if (inst->is(Op::if_) && inst->region(0)->last->is(Op::yield) &&
             inst->region(1)->last->is(Op::yield)) {
    yes = inst->region(0)->last->operand(symbol->index);
    no = inst->region(1)->last->operand(symbol->index);
  } else {
    return {};
  }
  return {{exact(yes), facts_of(inst->operand(0), true, region)},
          {exact(no), facts_of(inst->operand(0), false, region)}};
}

// ---- questions

std::optional<Affine> Ranges::without(const Affine& form, const Affine& fact, const Value* symbol) {
  const int64_t have = form.factor_of(symbol), per = fact.factor_of(symbol);
  if (have == 0 || per == 0 || (have < 0) != (per < 0)) return std::nullopt;
  if (have == INT64_MIN || per == INT64_MIN) return std::nullopt;
  const int64_t common = std::gcd(have, per), by = std::abs(per / common);
  if (by > largest_factor) return std::nullopt;
  const std::optional<Affine> scaled = by == 1 ? form : sum({}, form, by);
  return scaled ? sum(*scaled, fact, -std::abs(have / common)) : std::nullopt;
}

bool Ranges::not_negative(const Affine& form, const Region* region) {
  if (of(form).least >= 0) return true;
  if (size_t(questions_) == std::size(most_steps)) return false;
  int steps = most_steps[questions_++];
  const bool found = search(form, region, {}, longest, steps);
  questions_--;
  return found;
}

bool Ranges::search(const Affine& form, const Region* region, const std::vector<Affine>& assumed,
                    int depth, int& steps) {
  if (of(form).least >= 0) return true;
  if (depth == 0 || steps-- <= 0) return false;
  for (const Affine::Term& t : ordered(form)) {
    auto by = [&](const std::vector<Affine>& facts) {
      for (const Affine& fact : facts)
        if (std::optional<Affine> rest = without(form, fact, t.symbol))
          if (search(*rest, region, assumed, depth - 1, steps)) return true;
      return false;
    };
    if (by(assumed) || by(facts(region)) || by(facts_of(t.symbol, region))) return true;
    const std::vector<Case> either = cases(t.symbol, region);
    bool all = !either.empty();
    for (const Case& c : either) {
      if (!all) break;
      std::vector<Affine> here = assumed;
      here.insert(here.end(), c.facts.begin(), c.facts.end());
      std::optional<Affine> rest = sum(form, symbol_form(t.symbol), -t.factor);
      if (rest) rest = sum(*rest, c.value, t.factor);
      all = rest && search(*rest, region, here, depth - 1, steps);
    }
    if (all) return true;
  }
  return false;
}

}  // namespace quern::ir
