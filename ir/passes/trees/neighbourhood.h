#pragma once
// Accesses near one another on a tree: the cells that they lie in are looked for once for all of them.
#include <array>
#include <map>
#include <span>
#include <vector>

#include "ir/passes/trees/descent.h"

namespace quern::ir {

/// Accesses of one region whose indices differ by constants, as those of a spline's nodes do. Where none
/// is further than a cell's extent from another along an axis, and each corner of the box around them is one
/// of them, they lie in the cells that the corners lie in: two along an axis, 8 instead of 27 in space.
class Neighbourhood {
 public:
  using Along = std::array<int64_t, Placement::max_axes>;

  /// `claims`: the accesses make their elements active.
  Neighbourhood(Kernel& kernel, TreeParts& parts, Builder& b, bool claims)
      : kernel_(kernel), parts_(parts), b_(b), claims_(claims) {}

  /// The region's next one in program order; `offset` from what the indices have in common.
  void add(Inst* access, const Along& offset);
  bool is_box() const;
  /// One access for each corner.
  std::vector<Inst*> corners() const;
  /// The accesses at each offset, for themselves.
  std::vector<Neighbourhood> apart() const;
  bool is_alone() const { return members_.size() == 1; }
  std::span<Inst* const> members() const { return members_; }

  /// The number of an access's element, which is active where the accesses claim theirs, i64; at the
  /// builder's point, which is before the access. Asked of all accesses in program order.
  Value* number(const Inst* access, bool reports);

 private:
  std::vector<Along> corners_of_box() const;
  void find_corners(Descent& descent, const Inst* first);
  Value* slot_at(Descent& descent, const Inst* access, Along at);

  Kernel& kernel_;
  TreeParts& parts_;
  Builder& b_;
  bool claims_;
  std::vector<Inst*> members_;
  std::map<const Inst*, Along> offsets_;
  std::map<Along, Inst*> first_at_;
  Along least_ = {}, most_ = {};
  std::map<Along, Value*> slots_, numbers_;  ///< of cells, of elements
  /// By the axis and the steps from the lower side: is an element in the cell that that is in?
  std::map<std::pair<uint32_t, int64_t>, Value*> stays_;
};

/// The accesses, given in program order, which load, store or update elements of trees without lists,
/// in neighbourhoods of two or more; others are in none.
std::vector<Neighbourhood> neighbourhoods(Kernel& kernel, TreeParts& parts, Builder& b,
                                          std::span<Inst* const> accesses, bool claim);

}  // namespace quern::ir
