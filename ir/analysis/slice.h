#pragma once
// Slices: what values need, without effects (Weiser, Program Slicing, 1984), so that it can be run
// once more at another place.
//
// A slice of values of a region is closed: each of its instructions uses values from outside of the
// region, or of the slice. Run where those outside are known, it gives the values that the region
// computes, and nothing else happens. What cannot be repeated is named: an argument of a region,
// which differs from run to run; an effect, a random number, an atomic's old value; what may be an
// error in checked mode; a structured construct; a read of what the region may write.
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/analysis/effects.h"
#include "quern/ir/builder.h"

namespace quern::ir {

struct Slice {
  std::vector<const Inst*> code;    ///< operands first
  const Value* obstacle = nullptr;  ///< what cannot be repeated, or null
  std::string reason;               ///< why
  explicit operator bool() const { return !obstacle; }
};

/// Slices of the values of one region and the regions below it. What is remembered holds until
/// something there changes.
class Slicer {
 public:
  Slicer(const Kernel& kernel, const Region* region)
      : kernel_(kernel), region_(region), effects_(kernel) {}

  bool repeatable(const Value* v) { return !obstacle(v); }
  Slice of(std::span<const Value* const> values);
  Slice of(const Value* v) { return of({&v, 1}); }

 private:
  /// The value that keeps this one from being repeated, or null.
  const Value* obstacle(const Value* v);
  /// Empty, or why the value cannot be repeated whatever its operands are.
  std::string own_reason(const Value* v);
  bool is_outside(const Value* v) const {
    return !encloses(region_, v->inst ? v->inst->parent : v->region);
  }

  const Kernel& kernel_;
  const Region* region_;
  Effects effects_;
  std::optional<Touched> touched_;  ///< by the region, once somebody reads
  std::unordered_map<const Value*, const Value*> obstacles_;
};

/// Makes the slice's instructions once more at the builder's point; `map` learns the copies, and
/// says what stands for values from outside, where that is not themselves.
void repeat(Builder& b, const Slice& slice, ValueMap& map);

}  // namespace quern::ir
