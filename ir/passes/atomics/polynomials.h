#pragma once
// Values of an iteration as polynomials: sums of products of what the iteration computes, with
// coefficients that all iterations share.
//
// Sums are taken apart only where the user lets them be (`distribute`): where their terms nearly
// cancel in an iteration, as in a residual that is small, sums of each term over all iterations
// cancel too, and digits are lost. Also there, a difference of what was not multiplied, as x - μ
// where the two are close, and a product of two sums stay factors, as does all else.
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "quern/ir/builder.h"

namespace quern::ir {

/// Expressions of what all iterations share.
class Coefficients {
 public:
  using Id = uint32_t;
  static constexpr Id one = 0;

  Coefficients() { add({Kind::one}); }
  Id of(Value* v) { return add({Kind::value, 0, 0, v}); }
  Id negative(Id a);
  Id sum(Id a, Id b) { return add({Kind::sum, a, b}); }
  Id product(Id a, Id b);
  bool is_unit(Id a) const { return a == one || a == negative_one_; }
  size_t size() const { return all_.size(); }

  /// The value a · x at the builder's point, where `shared` says what stands for values.
  Value* times(Builder& b, Id a, Value* x, const std::function<Value*(const Value*)>& shared);

 private:
  enum class Kind : uint8_t { one, value, negative, sum, product };
  struct Expression {
    Kind kind;
    Id a = 0, b = 0;
    const Value* value = nullptr;
    auto operator<=>(const Expression&) const = default;
  };
  Id add(const Expression& e);
  Value* make(Builder& b, Id a, const std::function<Value*(const Value*)>& shared);

  std::vector<Expression> all_;
  std::map<Expression, Id> known_;
  Id negative_one_ = one;
  std::unordered_map<Id, Value*> made_;
};

/// Of numbers of factors, ascending; empty: 1.
using Product = std::vector<uint32_t>;
/// Coefficients by product; without any it is 0.
using Polynomial = std::map<Product, Coefficients::Id>;

class Polynomials {
 public:
  /// `is_shared`: do all iterations compute the same, so that it can be computed once more
  /// elsewhere?
  explicit Polynomials(std::function<bool(const Value*)> is_shared)
      : is_shared_(std::move(is_shared)) {}

  /// Of floats.
  const Polynomial& of(Value* v);
  /// Are they few enough to go on with?
  bool fits() const { return coefficients.size() <= most_coefficients; }

  Coefficients coefficients;
  std::vector<Value*> factors;  ///< by number

 private:
  static constexpr size_t most_coefficients = 10000, most_products = 64, most_degree = 3;

  Polynomial factor(Value* v);
  /// None where the value is to be a factor.
  std::optional<Polynomial> taken_apart(const Inst* inst);
  std::optional<Polynomial> sum(const Polynomial& a, const Polynomial& b, bool negative);
  std::optional<Polynomial> product(const Polynomial& a, const Polynomial& b);

  std::function<bool(const Value*)> is_shared_;
  std::unordered_map<const Value*, Polynomial> known_;
};

}  // namespace quern::ir
