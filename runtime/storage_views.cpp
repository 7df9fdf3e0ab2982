// Views: storages of their own on the memory of another.
#include <bit>

#include "runtime/storage_memory.h"

namespace quern::runtime {

std::shared_ptr<Storage> Storage::view(Loc loc) const {
  expect_alive(loc);
  std::shared_ptr<Storage> v(new Storage(*this));
  v->is_view_ = true;
  v->loc_ = loc;
  return v;
}

void Storage::expect_axis(uint32_t axis, Loc loc) const {
  if (axis >= axes_.size())
    throw Error(loc, "axis " + std::to_string(int32_t(axis)) + " of a field with " +
                         std::to_string(axes_.size()) + ", numbered from 0");
}

/// The view starts so many elements behind (a distance as Placement::bytes takes it).
void Storage::move_start(int64_t elements) {
  start_ += elements;
  for (uint32_t c = 0; c < places_.size(); c++)
    places_[c].offset += facts_.layout.bytes(elements, width(c));
}

std::shared_ptr<Storage> Storage::slice(uint32_t axis, int64_t lo, int64_t hi, int64_t step,
                                        Loc loc) const {
  expect_axis(axis, loc);
  const int64_t first = axes_[axis].first, end = first + axes_[axis].extent;
  if (lo < first || hi > end || lo > hi)
    throw Error(loc, "slice " + std::to_string(lo) + " … " + std::to_string(hi) + " of axis " +
                         std::to_string(axis) + ", whose indices go from " + std::to_string(first) +
                         " to below " + std::to_string(end));
  if (step < 1)
    throw Error(loc, "a slice with step " + std::to_string(step) +
                         "; steps are 1 or more, flipped(axis) runs backwards");
  if (step > 1 && has_blocks(axis))
    throw Error(loc, "a slice with step " + std::to_string(step) + " of axis " +
                         std::to_string(axis) + ", which lies in blocks of " +
                         std::to_string(block(axis)) + ": there only step 1 is possible");
  std::shared_ptr<Storage> v = view(loc);
  Axis& a = v->axes_[axis];
  if (has_blocks(axis))
    a.origin += lo - first;
  else
    v->move_start((lo - first) * a.stride);
  a.first = 0;
  a.extent = hi == lo ? 0 : (hi - lo - 1) / step + 1;
  if (__builtin_mul_overflow(a.stride, step, &a.stride)) a.stride = 0;  // one element: never used
  v->settle();
  return v;
}

std::shared_ptr<Storage> Storage::select(uint32_t axis, int64_t index, Loc loc) const {
  expect_axis(axis, loc);
  const Axis& a = axes_[axis];
  if (index < a.first || index >= a.first + a.extent)
    throw Error(loc, "index " + std::to_string(index) + " of axis " + std::to_string(axis) +
                         ", whose indices go from " + std::to_string(a.first) + " to below " +
                         std::to_string(a.first + a.extent));
  std::shared_ptr<Storage> v = view(loc);
  ir::Placement& placement = v->facts_.layout;
  int64_t at = index - a.first + a.origin;
  for (size_t k = placement.levels.size(); k-- > 0;) {
    const ir::Placement::Level& level = placement.levels[k];
    v->move_start(at % level.extent[axis] * level.stride[axis]);
    at /= level.extent[axis];
  }
  v->move_start(at * a.stride);
  for (ir::Placement::Level& level : placement.levels)
    for (uint32_t k = axis; k < Layout::max_axes; k++) {
      level.extent[k] = k + 1 < Layout::max_axes ? level.extent[k + 1] : 1;
      level.stride[k] = k + 1 < Layout::max_axes ? level.stride[k + 1] : 0;
    }
  v->axes_.erase(v->axes_.begin() + axis);
  v->settle();
  return v;
}

std::shared_ptr<Storage> Storage::transposed(std::span<const int64_t> order, Loc loc) const {
  uint32_t seen = 0;
  for (int64_t axis : order)
    if (axis >= 0 && axis < int64_t(axes_.size())) seen |= 1u << axis;
  if (order.size() != axes_.size() || std::popcount(seen) != int(axes_.size()))
    throw Error(loc, "a transposed field names each of the " + std::to_string(axes_.size()) +
                         " axes once, numbered from 0");
  std::shared_ptr<Storage> v = view(loc);
  for (size_t k = 0; k < order.size(); k++) {
    v->axes_[k] = axes_[size_t(order[k])];
    for (size_t l = 0; l < facts_.layout.levels.size(); l++) {
      v->facts_.layout.levels[l].extent[k] = facts_.layout.levels[l].extent[order[k]];
      v->facts_.layout.levels[l].stride[k] = facts_.layout.levels[l].stride[order[k]];
    }
  }
  v->settle();
  return v;
}

std::shared_ptr<Storage> Storage::flipped(uint32_t axis, Loc loc) const {
  expect_axis(axis, loc);
  if (has_blocks(axis))
    throw Error(loc, "axis " + std::to_string(axis) + " lies in blocks of " +
                         std::to_string(block(axis)) + " and cannot be flipped");
  std::shared_ptr<Storage> v = view(loc);
  Axis& a = v->axes_[axis];
  if (a.extent > 0) v->move_start((a.extent - 1) * a.stride);
  a.stride = -a.stride;
  v->settle();
  return v;
}

std::shared_ptr<Storage> Storage::rebased(std::span<const int64_t> firsts, Loc loc) const {
  expect_firsts(firsts, axes_.size(), loc);
  std::shared_ptr<Storage> v = view(loc);
  for (size_t k = 0; k < firsts.size(); k++) v->axes_[k].first = firsts[k];
  v->settle();
  return v;
}

std::shared_ptr<Storage> Storage::part(uint32_t from, Element element, Loc loc) const {
  std::shared_ptr<Storage> v = view(loc);
  const size_t count = element.offsets.size();
  v->components_.assign(components_.begin() + from, components_.begin() + int64_t(from + count));
  v->places_.assign(places_.begin() + from, places_.begin() + int64_t(from + count));
  v->element_ = std::move(element);
  v->first_component_ += from;
  v->settle();
  return v;
}

}  // namespace quern::runtime
