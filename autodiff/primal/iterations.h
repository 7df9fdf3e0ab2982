#pragma once
// Two iterations of a parallel loop beside each other: where they come to the same element, and
// whether they compute the same.
//
// Numbers of an iteration are looked at as sums: of multiples of the loop's indices, of what all
// iterations share, and a constant. Conversions between integers are looked through, as indices
// that wrap are out of range. What is no such sum is not known.
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "autodiff/primal/same_places.h"
#include "ir/analysis/affine.h"
#include "ir/analysis/uniformity.h"

namespace quern::autodiff {

/// From an iteration to another one, along each index of the loop.
using Step = std::vector<int64_t>;

/// A number of an iteration.
struct Sum {
  std::vector<int64_t> factors;  ///< of the loop's indices
  ir::Affine shared;
  bool operator==(const Sum&) const = default;

  /// Over a step, as integers wrap.
  int64_t change(const Step& step) const;
};

/// Of one loop.
class Iterations {
 public:
  Iterations(const ir::Kernel& kernel, const ir::Region* region);

  const ir::Region* const body;

  bool is_inside(const ir::Value* v) const;
  /// None: it is none, or not known to be one.
  std::optional<Sum> sum(const ir::Value* v);
  /// Has the loop, within an iteration, the same rounds in all of them?
  bool has_shared_rounds(const ir::Inst* loop);

 private:
  /// Also the index of a loop with shared rounds, of which one and the same is looked at.
  bool is_shared(const ir::Value* v);

  ir::Uniformity uniform_;
  ir::AffineForms forms_;
};

/// Two different iterations that come to one element: the second is a step behind the first.
struct Meeting {
  Step step;
  /// By index of the loop, where not every iteration meets another one so far away: the index of
  /// one of the two. The other's is any other then.
  std::vector<std::optional<int64_t>> at;
};

/// Of an access with indices `a` in the one and one with `b` in the other. Few, if there are many.
std::vector<Meeting> meetings(const std::vector<Sum>& a, const std::vector<Sum>& b, size_t axes);

/// What an iteration computes beside what another one does, a step behind it.
class Comparison {
 public:
  Comparison(Iterations& iterations, const SamePlaces& places, const Step& step)
      : iterations_(iterations), places_(places), step_(step) {}

  /// Is `b` there computed otherwise than `a` here: by other operations, of other numbers of the
  /// iteration, of other elements? False: not known. Numbers that are not sums are not compared, as
  /// i / 4 is the same of several i.
  bool differ(const ir::Value* a, const ir::Value* b) { return differ(a, b, 0); }

 private:
  bool differ(const ir::Value* a, const ir::Value* b, int depth);
  bool are_other(const ir::Value* a, const ir::Value* b, int depth);
  bool varies(const ir::Value* v);

  Iterations& iterations_;
  const SamePlaces& places_;
  const Step& step_;
  std::map<std::pair<const ir::Value*, const ir::Value*>, bool> known_;
};

}  // namespace quern::autodiff
