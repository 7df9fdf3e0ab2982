// Companions: fields that go with another, whatever becomes of that.
#include <set>

#include "runtime/storage_memory.h"

namespace quern::runtime {

namespace {

ir::Storage stored_by_companion(const ir::Storage& s) {
  if (s.value == ir::Type::f16) return {ir::Type::f32, ir::Type::f32};
  return s;
}

}  // namespace

std::shared_ptr<Storage> Storage::Memory::companion(const std::string& name, Loc loc) {
  std::lock_guard lock(companions_mutex_);
  std::shared_ptr<Storage>& known = companions_[name];
  if (!known) {
    std::vector<ir::Storage> types;
    for (const ir::Storage& s : stored) types.push_back(stored_by_companion(s));
    known = std::make_shared<Storage>(device, std::move(types), shape, loc, layout);
  }
  return known;
}

void Storage::Memory::swap_companions(Memory& other, Loc loc) {
  std::set<std::string> names;
  for (Memory* memory : {this, &other}) {
    std::lock_guard lock(memory->companions_mutex_);
    for (const auto& [name, companion] : memory->companions_) names.insert(name);
  }
  for (const std::string& name : names)
    companion(name, loc)->swap(*other.companion(name, loc), loc);
}

void Storage::Memory::release_companions(Loc loc) {
  std::lock_guard lock(companions_mutex_);
  for (const auto& [name, companion] : companions_)
    if (!companion->released()) companion->release(loc);
}

std::shared_ptr<Storage> Storage::companion(const std::string& name, Loc loc) const {
  expect_alive(loc);
  if (is_snapshot()) throw Error(loc, "a snapshot is read only: it has no " + name + " of its own");
  expect_no_tree("it has no " + name, loc);
  const std::shared_ptr<Storage> whole = memory_->companion(name, loc);
  if (!is_view_) return whole;

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
  v->element_ = natural_element(v->stored_);
  v->settle();
  return v;
}

}  // namespace quern::runtime
