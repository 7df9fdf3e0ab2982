#pragma once
// What rounds in the iterations of a parallel loop add to elements that several iterations come to:
// of fewer indices than loop and rounds have together, as a layer's gradient by its weights, or
// around the iteration's own, as a convolution's by its image.
#include <algorithm>
#include <optional>
#include <vector>

#include "ir/analysis/affine.h"
#include "quern/ir/ir.h"

namespace quern::autodiff {

/// An index of the parallel loop, or of a serial one in it whose bounds all iterations share.
struct Index {
  const ir::Value* value = nullptr;
  const ir::Inst* loop = nullptr;
  bool is_parallel() const { return loop->is(ir::Op::parallel); }
  /// Of a serial loop between constants.
  std::optional<int64_t> constant_rounds() const;
  bool operator==(const Index&) const = default;
};

/// An atomic addition whose value, and whether it is made, can be computed anew from indices, from
/// what the parallel loop reads and nobody writes, and from what its iteration keeps.
struct Summand {
  ir::Inst* atomic = nullptr;
  struct Condition {
    ir::Value* value = nullptr;
    bool is_negated = false;
    bool is_sparing = false;  ///< the value can be computed where it does not hold
  };
  std::vector<Condition> conditions;
  /// By own index of the contraction: the one that it alone decides on; no_binding where several
  /// do.
  std::vector<uint32_t> axes;
  /// By own index of the contraction: what the element has on its axis beside the index, made of
  /// indices that are summed over and of what all iterations share.
  std::vector<ir::Affine> offsets;
  std::vector<int64_t> strides;  ///< by own index: what it is times, on its axis; 1 or 2
  std::vector<ir::Value*> kept;  ///< floats and b1, made once at most in an iteration
  ir::Value* value() const { return atomic->operands.back().value; }
  /// Is the element's index on its axis that own index?
  bool is_at(size_t own) const { return offsets[own] == ir::Affine{} && strides[own] == 1; }
  /// Is it made for all values of the indices, so that the element is there?
  bool is_certain() const { return std::ranges::all_of(conditions, &Condition::is_sparing); }
};

/// Sums over the same indices, to elements of the same others: x[stride · own + offset…] += Σ over
/// summed.
struct Contraction {
  /// By axes of the first summand's element; one of the parallel loop's among them.
  std::vector<Index> own;
  std::vector<Index> summed;  ///< outer ones first
  /// None: elements are those of the own indices, for all of their values. Else the one field that
  /// all summands go to, by the same axes.
  uint32_t binding = ir::no_binding;
  std::vector<Summand> summands;
};

/// Those of a loop with derived fields that it does nothing else to than to add atomically; of what
/// stands in rounds, and where `everywhere` is set of all that iterations add. An iteration keeps 8
/// values at most. Linear, times the length of what computes a summand, 48 operations at most.
std::vector<Contraction> contractions_of(const ir::Kernel& kernel, const ir::Inst* loop,
                                         bool everywhere);

}  // namespace quern::autodiff
