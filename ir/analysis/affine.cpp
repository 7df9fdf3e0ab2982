#include "ir/analysis/affine.h"

#include <algorithm>
#include <functional>

namespace quern::ir {

namespace {

/// The number of least magnitude among those that are equal modulo 2^width of the type.
int64_t wrapped(Bits n, Type t) {
  const unsigned width = t == Type::address ? 64 : bit_width(t);
  const unsigned rest = 64 - width;
  return int64_t(n << rest) >> rest;
}

Affine symbol(const Value* v) { return {{{v, 1}}, 0}; }

/// a + factor · b.
Affine sum(const Affine& a, const Affine& b, int64_t factor, Type t) {
  Affine out = a;
  auto before = [](const Affine::Term& x, const Value* v) {
    return std::less<const Value*>()(x.symbol, v);
  };
  for (const Affine::Term& term : b.terms) {
    auto at = std::lower_bound(out.terms.begin(), out.terms.end(), term.symbol, before);
    if (at == out.terms.end() || at->symbol != term.symbol)
      at = out.terms.insert(at, {term.symbol, 0});
    at->factor = wrapped(Bits(at->factor) + Bits(factor) * Bits(term.factor), t);
    if (at->factor == 0) out.terms.erase(at);
  }
  out.constant = wrapped(Bits(a.constant) + Bits(factor) * Bits(b.constant), t);
  return out;
}

}  // namespace

int64_t Affine::factor_of(const Value* symbol) const {
  for (const Term& term : terms)
    if (term.symbol == symbol) return term.factor;
  return 0;
}

const Affine& AffineForms::form(const Value* v, int depth) {
  if (auto known = forms_.find(v); known != forms_.end()) return known->second;
  Affine made = depth > deepest ? symbol(v) : make(v, depth);
  if (made.terms.size() > most_terms) made = symbol(v);
  return forms_.emplace(v, std::move(made)).first->second;
}

Affine AffineForms::make(const Value* v, int depth) {
  const Inst* inst = v->inst;
  if (!inst || !(is_int(v->type) || v->type == Type::address)) return symbol(v);
  auto operand = [&](size_t k) { return form(inst->operand(k), depth + 1); };
  switch (inst->op) {
    case Op::constant: return {{}, wrapped(inst->imm, v->type)};
    case Op::add:
    case Op::offset: return sum(operand(0), operand(1), 1, v->type);
    case Op::sub: return sum(operand(0), operand(1), -1, v->type);
    case Op::neg: return sum({}, operand(0), -1, v->type);
    case Op::mul: {
      const Affine a = operand(0), b = operand(1);
      if (b.is_constant()) return sum({}, a, b.constant, v->type);
      if (a.is_constant()) return sum({}, b, a.constant, v->type);
      return symbol(v);
    }
    case Op::shl: {
      const Affine by = operand(1);
      if (!by.is_constant() || by.constant < 0 || by.constant >= int64_t(bit_width(v->type)))
        return symbol(v);
      return sum({}, operand(0), int64_t(1) << by.constant, v->type);
    }
    case Op::convert: {
      if (mode_ == exact || !is_int(inst->operand(0)->type) || bit_width(v->type) < 32)
        return symbol(v);
      return sum({}, operand(0), 1, v->type);
    }
    default: return symbol(v);
  }
}

}  // namespace quern::ir
