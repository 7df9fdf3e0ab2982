#include "ir/passes/atomics/polynomials.h"

#include <algorithm>

#include "ir/analysis/facts.h"

namespace quern::ir {

namespace {
bool is_zero(const Value* v) {
  const Inst* c = constant_of(v);
  return c && real_of(c->imm, v->type) == 0;
}
/// Is their sum a multiple of one of them, or of one product?
bool is_multiple(const Polynomial& a, const Polynomial& b) {
  if (a.empty() || b.empty() || a == b) return true;
  return a.size() == 1 && b.size() == 1 && a.begin()->first == b.begin()->first;
}
}  // namespace

Coefficients::Id Coefficients::add(const Expression& e) {
  const auto [at, is_new] = known_.try_emplace(e, Id(all_.size()));
  if (is_new) all_.push_back(e);
  return at->second;
}

Coefficients::Id Coefficients::negative(Id a) {
  if (all_[a].kind == Kind::negative) return all_[a].a;
  const Id made = add({Kind::negative, a});
  if (a == one) negative_one_ = made;
  return made;
}

Coefficients::Id Coefficients::product(Id a, Id b) {
  if (all_[a].kind == Kind::negative) return negative(product(all_[a].a, b));
  if (all_[b].kind == Kind::negative) return negative(product(a, all_[b].a));
  if (a == one) return b;
  return b == one ? a : add({Kind::product, a, b});
}

Value* Coefficients::make(Builder& b, Id a, const std::function<Value*(const Value*)>& shared) {
  if (const auto made = made_.find(a); made != made_.end()) return made->second;
  const Expression e = all_[a];
  Value* v = nullptr;
  switch (e.kind) {
    case Kind::one: v = b.real(Type::f64, 1); break;
    case Kind::value: v = shared(e.value); break;
    case Kind::negative: v = b.unary(Op::neg, make(b, e.a, shared)); break;
    case Kind::sum: v = b.add(make(b, e.a, shared), make(b, e.b, shared)); break;
    case Kind::product: v = b.mul(make(b, e.a, shared), make(b, e.b, shared)); break;
  }
  return made_[a] = v;
}

Value* Coefficients::times(Builder& b, Id a, Value* x,
                           const std::function<Value*(const Value*)>& shared) {
  if (all_[a].kind == Kind::negative) return b.unary(Op::neg, times(b, all_[a].a, x, shared));
  return a == one ? x : b.mul(make(b, a, shared), x);
}

const Polynomial& Polynomials::of(Value* v) {
  // Without recursion: sums may be long.
  const auto parts = [](const Value* at) {
    const Inst* inst = at->inst;
    const bool is_known =
        inst && at->type == Type::f64 &&
        (inst->is(Op::add) || inst->is(Op::sub) || inst->is(Op::mul) || inst->is(Op::neg));
    return is_known ? inst : nullptr;
  };
  std::vector<Value*> open = {v};
  while (!open.empty()) {
    Value* at = open.back();
    const size_t before = open.size();
    if (!known_.contains(at) && parts(at) && !is_shared_(at))
      for (const Use& use : at->inst->operands)
        if (!known_.contains(use.value)) open.push_back(use.value);
    if (open.size() > before) continue;
    open.pop_back();
    if (known_.contains(at)) continue;
    std::optional<Polynomial> made;
    if (is_zero(at))
      made.emplace();
    else if (is_shared_(at))
      made = Polynomial{{Product(), coefficients.of(at)}};
    else if (parts(at))
      made = taken_apart(at->inst);
    known_[at] = made ? std::move(*made) : factor(at);
  }
  return known_.at(v);
}

std::optional<Polynomial> Polynomials::taken_apart(const Inst* inst) {
  const Polynomial& a = known_.at(inst->operand(0));
  if (inst->is(Op::neg)) return sum({}, a, true);
  const Polynomial& b = known_.at(inst->operand(1));
  if (inst->is(Op::mul)) return product(a, b);
  if (!(inst->kind & distribute) && !is_multiple(a, b)) return std::nullopt;
  return sum(a, b, inst->is(Op::sub));
}

Polynomial Polynomials::factor(Value* v) {
  factors.push_back(v);
  return Polynomial{{Product{uint32_t(factors.size() - 1)}, Coefficients::one}};
}

std::optional<Polynomial> Polynomials::sum(const Polynomial& a, const Polynomial& b,
                                           bool negative) {
  size_t as_they_are = 0, constant = 0;
  for (const Polynomial* p : {&a, &b})
    for (const auto& [of, by] : *p) {
      as_they_are += of.size() == 1 && coefficients.is_unit(by);
      constant += of.empty();
    }
  if (constant > 0 || as_they_are > 1 || a.size() + b.size() > most_products) return std::nullopt;
  Polynomial out = a;
  for (const auto& [of, by] : b) {
    const Coefficients::Id with = negative ? coefficients.negative(by) : by;
    const auto [at, is_new] = out.try_emplace(of, with);
    if (!is_new) at->second = coefficients.sum(at->second, with);
  }
  return out;
}

std::optional<Polynomial> Polynomials::product(const Polynomial& a, const Polynomial& b) {
  if (a.empty() || b.empty() || (a.size() > 1 && b.size() > 1)) return std::nullopt;
  Polynomial out;
  for (const auto& [left, by] : a)
    for (const auto& [right, and_by] : b) {
      Product both = left;
      both.insert(both.end(), right.begin(), right.end());
      if (both.size() > most_degree) return std::nullopt;
      std::ranges::sort(both);
      out[both] = coefficients.product(by, and_by);
    }
  return out;
}

}  // namespace quern::ir
