#include "autodiff/varying.h"

#include <algorithm>

namespace quern::autodiff {

namespace {
bool has_floats(const runtime::Image::Parameter& parameter) {
  return std::ranges::any_of(parameter.components,
                             [](const ir::Component& c) { return ir::is_float(c.type); });
}
}  // namespace

Varying::Varying(std::span<const std::shared_ptr<runtime::Storage>> fields)
    : memory_(std::in_place) {
  for (const auto& field : fields) add(*field);
}

void Varying::add(const runtime::Storage& field) {
  if (memory_ && !field.tree() && !field.is_snapshot()) memory_->insert(field.memory_number());
}

/// Memory of trees changes as they grow. A snapshot is refused where it would have adjoints.
bool Varying::has(const runtime::Storage& field) const {
  return !memory_ || field.tree() || field.is_snapshot() ||
         memory_->contains(field.memory_number());
}

std::vector<bool> Varying::inputs(const runtime::LaunchEvent& event, Fields& begun) {
  std::vector<bool> inputs(event.arguments.size(), false);
  bool any = false;
  for (size_t k = 0; k < inputs.size(); k++) {
    const auto& field = event.arguments[k].storage;
    inputs[k] = field && has_floats(event.parameters[k]) && has(*field);
    any = any || inputs[k];
  }
  for (size_t k = 0; any && k < inputs.size(); k++) {
    const auto& field = event.arguments[k].storage;
    if (!field || !event.parameters[k].writes || !has_floats(event.parameters[k])) continue;
    inputs[k] = true;
    if (!has(*field)) begun.push_back(field);
  }
  if (any) add_written(event);
  return inputs;
}

void Varying::add_written(const runtime::LaunchEvent& event) {
  for (size_t k = 0; memory_ && k < event.arguments.size(); k++)
    if (event.arguments[k].storage && event.parameters[k].writes) add(*event.arguments[k].storage);
}

}  // namespace quern::autodiff
