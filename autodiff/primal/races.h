#pragma once
// Races of the primal that leave its derivative without a meaning.
//
// Where iterations of a parallel loop store values of their own to one element, or one reads an
// element that another one stores to, any of several values comes of it (docs/semantics.md, 1.6),
// and what is differentiated is no function. Such a loop is refused where the race is certain: both
// accesses are reached in every iteration; by their indices (iterations.h) two iterations come to
// one element; these two exist; and what is stored varies with an input, and is not computed alike
// by the two. Indices that data decides on, branches, and loops that may have no rounds are not
// looked into: the user answers for what they do.
//
// How many iterations there are is often known only at a launch, and so is whether fields that may
// overlap lie in one place. What hangs on that waits for it.
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "autodiff/primal/same_places.h"
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

/// May be asked from several threads.
class Races {
 public:
  Races(std::unique_ptr<const ir::Kernel> kernel, std::vector<bool> varies)
      : kernel_(std::move(kernel)), varies_(std::move(varies)) {}
  /// Throws Error with the line where a launch with these arguments has one.
  void expect_none(std::span<const runtime::Argument> arguments) const;

 private:
  const std::vector<Race>& where(SamePlaces places) const;

  const std::unique_ptr<const ir::Kernel> kernel_;
  const std::vector<bool> varies_;
  mutable std::mutex mutex_;
  mutable std::map<SamePlaces, std::vector<Race>> known_;
};

/// Of a kernel at level structured, optimised, whose bindings have their alias classes. `varies`:
/// of each binding, whether its floats have derivatives. Throws Error with the line of a race that
/// every launch has, where no two bindings may overlap. Null where none has one.
std::shared_ptr<const Races> races_of(const ir::Kernel& kernel, const std::vector<bool>& varies);

}  // namespace quern::autodiff
