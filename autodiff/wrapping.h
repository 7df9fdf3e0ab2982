#pragma once
// Indices that go around the ends of an axis.
#include <functional>
#include <optional>
#include <vector>

#include "ir/analysis/affine.h"
#include "quern/ir/ir.h"

namespace quern::autodiff {

/// An integer is another one plus the offset, modulo the modulus, where no symbol is farther from 0
/// than `most_wrapping`: nothing on the way wraps around the width of its type then.
struct Wrapping {
  ir::Value* modulus = nullptr;
  int64_t offset = 0;               ///< of least magnitude where the modulus is a constant
  std::vector<ir::Value*> symbols;  ///< what stands in sums besides, the same in all iterations
};
inline constexpr int64_t most_wrapping = int64_t(1) << 24;

/// Whether `v` is `index` + `offset` so, by remainders of one modulus, sums, and choices of which either
/// will do. `is_fixed`: is it the same in all iterations, and known to others?
std::optional<Wrapping> wrapping_of(const ir::Value* v, const ir::Value* index, int64_t offset,
                                    ir::AffineForms& forms,
                                    const std::function<bool(const ir::Value*)>& is_fixed);

}  // namespace quern::autodiff
