#include "autodiff/stencils/wrapping.h"

#include <algorithm>
#include <cstdlib>

#include "ir/analysis/facts.h"

namespace quern::autodiff {

using namespace ir;

namespace {

// Each operation adds at most a constant, the modulus and two symbols to what was there: so many stay
// far below 2^31.
constexpr int deepest = 8;
constexpr size_t most_symbols = 2;

bool is_same(const Value* a, const Value* b) {
  const Inst *x = constant_of(a), *y = constant_of(b);
  return a == b || (x && y && x->imm == y->imm && a->type == b->type);
}

class Reducer {
 public:
  Reducer(const Value* index, int64_t offset, AffineForms& forms,
          const std::function<bool(const Value*)>& is_fixed)
      : index_(index), offset_(offset), forms_(forms), is_fixed_(is_fixed) {}

  std::optional<Wrapping> run(const Value* v) {
    if (!is_signed(v->type) || !find_modulus(v, 0) || !is_near(forms_.of(v))) return std::nullopt;
    IndexSum sum;
    sum.add(forms_.of(v));
    if (!reduces(sum, 0)) return std::nullopt;
    found_.offset = offset_;
    if (const Inst* modulus = constant_of(found_.modulus)) {
      const int64_t n = to_signed(modulus->imm, found_.modulus->type);
      found_.offset %= n;
      if (std::abs(found_.offset) > n / 2) found_.offset += found_.offset > 0 ? -n : n;
    }
    return std::move(found_);
  }

 private:
  /// The first one of a remainder on the way.
  bool find_modulus(const Value* v, int depth) {
    if (depth > deepest) return false;
    for (const Affine::Term& term : forms_.of(v).terms) {
      const Inst* made = term.symbol->inst;
      if (!made || is_fixed_(term.symbol)) continue;
      if (made->is(Op::rem)) {
        found_.modulus = made->operand(1);
        return is_fixed_(found_.modulus);
      }
      if (made->is(Op::select) &&
          (find_modulus(made->operand(1), depth + 1) || find_modulus(made->operand(2), depth + 1)))
        return true;
    }
    return false;
  }

  /// Is it, as integers that do not wrap, no farther from its symbols than each operation may go?
  bool is_near(const Affine& form) {
    size_t symbols = 0;
    for (const auto& [symbol, factor] : form.terms) {
      if (std::abs(factor) != 1) return false;
      if (symbol == index_ || symbol == found_.modulus || !is_fixed_(symbol)) continue;
      if (!symbol->inst || ++symbols > most_symbols) return false;
      Value* fixed = symbol->inst->result(symbol->index);
      if (std::ranges::find(found_.symbols, fixed) == found_.symbols.end())
        found_.symbols.push_back(fixed);
    }
    return std::abs(form.constant) <= most_wrapping;
  }

  bool reduces(const IndexSum& sum, int depth) {
    const Value* varying = nullptr;
    for (const auto& [symbol, factor] : sum.terms) {
      if (symbol == index_ || is_fixed_(symbol)) continue;
      if (varying || factor != 1) return false;
      varying = symbol;
    }
    if (!varying) return is_reached(sum);
    const Inst* made = varying->inst;
    if (!made || depth > deepest) return false;
    const auto reduces_by = [&](const Value* operand) {
      const Affine& form = forms_.of(operand);
      if (!is_near(form)) return false;
      IndexSum next = sum;
      next.terms.erase(varying);
      next.add(form);
      return reduces(next, depth + 1);
    };
    if (made->is(Op::rem))
      return is_same(made->operand(1), found_.modulus) && reduces_by(made->operand(0));
    return made->is(Op::select) && reduces_by(made->operand(1)) && reduces_by(made->operand(2));
  }

  /// Is it the index and the offset, but for multiples of the modulus?
  bool is_reached(IndexSum sum) const {
    sum.terms.erase(found_.modulus);
    const auto at = sum.terms.find(index_);
    if (at == sum.terms.end() || at->second != 1 || sum.terms.size() > 1) return false;
    const Inst* modulus = constant_of(found_.modulus);
    const int64_t rest = sum.constant - offset_;
    if (!modulus) return rest == 0;
    const int64_t n = to_signed(modulus->imm, found_.modulus->type);
    return n > 0 && rest % n == 0;
  }

  const Value* const index_;
  const int64_t offset_;
  AffineForms& forms_;
  const std::function<bool(const Value*)>& is_fixed_;
  Wrapping found_;
};

}  // namespace

std::optional<Wrapping> wrapping_of(const Value* v, const Value* index, int64_t offset,
                                    AffineForms& forms,
                                    const std::function<bool(const Value*)>& is_fixed) {
  return Reducer(index, offset, forms, is_fixed).run(v);
}

}  // namespace quern::autodiff
