#include "ir/passes/trees/neighbourhood.h"

#include <algorithm>

#include "ir/analysis/affine.h"
#include "ir/analysis/effects.h"

namespace quern::ir {

void Neighbourhood::add(Inst* access, const Along& offset) {
  for (size_t axis = 0; axis < offset.size(); axis++) {
    least_[axis] = members_.empty() ? offset[axis] : std::min(least_[axis], offset[axis]);
    most_[axis] = members_.empty() ? offset[axis] : std::max(most_[axis], offset[axis]);
  }
  members_.push_back(access);
  offsets_[access] = offset;
  first_at_.insert({offset, access});
}

std::vector<Neighbourhood::Along> Neighbourhood::corners_of_box() const {
  std::vector<Along> all = {least_};
  for (uint32_t axis = 0; axis < Placement::max_axes; axis++) {
    if (least_[axis] == most_[axis]) continue;
    for (size_t k = all.size(); k-- > 0;) {
      all.push_back(all[k]);
      all.back()[axis] = most_[axis];
    }
  }
  return all;
}

bool Neighbourhood::is_box() const {
  Along extent;
  extent.fill(1);
  const Placement& layout = kernel_.bindings[members_[0]->binding()].layout;
  for (const Placement::Level& level : layout.pools.back().levels)
    for (size_t axis = 0; axis < extent.size(); axis++) extent[axis] *= level.extent[axis];
  for (size_t axis = 0; axis < extent.size(); axis++)
    if (most_[axis] - least_[axis] > extent[axis]) return false;
  return std::ranges::all_of(corners_of_box(),
                             [&](const Along& corner) { return first_at_.contains(corner); });
}

std::vector<Inst*> Neighbourhood::corners() const {
  std::vector<Inst*> all;
  for (const Along& corner : corners_of_box()) all.push_back(first_at_.at(corner));
  return all;
}

std::vector<Neighbourhood> Neighbourhood::apart() const {
  std::map<Along, Neighbourhood> each;
  for (Inst* access : members_)
    each.try_emplace(offsets_.at(access), kernel_, parts_, b_, claims_)
        .first->second.add(access, offsets_.at(access));
  std::vector<Neighbourhood> all;
  for (auto& [offset, one] : each) all.push_back(std::move(one));
  return all;
}

Value* Neighbourhood::number(const Inst* access, bool reports) {
  const Along& at = offsets_.at(access);
  if (const auto known = numbers_.find(at); known != numbers_.end()) return known->second;
  Descent descent(kernel_, parts_, access->binding(), b_, reports);
  if (slots_.empty()) find_corners(descent, access);
  std::vector<Value*> indices;
  for (size_t axis = 0; axis < Effects::indices(access); axis++)
    indices.push_back(access->operand(axis));
  Value* slot = slot_at(descent, access, at);
  Value* number = descent.child(slot, descent.path(indices).children.back()).number;
  if (claims_) descent.mark_active(number);
  return numbers_[at] = number;
}

/// At the first access, by its indices.
void Neighbourhood::find_corners(Descent& descent, const Inst* first) {
  const Along& from = offsets_.at(first);
  for (const Along& corner : corners_of_box()) {
    std::vector<Value*> indices;
    for (size_t axis = 0; axis < Effects::indices(first); axis++) {
      Value* index = first->operand(axis);
      const int64_t steps = corner[axis] - from[axis];
      indices.push_back(steps == 0 ? index : b_.add(index, b_.integer(index->type, steps)));
    }
    const Descent::Path path = descent.path(indices);
    slots_[corner] = claims_ ? descent.claim_cell(path) : descent.cell(path, false);
  }
}

/// The slot of the cell that the access lies in, for `at` its own offset, and for those of the box's
/// sides and edges beside it.
Value* Neighbourhood::slot_at(Descent& descent, const Inst* access, Along at) {
  if (const auto known = slots_.find(at); known != slots_.end()) return known->second;
  uint32_t axis = 0;
  while (at[axis] == least_[axis] || at[axis] == most_[axis]) axis++;
  const int64_t steps = at[axis] - least_[axis];
  Value*& stays = stays_[{axis, steps}];
  if (!stays) {  // in the cell of the box's lower side: else its own digit began anew
    Value* digit = descent.digit(axis, access->operand(axis));
    stays = b_.binary(Op::ge, digit, b_.integer(digit->type, steps));
  }
  Along low = at, high = at;
  low[axis] = least_[axis];
  high[axis] = most_[axis];
  Value *below = slot_at(descent, access, low), *above = slot_at(descent, access, high);
  return slots_[at] = b_.select(stays, below, above);
}

std::vector<Neighbourhood> neighbourhoods(Kernel& kernel, TreeParts& parts, Builder& b,
                                          std::span<Inst* const> accesses, bool claim) {
  struct Key {
    const Region* region;
    uint32_t tree, rebased;
    std::vector<std::vector<std::pair<const Value*, int64_t>>> terms;
    auto operator<=>(const Key&) const = default;
  };
  AffineForms forms(AffineForms::through_conversions);
  std::map<Key, size_t> places;
  std::vector<Neighbourhood> found;
  for (Inst* access : accesses) {
    const Binding& binding = kernel.bindings[access->binding()];
    Key key{
        access->parent, binding.tree, binding.layout.rebased ? access->binding() : no_binding, {}};
    Neighbourhood::Along offset = {};
    for (size_t axis = 0; axis < Effects::indices(access); axis++) {
      const Affine& form = forms.of(access->operand(axis));
      auto& terms = key.terms.emplace_back();
      for (const Affine::Term& term : form.terms) terms.push_back({term.symbol, term.factor});
      offset[axis] = form.constant;
    }
    const auto [at, is_new] = places.try_emplace(std::move(key), found.size());
    if (is_new) found.emplace_back(kernel, parts, b, claim);
    found[at->second].add(access, offset);
  }
  std::vector<Neighbourhood> out;
  for (Neighbourhood& one : found) {
    if (one.is_box()) {
      if (!one.is_alone()) out.push_back(std::move(one));
      continue;
    }
    for (Neighbourhood& part : one.apart())
      if (!part.is_alone()) out.push_back(std::move(part));
  }
  return out;
}

}  // namespace quern::ir
