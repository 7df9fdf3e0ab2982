#pragma once
// Forward differentiation: a kernel that computes what another does, and the tangents of all of it.
//
// Every active value has a tangent beside it: ẏ = Σ ∂y/∂x_k · ẋ_k at each operation. Elements of a
// field have theirs in the field's companion of that name, so that a launch reads and writes both;
// branches and loops yield and carry tangents with their values. Nothing is recorded: the primal's
// control flow is the tangents' too, whatever it depends on. (Griewank and Walther, Evaluating
// Derivatives, 2nd ed., 2008, section 3.1.)
#include <memory>

#include "autodiff/primal/races.h"
#include "quern/ir/ir.h"

namespace quern::autodiff {

/// The name of a field's companion that holds tangents.
inline constexpr const char* tangents = "dual";

/// What a kernel is differentiated along.
struct Directions {
  /// Of each binding the one whose companion holds its tangents: itself, unless what is passed for
  /// it has none, as a snapshot; of a scalar itself. no_binding: it has no tangents, and is
  /// constant.
  std::vector<uint32_t> of;
  /// What iterations combine was taken apart before (combined.h).
  bool is_taken_apart = false;
  /// It was made of a kernel in which races were looked for.
  bool is_without_races = false;
};
/// Everything that holds floats.
Directions all_directions(const ir::Kernel& kernel);

/// What `forward` makes of a kernel: its bindings stand first, as they were, but for those that are
/// derived, which stand behind the new scalars.
struct Forward {
  std::unique_ptr<ir::Kernel> kernel;  ///< at level structured
  /// Of each binding that is a float scalar the one of its tangent; else no_binding. Behind them
  /// stand those of fields' companions, which launches look up.
  std::vector<uint32_t> tangent_of;
  /// Results: those of the kernel, then the tangents of its float ones.
  size_t results = 0;
  /// Bindings, two and two, that a launch must pass fields for which do not overlap.
  std::vector<std::pair<uint32_t, uint32_t>> distinct;
  /// Fields that a kernel changes in which iterations combine (combined.h): none may be on a tree,
  /// as loops behind compute again what was combined, and would find other elements active.
  std::vector<uint32_t> not_on_trees;
  /// Which depend on what a launch passes; null: there are none.
  std::shared_ptr<const Races> races;
};

/// Of a kernel at level structured. It is optimised first, for what holds of all launches. Throws
/// Error with the line of what has no derivative that tangents beside their values can give: an
/// atomic exchange or compare-and-swap of floats, the old value of any that is used, the bits of a
/// float, a function whose derivative is a pullback alone, a race that every launch has, and what
/// derive_combined refuses.
Forward forward(const ir::Kernel& primal, ir::Modes modes, const Directions& directions);

}  // namespace quern::autodiff
