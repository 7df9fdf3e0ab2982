#pragma once
// Slices: what values need, without effects (Weiser, Program Slicing, 1984), so that it can be run
// once more at another place.
//
// A slice of values of a region is closed: each of its instructions uses values from outside of the
// region, values that are given, or of the slice. Run where those outside and given are known, it
// gives the values that the region computes, and nothing else happens. Given may be what differs
// from run to run, and the other place knows: indices of a loop, the number of an iteration. What
// cannot be repeated is named: another argument of a region; an effect, a random number, an atomic's old value; what may be an
// error in checked mode; a structured construct; a read of what the region may write.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/analysis/effects.h"
#include "quern/ir/builder.h"

namespace quern::ir {

struct Slice {
  std::vector<const Inst*> code;    ///< operands first
  const Value* obstacle = nullptr;  ///< what cannot be repeated, or null
  std::string reason;               ///< why
  explicit operator bool() const { return !obstacle; }
  /// Reads nothing, so that it may run where its values would not have been computed.
  bool is_pure() const;
};

/// Slices of the values of one region and the regions below it. What is remembered holds until
/// something there changes.
class Slicer {
 public:
  /// Says of a read that nothing in the region changes what it gives.
  using Stays = std::function<bool(const Inst* read)>;
  Slicer(const Kernel& kernel, const Region* region, std::span<const Value* const> given = {},
         Stays stays = {})
      : kernel_(kernel),
        region_(region),
        given_(given.begin(), given.end()),
        stays_(std::move(stays)),
        effects_(kernel) {}

  bool repeatable(const Value* v) { return !obstacle(v); }
  /// One of `most` instructions at most. Where there are more it takes no longer, once it is known
  /// whether the values are repeatable.
  Slice of(std::span<const Value* const> values, size_t most = SIZE_MAX);
  Slice of(const Value* v, size_t most = SIZE_MAX) { return of({&v, 1}, most); }

 private:
  /// The value that keeps this one from being repeated, or null.
  const Value* obstacle(const Value* v);
  /// Empty, or why the value cannot be repeated whatever its operands are.
  std::string own_reason(const Value* v);
  bool is_known(const Value* v) const {
    return given_.contains(v) || !encloses(region_, v->inst ? v->inst->parent : v->region);
  }

  const Kernel& kernel_;
  const Region* region_;
  std::unordered_set<const Value*> given_;
  Stays stays_;
  Effects effects_;
  std::optional<Touched> touched_;  ///< by the region, once somebody reads
  std::unordered_map<const Value*, const Value*> obstacles_;
};

/// Makes the slice's instructions once more at the builder's point; `map` learns the copies, and
/// says what stands for values that are given, and for those from outside where that is not
/// themselves.
void repeat(Builder& b, const Slice& slice, ValueMap& map);

/// At the builder's point outside of the region a value of its, which is known to be repeatable:
/// makes what that is computed from once more where `map` does not know it, and tells `map`.
Value* repeat_outside(Builder& b, const Region* region, const Value* v, ValueMap& map);

}  // namespace quern::ir
