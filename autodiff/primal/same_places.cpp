#include "autodiff/primal/same_places.h"

#include <algorithm>

namespace quern::autodiff {

using namespace ir;

namespace {

/// How elements of a component lie to each other.
Placement placement_of(const runtime::Storage& field) {
  Placement placement = field.facts().layout;
  placement.offsets.clear();
  return placement;
}

Type encoding_of(const runtime::Storage& field, uint32_t component) {
  const std::vector<Type>& all = field.facts().encodings;
  return all.empty() ? storage_type(field.components()[component].type) : all[component];
}

/// Is the element of any indices the same of both?
bool lie_alike(const runtime::Storage& a, uint32_t component, const runtime::Storage& b,
               uint32_t other) {
  if (a.tree() != b.tree() || a.shape().size() != b.shape().size() ||
      a.components()[component] != b.components()[other] ||
      encoding_of(a, component) != encoding_of(b, other) || a.base(component) != b.base(other) ||
      placement_of(a) != placement_of(b))
    return false;
  for (uint32_t k = 0; k < a.shape().size(); k++)
    if (a.stride(component, k) != b.stride(other, k) || a.origin(k) != b.origin(k)) return false;
  return true;
}

}  // namespace

SamePlaces::SamePlaces(const Kernel& kernel, std::span<const runtime::Argument> arguments)
    : classes_(runtime::premises_of(arguments, kernel.modes).alias_classes) {
  const auto components = [&](uint32_t k) {
    return uint32_t(kernel.bindings[k].components.size());
  };
  const auto find_earlier = [&](Part part) {
    for (uint32_t k = classes_[part.binding]; k < part.binding; k++) {
      if (classes_[k] != classes_[part.binding]) continue;
      for (uint32_t c = 0; c < components(k); c++)
        if (lie_alike(*arguments[k].storage, c, *arguments[part.binding].storage, part.component)) {
          earlier_.emplace(part, Part{k, c});
          return;
        }
    }
  };
  for (uint32_t k = 0; k < classes_.size(); k++)
    for (uint32_t c = 0; classes_[k] != k && c < components(k); c++) find_earlier({k, c});
}

uint32_t SamePlaces::class_of(uint32_t binding) const {
  return binding < classes_.size() ? classes_[binding] : binding;
}

Part SamePlaces::first(Part part) const {
  const auto earlier = earlier_.find(part);
  return earlier == earlier_.end() ? part : earlier->second;
}

bool SamePlaces::may_overlap(Part a, Part b) const {
  return a.binding == b.binding ? a == b : class_of(a.binding) == class_of(b.binding);
}

}  // namespace quern::autodiff
