#include "autodiff/tapes/carried.h"

#include <algorithm>

#include "autodiff/forward/forward.h"
#include "autodiff/reverse/reverse.h"
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

std::string advice(bool is_on_tree) {
  if (!is_on_tree) return "name it in state()";
  return "begin each step by a loop over it that ends all elements, in a with_pullback() that does "
         "nothing going back, or use a field on no tree";
}

std::string name_of(const runtime::LaunchEvent& event, size_t k) {
  const std::string& name = event.parameters[k].name;
  return name.empty() ? "a field of " + std::string(event.name) : name;
}

/// Kernels begin by themselves what they keep beside a field, but for its derivatives.
bool is_kernels_own(const runtime::Image::Parameter& p) {
  return p.is_derived() && p.companion != adjoints && p.companion != tangents;
}

}  // namespace

Carried::Carried(std::span<const std::shared_ptr<runtime::Storage>> state)
    : state_(state.begin(), state.end()) {
  for (const auto& field : state_) identities_[field->number()] = field->identity();
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
  if (identities_.emplace(field->number(), identity).first->second != identity)
    throw Error(event.loc,
                name_of(event, k) +
                    " was swapped since steps() began, which steps that are run again do "
                    "not undo: give the kernel both fields, in turns");
  if (std::ranges::find(state_, identity, &runtime::Storage::identity) != state_.end())
    return nullptr;
  const void* const tree = field->tree();
  Memory& memory = memories_[{tree, tree ? 0 : identity}];
  if (!memory.field) memory.field = field;
  const auto is_field = [&](const auto& known) { return known->identity() == identity; };
  if (tree && !is_field(memory.field) && std::ranges::none_of(memory.others, is_field))
    memory.others.push_back(field);
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
      if (Memory* m = of(event, k); m && (event.parameters[k].reads || m->field->tree()))
        read(*m, event, k, {});
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
      m->is_whole_now |= event.name != "compact" && !event.arguments[k].storage->is_view() &&
                         !event.arguments[k].storage->tree();
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
                name_of(event, k) + " is read here" + place(at) +
                    ", and steps have written elements of it that this one may not have written "
                    "before: it is part of what steps carry, so " +
                    advice(memory.field->tree()));
  if (std::ranges::find(memory.read_behind, behind) == memory.read_behind.end())
    memory.read_behind.push_back(behind);
}

void Carried::write(Memory& memory, const runtime::LaunchEvent& event, const Footprint& how) {
  if (how.clears) {
    if (!is_whole(memory)) write_anywhere(memory, event, how.binding, how.loc);
    memory.is_whole_now = true;
    return;
  }
  const runtime::Storage& field = *event.arguments[how.binding].storage;
  const bool is_same = field.number() == memory.field->number() && !field.tree();
  const bool is_held = is_same && holds(memory.written, how.box);
  const bool is_where_none_read = std::ranges::all_of(
      memory.read_behind, [&](const Boxes& behind) { return holds(behind, how.box); });
  if (!is_same || !is_where_none_read || (!is_held && memory.written.size() >= most_boxes))
    write_anywhere(memory, event, how.binding, how.loc);
  if (!is_same) return;
  if (!is_held && memory.written.size() < most_boxes) memory.written.push_back(how.box);
  if (how.always && !holds(memory.now, how.box)) memory.now.push_back(how.box);
}

void Carried::write_anywhere(Memory& memory, const runtime::LaunchEvent& event, size_t k, Loc at) {
  memory.is_written_anywhere = true;
  if (!memory.read_behind.empty())
    throw Error(event.loc, name_of(event, k) + " is written here" + place(at) +
                               ", and a step has read what it held before: it is part of what "
                               "steps carry, so " +
                               advice(memory.field->tree()));
}

std::vector<std::shared_ptr<runtime::Storage>> Carried::constants(Loc loc) const {
  std::vector<std::shared_ptr<runtime::Storage>> all;
  std::vector<uint64_t> of_adjoints;
  const auto note = [&](const runtime::Storage& field) {
    if (const auto companion = field.known_companion(adjoints))
      of_adjoints.push_back(companion->identity());
  };
  for (const auto& field : state_) note(*field);
  for (const auto& [key, memory] : memories_) note(*memory.field);
  for (const auto& [key, memory] : memories_) {
    if (memory.read_behind.empty()) continue;
    if (std::ranges::find(of_adjoints, memory.field->identity()) != of_adjoints.end())
      throw Error(loc,
                  "steps() read the grad() of a field that they use, which changes as the tape "
                  "goes back: give them a field with the same elements");
    all.push_back(memory.field);
    all.insert(all.end(), memory.others.begin(), memory.others.end());
  }
  return all;
}

}  // namespace quern::autodiff
