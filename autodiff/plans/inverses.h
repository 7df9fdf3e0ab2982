#pragma once
// What the end of a round tells of its beginning.
//
// A round that makes of an integer k one that k follows from (k + c, c - k, k ^ c, ~k, an odd
// multiple, k ^ k << 13, one of these behind another) can be undone: integers wrap, so that is
// exact. What it is changed by is then to be known where the round begins: values from outside of
// the loop, its index, other carried values, and what integer operations make of these. Floats are
// rounded, so that none is found again this way, nor is what is made of floats.
//
// A While goes on behind each round but the last one. So its test has held there, and what that
// says of flags is known: `k` of `If(found) { Break(); } k += 1` is one less in all rounds but
// perhaps the last, of which nothing is told.
#include <functional>
#include <vector>

#include "quern/ir/builder.h"

namespace quern::autodiff {

/// Of a carried value of a loop or a while: is what the body begins with what the round began with?
bool is_passed_on(const ir::Inst* loop, size_t k);

class Inverses {
 public:
  /// Of a loop or a while at level structured.
  explicit Inverses(const ir::Inst* loop);

  /// Of a value from outside of the loop, or an argument of its body: what it was in the round, or
  /// null.
  using Known = std::function<ir::Value*(const ir::Value*)>;
  /// What carried value number `k` was where a round began behind which the loop went on, if it was
  /// `end` behind it; null where that does not follow.
  ir::Value* start(ir::Builder& b, size_t k, ir::Value* end, const Known& known) const;

 private:
  friend class Inverse;
  void learn(const ir::Value* flag, bool is);
  const ir::Value* seen(const ir::Value* v) const;

  const ir::Inst* const loop_;
  const ir::Region* const body_;
  std::unordered_map<const ir::Value*, bool> flags_;  ///< known where the loop goes on
};

/// Which of the carried values that are wanted where rounds begin need not be kept; with those that
/// these are found by, and in an order in which they are found. `pays`: is what a region does to
/// find one less than keeping it?
std::vector<size_t> found_by_inverses(const ir::Inst* loop, const std::vector<bool>& wanted,
                                      const std::function<bool(const ir::Region*)>& pays);

}  // namespace quern::autodiff
