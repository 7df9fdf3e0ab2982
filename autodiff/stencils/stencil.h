#pragma once
// What the iterations of a parallel loop add to elements around their own.
#include <span>
#include <vector>

#include "autodiff/stencils/wrapping.h"
#include "ir/analysis/slice.h"
#include "quern/ir/ir.h"

namespace quern::autodiff {

/// How an access follows the loop: the axis that each index of the loop stands on, and what stands
/// on the others, which no iteration changes.
struct Mapping {
  std::vector<uint32_t> axes;
  std::vector<ir::Value*> fixed;  ///< by axis, null where an index of the loop stands
  bool operator==(const Mapping&) const = default;
};

/// What holds away from a border: a comparison of `a` with `b`, or 0 where that is null; or a b1
/// `a`.
struct Question {
  ir::Op op = ir::Op::eq;
  ir::Value *a = nullptr, *b = nullptr;
  bool is_negated = false;
};

/// An atomic addition to an element near the iteration's own.
struct Term {
  ir::Inst* atomic = nullptr;
  std::vector<int64_t> offsets;     ///< by index of the loop
  std::vector<Question> questions;  ///< where all hold, the element is that of the offsets
  /// By index of the loop: how it goes around where questions do not hold; without a modulus where
  /// there are none about it. Empty where one is about something else.
  std::vector<Wrapping> wrappings;
  ir::Slice around;  ///< what wrappings name
  bool in_branch = false;
  /// What the iteration has to keep for others to know the term; null: nothing.
  ir::Value* kept = nullptr;
  ir::Value* condition = nullptr;  ///< elsewhere the term is 0; null: not known
  /// Computes the value, what questions ask about, and the element from the indices of the loop,
  /// which must be those of an iteration where it reads, and from what is kept. Nothing for one in
  /// a branch, where what is kept is the value, or 0.
  ir::Slice code;

  ir::Value* value() const { return atomic->operands.back().value; }
  bool is_exact() const { return questions.empty(); }
};

/// What one loop adds to one field.
struct Stencil {
  uint32_t binding = ir::no_binding;
  Mapping mapping;
  std::vector<Term> terms;
};

/// Does the region write fields that are derived of no others, or call what may?
bool writes_primal(const ir::Kernel& kernel, const ir::Region* region);

/// Stencils with more than one term, or one that is not exact, on derived fields that the loop does
/// nothing else to than to add atomically. A field may have further such atomics: they are none of
/// its terms.
std::vector<Stencil> stencils_of(const ir::Kernel& kernel, const ir::Inst* loop);

}  // namespace quern::autodiff
