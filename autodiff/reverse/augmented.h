#pragma once
// The augmented primal: it does all that the primal does, and keeps of its loops what going back
// through them wants, which would have to run them once more to find it. (The forward pass of
// Tapenade's split mode and of Enzyme: Hascoët and Pascual, ACM TOMS 39(3), 2013; Moses and
// Churavy, NeurIPS 2020.)
//
// That is done for loops whose rows are alike and that stand in an iteration of a parallel loop, at
// most in branches, and leave nothing in variables: of these each element has its place, whoever
// writes it, and how many there are is known before the launch. Not in a kernel where rounds or
// rows depend on floats (LoopPlans::rows_vary): reverse and primal may round those differently. And
// where it pays: what is kept goes through memory, while a loop that is recorded and gone back
// through by one kernel has its last rounds in the caches.
#include <memory>
#include <optional>

#include "autodiff/reverse/replay.h"

namespace quern::autodiff {

/// Of an augmented primal that adds to one number, and computes what it gives to the adjoints of all
/// inputs for an adjoint of 1 of that (at_once.h).
struct AtOnce {
  struct Kept {
    uint32_t field;  ///< the primal's binding
    uint32_t input;  ///< its number among those of Reverse::fields that are some
  };
  std::vector<Kept> kept;      ///< a field like its adjoints; what has no part has none
  std::vector<bool> assigned;  ///< by the primal's bindings: need not be zeros before; empty: none
  std::vector<uint32_t> lent;  ///< as Reverse::lent
  /// The kernel's bindings that companions are looked up by: of the inputs, then of `lent`.
  std::vector<uint32_t> looked_up_by;
};

/// By sites that are augmented, in order, and then by results that are kept (kept_results.h).
struct Augmented {
  struct Site {
    std::vector<ir::Type> rows,
        ends;  ///< components; of its end, and of results, there may be none
  };
  std::vector<Site> sites;
  std::optional<AtOnce> at_once;  ///< no sites then
  /// With the primal's bindings; results: of each site how many rows it has, then how many
  /// iterations. At once: how many additions it spares to compute again.
  std::unique_ptr<ir::Kernel> count;
  /// Behind the primal's bindings, of each site: its rows, and its ends if there are some. Results
  /// are the primal's. At once: as a reverse kernel has it, looking up companions.
  std::unique_ptr<ir::Kernel> kernel;
  explicit operator bool() const { return kernel != nullptr; }
};

/// Has the host to wait for the device to know what the kernel yields?
bool depends_on_data(const ir::Kernel& kernel);

/// Bytes that launches on a tape may keep so, or a launch that is gone back through alone. What
/// would be more is found again then.
inline constexpr uint64_t most_kept_by_augmented = uint64_t(256) << 20;

/// Marks the sites that are, and puts them behind the others.
void choose_augmented(std::vector<RoundsSite>& sites, const LoopPlans& plans, Augment where);

/// Adds the fields of these sites to a kernel, behind its bindings: of each its rows, and its ends
/// if there are some; then those of `fields.kept`.
void declare_augmented(ir::Kernel& kernel, const std::vector<RoundsSite>& sites,
                       SiteFields& fields);

/// `results` are kept too. `count` and `kernel` are empty kernels with the primal's bindings;
/// nothing is logged.
Augmented augmented(const ir::Kernel& primal, const LoopPlans& plans,
                    const std::vector<RoundsSite>& sites, const std::vector<KeptResult>& results,
                    std::unique_ptr<ir::Kernel> count, std::unique_ptr<ir::Kernel> kernel);

}  // namespace quern::autodiff
