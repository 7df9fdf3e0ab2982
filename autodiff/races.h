#pragma once
// Races of the primal that leave its derivative without a meaning.
//
// Where iterations of a parallel loop store values of their own to one element, or one reads an
// element that another one stores to, any of several values comes of it (docs/semantics.md, 1.6), and
// what is differentiated is no function. Such a loop is refused where the race is certain: both
// accesses are reached in every iteration; by their indices (iterations.h) two iterations come to one
// element; these two exist; and what is stored varies with an input, and is not computed alike by the
// two. Indices that data decides on, branches, and loops that may have no rounds are not looked into:
// the user answers for what they do.
//
// How many iterations there are is often known only at a launch. What hangs on that waits for it.
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "quern/ir/ir.h"
#include "quern/runtime/launch.h"

namespace quern::autodiff {

/// What is a race where all of these loops have so many rounds.
struct Race {
  struct Rounds {
    const ir::Value* index = nullptr;  ///< of the loop, or of one axis of it
    int64_t least = 1;
    std::optional<int64_t> at;  ///< one of them is
  };
  Loc loc;  ///< of one of the accesses
  std::string text;
  std::vector<Rounds> loops;
};

class Races {
 public:
  Races(std::unique_ptr<const ir::Kernel> kernel, std::vector<Race> races)
      : kernel_(std::move(kernel)), races_(std::move(races)) {}
  /// Throws Error with the line where a launch with these arguments has one.
  void expect_none(std::span<const runtime::Argument> arguments) const;

 private:
  const std::unique_ptr<const ir::Kernel> kernel_;  ///< that the races' values are of
  const std::vector<Race> races_;
};

/// Of a kernel at level structured, optimised. `varies`: of each binding, whether its floats have
/// derivatives. Throws Error with the line of a race that every launch has. Null where none has one.
std::shared_ptr<const Races> races_of(const ir::Kernel& kernel, const std::vector<bool>& varies);

}  // namespace quern::autodiff
