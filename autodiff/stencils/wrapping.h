#pragma once
// Indices that go around the ends of an axis.
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "ir/analysis/affine.h"
#include "quern/ir/ir.h"

namespace quern::autodiff {

/// Values, each times a factor, and a constant.
struct IndexSum {
  std::map<const ir::Value*, int64_t> terms;
  int64_t constant = 0;
  void add(const ir::Affine& form) {
    constant += form.constant;
    for (const ir::Affine::Term& t : form.terms)
      if ((terms[t.symbol] += t.factor) == 0) terms.erase(t.symbol);
  }
};

/// An integer is another one plus the offset, modulo the modulus, where no symbol is farther from 0
/// than `most_wrapping`: nothing on the way wraps around the width of its type then.
struct Wrapping {
  ir::Value* modulus = nullptr;
  int64_t offset = 0;               ///< of least magnitude where the modulus is a constant
  std::vector<ir::Value*> symbols;  ///< what stands in sums besides, the same in all iterations
};
inline constexpr int64_t most_wrapping = int64_t(1) << 24;

/// Whether `v` is `index` + `offset` so, by remainders of one modulus, sums, and choices of which
/// either will do. `is_fixed`: is it the same in all iterations, and known to others?
std::optional<Wrapping> wrapping_of(const ir::Value* v, const ir::Value* index, int64_t offset,
                                    ir::AffineForms& forms,
                                    const std::function<bool(const ir::Value*)>& is_fixed);

}  // namespace quern::autodiff
