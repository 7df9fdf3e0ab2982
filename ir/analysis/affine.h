#pragma once
// Affine forms: an integer or address as a constant plus multiples of other values.
//
// v ≡ constant + Σ factor · symbol modulo 2^width, exactly as integers wrap. A symbol is a value
// that is no sum, difference, product by a constant or (addresses) offset itself. Two values with
// equal forms are equal; forms that differ in their constants alone belong to values that differ.
//
// `through_conversions` looks through conversions to integers of 32 and 64 bits, which is exact only
// where the narrower arithmetic does not wrap: for indices, which are out of range where it does.
//
// Computed on demand; what it returns holds as long as no operand is changed. A form takes at most
// `most_terms` terms and looks `deepest` operations back: beyond, a value is its own symbol.
#include <unordered_map>
#include <vector>

#include "quern/ir/ir.h"

namespace quern::ir {

struct Affine {
  struct Term {
    const Value* symbol = nullptr;
    int64_t factor = 0;  ///< not 0
    bool operator==(const Term&) const = default;
  };
  std::vector<Term> terms;  ///< by the symbols' addresses
  int64_t constant = 0;     ///< of the least magnitude that the type's width allows

  bool operator==(const Affine&) const = default;
  bool is_constant() const { return terms.empty(); }
  /// The symbol of `symbol + constant`, or null.
  const Value* base() const {
    return terms.size() == 1 && terms[0].factor == 1 ? terms[0].symbol : nullptr;
  }
  /// 0 where it does not occur.
  int64_t factor_of(const Value* symbol) const;
  /// Whatever the symbols are, the two values differ (their types are of one width).
  bool differs_from(const Affine& other) const {
    return terms == other.terms && constant != other.constant;
  }
};

class AffineForms {
 public:
  static constexpr size_t most_terms = 8;
  static constexpr int deepest = 64;

  enum Mode : uint8_t { exact, through_conversions };
  explicit AffineForms(Mode mode = exact) : mode_(mode) {}

  const Affine& of(const Value* v) { return form(v, 0); }

 private:
  const Affine& form(const Value* v, int depth);
  Affine make(const Value* v, int depth);
  const Mode mode_;
  std::unordered_map<const Value*, Affine> forms_;
};

}  // namespace quern::ir
