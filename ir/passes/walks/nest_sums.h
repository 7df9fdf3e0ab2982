#pragma once
// What the iterations of a strip give to locations that they share (nest.h): the updates of a piece by
// what is combined for the strip before one of them gives it.
//
// Factors that all iterations share multiply the strip's sum, not its terms. Terms that an earlier
// piece makes are summed there, as rounds would sum them over and over; of one term there is one sum.
#include <unordered_set>

#include "ir/passes/walks/nest_code.h"

namespace quern::ir {

class NestSums : protected NestCode {
 protected:
  using NestCode::NestCode;

  /// The atomics of one update that take the same value share it. Of a sum it is a term, without
  /// factors that all iterations of the strip share: these multiply the strip's sum.
  struct Contribution {
    const Inst *update, *rmw;
    Value* term;
    std::vector<Value*> factors = {};
    std::vector<const Inst*> products = {};  ///< from the value down to the term
    bool is_negated = false;
    bool is_summed = false;  ///< by the piece that makes the term, or by one before

    bool same(const Inst* other) const {
      return other->kind == rmw->kind && other->elem == rmw->elem &&
             other->operand(1) == rmw->operand(1);
    }
  };
  using Contributions = std::vector<Contribution>;

  /// Those of a piece; what it sums itself stands first.
  Contributions contributions_of(const Nest::Piece& piece) const;
  /// How many it sums itself.
  static size_t own(const Contributions& all);
  static bool is_sum(const Inst* rmw) {
    return rmw->atomic() == AtomicOp::add && rmw->elem != Type::f16;
  }

  /// To be asked of each piece before those behind it.
  void find_sums(const Nest::Piece& piece);

  std::unordered_map<size_t, std::vector<Value*>> sums_in_;  ///< by piece: terms that it sums
  std::unordered_map<const Value*, Value*> sums_;            ///< by term, null before they are made
  std::unordered_set<const Inst*> left_out_;  ///< products that only sums are made of
  std::unordered_set<size_t> pieces_by_any_;  ///< in a branch that is taken where any takes it

 private:
  Contribution contribution(const Inst* update, const Inst* rmw) const;
  bool is_for_sums(const Inst* inst, const Nest::Piece& piece) const;
};

}  // namespace quern::ir
