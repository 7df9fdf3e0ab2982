// Companions: fields that go with another, whatever becomes of that.
#include <algorithm>
#include <set>
#include <span>

#include "quern/runtime/tree.h"
#include "runtime/storage_memory.h"

namespace quern::runtime {

namespace {

ir::Storage stored_by_companion(const ir::Storage& s) {
  if (s.value == ir::Type::f16) return {ir::Type::f32, ir::Type::f32};
  return s;
}

/// The host has a companion's elements as it has the field's, which may be a structure with padding
/// or in an order of its own, unless halves became floats.
Element element_of_companion(const Element& element, std::span<const ir::Storage> own,
                             std::span<const ir::Storage> companion) {
  return std::ranges::equal(own, companion) ? element : natural_element(companion);
}

}  // namespace

std::shared_ptr<Storage> Storage::companion_of_whole(const std::string& name, Loc loc) const {
  std::lock_guard lock(memory_->companions_mutex);
  std::shared_ptr<Storage>& known = memory_->companions[name];
  if (known) return known;
  std::vector<ir::Storage> types;
  const Declared& field = *memory_->declared;
  for (const ir::Storage& s : field.stored) types.push_back(stored_by_companion(s));
  const Element element = element_of_companion(field.element, field.stored, types);
  known = tree_ ? tree_->like(*this, std::move(types), element, field.layout, loc)
                : std::make_shared<Storage>(device_, std::move(types), field.shape, loc,
                                            field.layout, element);
  return known;
}

std::shared_ptr<Storage> Storage::known_companion(const std::string& name) const {
  std::lock_guard lock(memory_->companions_mutex);
  const auto known = memory_->companions.find(name);
  return known == memory_->companions.end() ? nullptr : known->second;
}

void Storage::swap_companions(Storage& other, Loc loc) {
  std::set<std::string> names;
  for (const Storage* field : {this, &other}) {
    std::lock_guard lock(field->memory_->companions_mutex);
    for (const auto& [name, companion] : field->memory_->companions) names.insert(name);
  }
  for (const std::string& name : names)
    companion_of_whole(name, loc)->swap(*other.companion_of_whole(name, loc), loc);
}

void Storage::Memory::release_companions(Loc loc) {
  std::lock_guard lock(companions_mutex);
  for (const auto& [name, companion] : companions)
    if (!companion->released()) companion->release(loc);
}

std::shared_ptr<Storage> Storage::companion(const std::string& name, Loc loc) const {
  expect_alive(loc);
  if (is_snapshot() && !name.starts_with(scratch))
    throw Error(loc, "a snapshot is read only: it has no " + name +
                         " of its own. Take derivatives by fields alone, with wrt(), or give the "
                         "kernel a field with the same elements");
  const std::shared_ptr<Storage> whole = companion_of_whole(name, loc);
  if (!is_view_) return whole;
  if (tree_) return view_of_companion(*whole, loc);

  // Levels and strides count elements, whatever these are.
  std::shared_ptr<Storage> v = view(loc);
  ir::Placement& placement = v->facts_.layout;
  const ir::Placement& theirs = whole->facts_.layout;
  placement.step = theirs.step;
  placement.group = theirs.group;
  placement.group_bytes = theirs.group_bytes;
  v->memory_ = whole->memory_;
  const auto from = int64_t(first_component_), to = from + int64_t(stored_.size());
  v->stored_.assign(whole->stored_.begin() + from, whole->stored_.begin() + to);
  v->places_.assign(whole->places_.begin() + from, whole->places_.begin() + to);
  const int64_t in_group = placement.group ? start_ % placement.group : 0;
  for (uint32_t c = 0; c < v->places_.size(); c++)
    v->places_[c].offset +=
        placement.bytes(start_ - in_group, v->width(c)) + placement.bytes(in_group, v->width(c));
  v->element_ = element_of_companion(element_, stored_, v->stored_);
  v->settle();
  return v;
}

/// On a tree a view has axes and components of its own, and the elements are the whole field's.
std::shared_ptr<Storage> Storage::view_of_companion(const Storage& whole, Loc loc) const {
  const auto from = whole.stored_.begin() + int64_t(first_component_);
  const std::vector<ir::Storage> types(from, from + int64_t(stored_.size()));
  std::shared_ptr<Storage> v =
      whole.part(first_component_, element_of_companion(element_, stored_, types), loc);
  v->axes_ = axes_;
  v->facts_.layout.cut = facts_.layout.cut;
  v->settle();
  return v;
}

}  // namespace quern::runtime
