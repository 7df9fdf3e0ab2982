#pragma once
// Value ranges: what integers are at least and at most, as numbers and beside other values.
//
// Integers are looked at as numbers, not modulo 2^width: `exact` is the sum that a value is where
// none of its parts wraps, over symbols that are no such sums. Extents, first indices and
// parameters are one symbol each, however often they are asked for.
//
// A fact is a form that is not negative wherever a region runs. Facts come from the bounds of the
// loops around the region, from the conditions of the branches around it (`a && b` as it is
// recorded and as it is simplified), and from what minima, maxima, selects, remainders, quotients
// and shifts are. A question about a form is answered by adding up facts until only numbers are
// left, and by cases where a symbol is one of two values: a search that is cut short, so that `no`
// means that it is not known.
//
// Computed on demand; what it returns holds as long as nothing in the kernel is changed.
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "ir/analysis/affine.h"
#include "ir/analysis/loops.h"

namespace quern::ir {

/// The ends of int64_t stand for numbers beyond them too.
struct Interval {
  int64_t least = INT64_MIN, most = INT64_MAX;
  bool operator==(const Interval&) const = default;
  bool contains(const Interval& other) const { return least <= other.least && other.most <= most; }
};
/// All values of the type.
Interval interval_of(Type type);

/// a + factor · b over the integers; none where a number in it goes beyond 64 bits.
std::optional<Affine> sum(const Affine& a, const Affine& b, int64_t factor);

class Ranges {
 public:
  /// Of the code of one root. `bound`: the kernel, where it is known how its fields lie. First indices
  /// are within 2^30 of 0, but of fields on trees that are hashed, which go on in both directions.
  explicit Ranges(const Region* root, const Kernel* bound = nullptr);

  /// What an integer may be wherever it exists.
  Interval of(const Value* v);
  Interval of(const Affine& form);
  /// The integer as a number.
  const Affine& exact(const Value* v) { return exact(v, 0); }
  /// `form`, whose symbols are any integers, by the symbols of this analysis.
  std::optional<Affine> expanded(const Affine& form);

  /// The terms in an order that is the same each time.
  std::vector<Affine::Term> ordered(const Affine& form) const;

  /// The symbols of a field's axis.
  const Value* extent(uint32_t binding, uint32_t axis);
  const Value* first(uint32_t binding, uint32_t axis);
  /// What stands in the code for a symbol: itself; of an extent, first index or parameter that has
  /// no instruction of its own, its operation and what that names.
  struct Named {
    Op op;
    Part part;
    Type type;
  };
  const Named* named(const Value* symbol) const;

  /// The conditions and loop bounds that hold wherever the region runs, innermost first.
  const std::vector<Affine>& facts(const Region* region);
  /// What else is known of a symbol from the way it is made.
  std::vector<Affine> facts_of(const Value* symbol, const Region* region);
  /// What follows from a condition that holds, or does not, within the region.
  std::vector<Affine> facts_of(const Value* condition, bool truth, const Region* region);
  /// The two values of which the symbol is one (of a minimum, maximum, select, branch), each with
  /// what holds where it is; none where it is nothing of the kind.
  struct Case {
    Affine value;
    std::vector<Affine> facts;
  };
  std::vector<Case> cases(const Value* symbol, const Region* region);

  /// Is the form at least 0 wherever the region runs? False: not known.
  bool not_negative(const Affine& form, const Region* region);

  /// m · form - k · fact, m and k > 0, such that `symbol` falls out: at least 0 only if the form is.
  static std::optional<Affine> without(const Affine& form, const Affine& fact, const Value* symbol);

 private:
  static constexpr int deepest = 64;                  ///< operations looked back
  static constexpr int longest = 6;                   ///< facts added up
  static constexpr int most_steps[] = {300, 60, 15};  ///< of questions within each other
  static constexpr int64_t largest_factor = 1 << 20;
  static constexpr size_t most_facts = 48;  ///< around a region

  const Affine& exact(const Value* v, int depth);
  std::optional<Affine> exact_sum(const Value* v, int depth);
  Interval of(const Value* v, int depth);
  Interval computed(const Inst* inst, int depth);
  const Value* name(Op op, Part part, Type type);
  Affine start_of(const IndexBounds& b);
  Affine end_of(const IndexBounds& b);
  bool is_narrow(uint32_t binding, uint32_t axis) const;
  Interval first_index(Part axis) const;

  void add(std::vector<Affine>& facts, const Affine& high, const Affine& low, int64_t constant);
  void follow(const Value* c, bool truth, const Region* region, std::vector<Affine>& facts,
              int depth);
  bool search(const Affine& form, const Region* region, const std::vector<Affine>& assumed,
              int depth, int& steps);

  const Kernel* const bound_;
  std::deque<Value> values_;  ///< stand for named symbols
  std::map<std::tuple<Op, Part>, const Value*> names_;
  std::unordered_map<const Value*, Named> named_;
  std::unordered_map<const Value*, size_t> order_;  ///< of symbols, as they were met
  std::set<Part> narrow_;                           ///< axes whose indices all fit into 32 bits
  std::unordered_map<const Value*, Affine> exact_;
  std::unordered_map<const Value*, Interval> intervals_;
  std::unordered_map<const Region*, std::vector<Affine>> facts_;
  int questions_ = 0;  ///< within each other
};

}  // namespace quern::ir
