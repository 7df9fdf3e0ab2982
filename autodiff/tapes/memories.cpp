#include "autodiff/tapes/memories.h"

#include <algorithm>
#include <utility>

namespace quern::autodiff {

namespace {
/// Does the kernel access floats of it? One that asks for its extents alone has no part in it.
bool has_floats(const runtime::Image::Parameter& parameter) {
  return (parameter.reads || parameter.writes) &&
         std::ranges::any_of(parameter.components,
                             [](const ir::Component& c) { return ir::is_float(c.type); });
}
}  // namespace

void Memories::vary_by(const Fields& fields) {
  all_vary_ = false;
  for (const auto& field : fields) add(*field);
}

void Memories::vary_as(const Memories& other) {
  all_vary_ = other.all_vary_;
  began_ = other.began_;
  for (const auto& [number, memory] : other.all_) all_[number].varies = memory.varies;
}

void Memories::add(const runtime::Storage& field) {
  if (all_vary_ || field.tree() || field.is_snapshot()) return;
  variation_ += !std::exchange(of(field).varies, true);
}

/// Memory of trees changes as they grow. A snapshot of what is older than the tape is a constant;
/// one of what launches have made since is refused, as its adjoints would be theirs.
bool Memories::varies(const runtime::Storage& field) {
  if (field.is_snapshot()) return field.version() > began_;
  return all_vary_ || field.tree() || of(field).varies;
}

std::vector<bool> Memories::inputs(const runtime::LaunchEvent& event, Fields& begun) {
  std::vector<bool> inputs(event.arguments.size(), false);
  bool any = false, makes_any = false;
  for (const auto& parameter : event.parameters)
    makes_any |= parameter.writes && has_floats(parameter);
  for (size_t k = 0; makes_any && k < inputs.size(); k++) {
    const auto& field = event.arguments[k].storage;
    inputs[k] = field && has_floats(event.parameters[k]) && varies(*field);
    any = any || inputs[k];
  }
  for (size_t k = 0; any && k < inputs.size(); k++) {
    const auto& field = event.arguments[k].storage;
    if (!field || !event.parameters[k].writes || !has_floats(event.parameters[k])) continue;
    inputs[k] = true;
    if (!varies(*field)) begun.push_back(field);
  }
  if (any) add_written(event);
  return inputs;
}

void Memories::add_written(const runtime::LaunchEvent& event) {
  for (size_t k = 0; k < event.arguments.size(); k++)
    if (event.arguments[k].storage && event.parameters[k].writes) add(*event.arguments[k].storage);
}

void Memories::refuse(const runtime::LaunchEvent& event, size_t k) {
  const Loc written = event.arguments[k].storage->written_at();
  const std::string at =
      written.line == 0 ? ""
                        : " at " + std::string(written.file) + ":" + std::to_string(written.line);
  throw Error(event.loc,
              event.parameters[k].name + " was written" + at +
                  ", between launches that a tape records, by the host or an algorithm "
                  "that moves elements: write it before the tape begins, or in a kernel");
}

void Memories::expect_known(const runtime::LaunchEvent& event) {
  for (size_t k = 0; k < event.arguments.size(); k++) {
    const auto& field = event.arguments[k].storage;
    if (field && !field->is_snapshot()) expect_known(of(*field), event, k);
  }
}

void Memories::note_written(const runtime::LaunchEvent& event) {
  for (size_t k = 0; k < event.arguments.size(); k++) {
    const auto& field = event.arguments[k].storage;
    if (!field || field->is_snapshot()) continue;
    KnownMemory& memory = of(*field);
    memory.version = field->version();
    if (event.parameters[k].writes) memory.turnover.writes();
  }
}

uint64_t Memories::kept(uint64_t n) const {
  uint64_t bytes = 0;
  for (const auto& [number, memory] : all_) bytes += memory.turnover.kept(n);
  return bytes;
}

}  // namespace quern::autodiff
