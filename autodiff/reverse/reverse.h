#pragma once
// Reverse differentiation: a kernel that carries adjoints from what another has written back to
// what it has read.
//
// The kernel made here runs behind the other, on the fields as they were before it: it computes the
// other's values again, without its effects, and goes back through its operations: x̄_k += ∂y/∂x_k
// · ȳ. Elements of a field have their adjoints in the field's companion of that name. A load adds
// to them, a store takes them and leaves 0, as what was overwritten had no part in what followed.
// Branches are taken again, rounds of a loop in the opposite order, from what they began with
// (replay.h). Adjoints of values are slots, which promote_slots makes values of. (Griewank and
// Walther, Evaluating Derivatives, 2nd ed., 2008, sections 3.2 and 4.)
#include <memory>

#include "autodiff/plans/logged_reads.h"
#include "autodiff/primal/combined.h"
#include "autodiff/primal/races.h"
#include "autodiff/reverse/augmented.h"
#include "quern/runtime/launch.h"

namespace quern::autodiff {

/// The name of a field's companion that holds adjoints.
inline constexpr const char* adjoints = "adjoint";

struct Reverse {
  /// At level structured. Bindings: those of the primal, whose fields are read as they were before
  /// it, and of `scratch`; those of its log; `fields` and `lent`; a scalar for the adjoint of each
  /// float result of the primal; then companions, which launches look up. Results: the primal's, if
  /// `yields_values`; the adjoints of the primal's `scalars`.
  std::unique_ptr<ir::Kernel> kernel;
  std::vector<Scratch> scratch;  ///< counts as the primal's in what follows
  /// Of each field of the primal that is an input the binding that its companion is
  /// looked up by, which takes the field itself: a snapshot has none. Else no_binding.
  std::vector<uint32_t> fields;
  /// Further fields of the primal, which are no inputs, by their numbers in it: other companions
  /// than adjoints are looked up by their bindings from `first_lent` on.
  std::vector<uint32_t> lent;
  uint32_t first_lent = 0;
  std::vector<uint32_t> scalars;  ///< the primal's that are inputs
  std::vector<bool> reads;        ///< of each of the primal's bindings: are elements read?
  /// The kernel does all that the primal does, so that nobody need launch that, and keeps nothing
  /// for which something would have to run before.
  bool yields_values = false;
  /// By the index of `fields`: what the adjoints were before is overwritten, and need not be 0.
  /// Empty: of none.
  std::vector<bool> assigned;
  size_t seeds = 0;
  /// What loops of any number of rounds carry is kept in fields of one axis, which stand behind the
  /// seeds: of these components, and of as many rows as `count` says, a kernel with the bindings of
  /// the primal and its log, and a result for each. Behind them, if there are any, a field of
  /// cursors, zeros.
  std::vector<std::vector<ir::Type>> rows;
  std::unique_ptr<ir::Kernel> count;
  /// What the primal's launch has kept, if it was augmented, in fields that stand behind those.
  /// None: it was not.
  Augmented augmented;
  size_t logged = 0;  ///< bindings of the log
  /// Of the primal, which depend on what a launch passes; null: there are none.
  std::shared_ptr<const Races> races;
  Log log;  ///< without kernels where nobody reads it
};

/// Of a kernel at level structured. It is optimised first, for launches with these premises.
/// `inputs`: of each binding, whether derivatives are taken by its floats. Those of another have no
/// adjoints, before the launch and behind it, but for a field's that the kernel writes and reads.
/// `trees`: of each binding; empty: none is on one. Fields on trees are passed as they were before
/// the launch, with which elements were active; adjoints are on the tree as it has become, and only
/// elements that are active there have some. `with_values`: of a gradient, before which the inputs'
/// adjoints are cleared, where they have to be; the kernel yields the primal's results too, if that
/// has no effects besides. `twice`: it and its log will run forward. `augment`: where the primal's
/// launch keeps what it can. Throws Error with the line of what it has no rule for: what `forward`
/// refuses; an element that is read while other iterations add to it; a race that every launch has;
/// what asks which elements of a tree are active, or reads elements of its fields, behind what may
/// have changed that.
Reverse reverse(const ir::Kernel& primal, const ir::Premises& premises, std::vector<bool> inputs,
                std::span<const runtime::LaunchKey::OnTree> trees = {}, bool with_values = false,
                bool twice = false, Augment augment = Augment::never);

}  // namespace quern::autodiff
