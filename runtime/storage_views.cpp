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
  if (step > 1) expect_no_tree("a slice of it takes every index", loc);
  if (step > 1 && !is_linear(axis))
    throw Error(loc, "a slice with step " + std::to_string(step) + " of axis " +
                         std::to_string(axis) + ", which lies in blocks of " +
                         std::to_string(block(axis)) + ": there only step 1 is possible");
  std::shared_ptr<Storage> v = view(loc);
  Axis& a = v->axes_[axis];
  v->facts_.layout.cut = tree_ != nullptr;
  if (is_linear(axis) && !tree_)
    v->move_start((lo - first) * a.stride);
  else
    a.origin += lo - first;
  a.first = 0;
  a.extent = hi == lo ? 0 : (hi - lo - 1) / step + 1;
  if (__builtin_mul_overflow(a.stride, step, &a.stride)) a.stride = 0;  // one element: never used
  v->settle();
  return v;
}

std::shared_ptr<Storage> Storage::select(uint32_t axis, int64_t index, Loc loc) const {
  expect_axis(axis, loc);
  expect_no_tree("it has all of the tree's axes", loc);
  const Axis& a = axes_[axis];
  if (index < a.first || index >= a.first + a.extent)
    throw Error(loc, "index " + std::to_string(index) + " of axis " + std::to_string(axis) +
                         ", whose indices go from " + std::to_string(a.first) + " to below " +
                         std::to_string(a.first + a.extent));
  std::shared_ptr<Storage> v = view(loc);
  const int64_t outermost = facts_.layout.split(
      axis, index - a.first + a.origin,
      [&](int64_t digit, int64_t, int64_t stride) { v->move_start(digit * stride); });
  v->move_start(outermost * a.stride);
  std::vector<uint32_t> others;
  for (uint32_t k = 0; k < axes_.size(); k++)
    if (k != axis) others.push_back(k);
  v->take_axes(others);
  v->settle();
  return v;
}

/// Axis k becomes what axis axes[k] was.
void Storage::take_axes(std::span<const uint32_t> axes) {
  std::vector<Axis> taken;
  for (uint32_t axis : axes) taken.push_back(axes_[axis]);
  axes_ = std::move(taken);
  facts_.layout.take_axes(axes);
}

std::shared_ptr<Storage> Storage::transposed(std::span<const int64_t> order, Loc loc) const {
  expect_no_tree("its axes are the tree's", loc);
  uint32_t seen = 0;
  for (int64_t axis : order)
    if (axis >= 0 && axis < int64_t(axes_.size())) seen |= 1u << axis;
  if (order.size() != axes_.size() || std::popcount(seen) != int(axes_.size()))
    throw Error(loc, "a transposed field names each of the " + std::to_string(axes_.size()) +
                         " axes once, numbered from 0");
  std::shared_ptr<Storage> v = view(loc);
  v->take_axes(std::vector<uint32_t>(order.begin(), order.end()));
  v->settle();
  return v;
}

std::shared_ptr<Storage> Storage::flipped(uint32_t axis, Loc loc) const {
  expect_axis(axis, loc);
  expect_no_tree("its axes are the tree's", loc);
  if (!is_linear(axis))
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
  v->stored_.assign(stored_.begin() + from, stored_.begin() + int64_t(from + count));
  v->places_.assign(places_.begin() + from, places_.begin() + int64_t(from + count));
  v->element_ = std::move(element);
  v->first_component_ += from;
  if (tree_) v->elements_ = elements_->part(from, v->element_, loc);
  v->settle();
  return v;
}

}  // namespace quern::runtime
