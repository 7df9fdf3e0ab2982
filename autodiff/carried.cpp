#include "autodiff/carried.h"

#include <algorithm>

#include "autodiff/forward.h"
#include "autodiff/reverse.h"
#include "quern/ir/lower.h"

namespace quern::autodiff {

namespace {

/// With so many boxes nobody looks which elements it is.
constexpr size_t most_boxes = 64;

bool holds(const std::vector<Box>& all, const Box& box) {
  return std::ranges::any_of(all, [&](const Box& b) { return b.holds(box); });
}

std::string place(Loc loc) {
  return loc.line ? " (at " + std::string(loc.file) + ":" + std::to_string(loc.line) + ")" : "";
}

/// Kernels begin by themselves what they keep beside a field, but for its derivatives.
bool is_kernels_own(const runtime::Image::Parameter& p) {
  return p.is_derived() && p.companion != adjoints && p.companion != tangents;
}

}  // namespace

Carried::Carried(std::span<const std::shared_ptr<runtime::Storage>> state) {
  for (const auto& field : state) state_.push_back(field->identity());
}

void Carried::begin_step() {
  for (auto& [identity, memory] : memories_) {
    memory.now.clear();
    memory.is_whole_now = false;
  }
}

Carried::Memory* Carried::of(const runtime::LaunchEvent& event, size_t k) {
  const auto& field = event.arguments[k].storage;
  if (!field || field->is_snapshot() || is_kernels_own(event.parameters[k])) return nullptr;
  const uint64_t identity = field->identity();
  if (std::ranges::find(state_, identity) != state_.end()) return nullptr;
  Memory& memory = memories_[identity];
  if (!memory.field) memory.field = field;
  return &memory;
}

void Carried::note(const runtime::LaunchEvent& event) {
  if (!event.recording) return note_algorithm(event);
  bool asks = false;
  for (size_t k = 0; k < event.arguments.size(); k++)
    if (const Memory* m = of(event, k))
      asks |= event.parameters[k].writes || m->is_written_anywhere || !m->written.empty();
  if (!asks) {
    for (size_t k = 0; k < event.arguments.size(); k++)
      if (Memory* m = of(event, k); m && event.parameters[k].reads) read(*m, event, k, {});
    return;
  }
  for (const Footprint& f : footprints(event)) {
    Memory* m = of(event, f.binding);
    if (!m) continue;
    f.writes ? write(*m, event, f) : read(*m, event, f.binding, f.loc);
  }
}

/// What it writes it writes whole, but for one that says how much.
void Carried::note_algorithm(const runtime::LaunchEvent& event) {
  for (size_t k = 0; k < event.arguments.size(); k++)
    if (Memory* m = of(event, k); m && event.parameters[k].reads) read(*m, event, k, {});
  for (size_t k = 0; k < event.arguments.size(); k++)
    if (Memory* m = of(event, k); m && event.parameters[k].writes) {
      write_anywhere(*m, event, k, {});
      m->is_whole_now |= event.name != "compact" && !event.arguments[k].storage->is_view();
    }
}

const std::vector<Footprint>& Carried::footprints(const runtime::LaunchEvent& event) {
  auto known = std::ranges::find_if(known_, [&](const Known& k) {
    return k.recording == event.recording && k.key == *event.key;
  });
  if (known == known_.end()) {
    Known made{event.recording, *event.key, ir::clone(*event.recording), {}, {}};
    ir::assume(*made.kernel, event.key->premises());
    ir::optimise(*made.kernel);
    known = known_.insert(known_.end(), std::move(made));
  }
  std::vector<uint64_t> arguments;
  for (const runtime::Argument& a : event.arguments)
    arguments.push_back(a.storage ? a.storage->number() : a.bits);
  if (known->arguments != arguments) {
    known->found = footprints_of(*known->kernel, event.arguments);
    known->arguments = std::move(arguments);
  }
  return known->found;
}

/// Has this step written every element of the whole field?
bool Carried::is_whole(const Memory& memory) {
  if (memory.is_whole_now) return true;
  if (memory.field->is_view()) return false;
  Box whole;
  for (uint32_t axis = 0; axis < memory.field->shape().size(); axis++) {
    const int64_t first = memory.field->first(axis);
    whole.axes.emplace_back(first, first + memory.field->shape()[axis]);
  }
  for (uint32_t c = 0; c < memory.field->components().size(); c++) {
    whole.component = c;
    if (!holds(memory.now, whole)) return false;
  }
  return true;
}

void Carried::read(Memory& memory, const runtime::LaunchEvent& event, size_t k, Loc at) {
  if (is_whole(memory)) return;
  const bool is_same = event.arguments[k].storage->number() == memory.field->number();
  const Boxes behind = is_same ? memory.now : Boxes();
  if (memory.is_written_anywhere ||
      !std::ranges::all_of(memory.written, [&](const Box& box) { return holds(behind, box); }))
    throw Error(event.loc,
                event.parameters[k].name + " is read here" + place(at) +
                    ", and steps have written elements of it that this one may not have written "
                    "before: it is part of what steps carry, so name it in state()");
  if (std::ranges::find(memory.read_behind, behind) == memory.read_behind.end())
    memory.read_behind.push_back(behind);
}

void Carried::write(Memory& memory, const runtime::LaunchEvent& event, const Footprint& how) {
  const runtime::Storage& field = *event.arguments[how.binding].storage;
  if (field.number() != memory.field->number() || memory.written.size() >= most_boxes) {
    write_anywhere(memory, event, how.binding, how.loc);
  } else {
    if (!std::ranges::all_of(memory.read_behind,
                             [&](const Boxes& behind) { return holds(behind, how.box); }))
      write_anywhere(memory, event, how.binding, how.loc);
    if (!holds(memory.written, how.box)) memory.written.push_back(how.box);
    if (how.always && !holds(memory.now, how.box)) memory.now.push_back(how.box);
  }
  // Which elements of a tree are there nobody asks.
  memory.is_whole_now |= field.tree() != nullptr;
}

void Carried::write_anywhere(Memory& memory, const runtime::LaunchEvent& event, size_t k, Loc at) {
  memory.is_written_anywhere = true;
  if (!memory.read_behind.empty())
    throw Error(event.loc, event.parameters[k].name + " is written here" + place(at) +
                               ", and a step has read what it held before: it is part of what "
                               "steps carry, so name it in state()");
}

std::vector<std::shared_ptr<runtime::Storage>> Carried::constants() const {
  std::vector<std::shared_ptr<runtime::Storage>> all;
  for (const auto& [identity, memory] : memories_)
    if (!memory.read_behind.empty()) all.push_back(memory.field);
  return all;
}

}  // namespace quern::autodiff
