#include "autodiff/known_launches.h"

#include <algorithm>

namespace quern::autodiff {

namespace {
/// Of one kernel's, that are looked for: fields that take turns are two or three.
constexpr size_t most_of_kernel = 4;
}  // namespace

bool KnownLaunch::is(const runtime::LaunchEvent& event) const {
  if (modes != event.modes || arguments.size() != event.arguments.size()) return false;
  for (size_t k = 0; k < arguments.size(); k++) {
    const Argument& a = arguments[k];
    if (a.storage != event.arguments[k].storage) return false;
    if (!a.storage) continue;
    if (a.storage->memory_number() != a.number || a.memory->varies != a.varied) return false;
  }
  return true;
}

void KnownLaunch::expect_known(const runtime::LaunchEvent& event) const {
  for (size_t k = 0; k < arguments.size(); k++)
    if (arguments[k].storage) Memories::expect_known(*arguments[k].memory, event, k);
}

void KnownLaunch::pass(const runtime::LaunchEvent& event, SeenFields& seen, Memories& memories) {
  const bool are_same_fields = passed && !arguments.empty();
  if (are_same_fields && passed->has_same_adjoints()) return;
  passed = seen.passed(program, event.arguments, event.loc);
  wanted.clear();
  for (const auto& snapshot : passed->snapshots)
    wanted.push_back(&memories.of(*snapshot.of->storage));
}

void KnownLaunch::note_wanted(std::span<const runtime::Storage::Contents> contents) const {
  for (size_t k = 0; k < contents.size(); k++) {
    const runtime::Storage& field = *passed->snapshots[k].of->storage;
    const uint64_t bytes = contents[k].bytes();
    if (bytes == 0)
      wanted[k]->turnover.wants(field.bytes(), Turnover::when_overwritten);
    else if (field.has(contents[k]))
      wanted[k]->turnover.wants(bytes, Turnover::when_recorded);
    else
      wanted[k]->turnover.copies(bytes);
  }
}

void KnownLaunch::note_written() const {
  for (const Argument& a : arguments) {
    if (!a.storage) continue;
    a.memory->version = a.storage->version();
    if (a.writes) a.memory->turnover.writes();
  }
}

KnownLaunch* KnownLaunches::find(const runtime::LaunchEvent& event) const {
  const auto of_kernel = all_.find(event.recording.get());
  if (of_kernel == all_.end()) return nullptr;
  for (KnownLaunch* launch : of_kernel->second)
    if (launch->is(event)) return launch;
  return nullptr;
}

KnownLaunch& KnownLaunches::make(const runtime::LaunchEvent& event, Memories& memories) {
  KnownLaunch& made = *made_.emplace_back(std::make_unique<KnownLaunch>());
  made.recording = event.recording;
  made.modes = event.modes;
  for (const runtime::Argument& a : event.arguments)
    if (a.storage && (a.storage->tree() || a.storage->is_snapshot())) return made;
  for (size_t k = 0; k < event.arguments.size(); k++) {
    KnownLaunch::Argument& a = made.arguments.emplace_back();
    a.storage = event.arguments[k].storage;
    if (!a.storage) continue;
    a.number = a.storage->memory_number();
    a.memory = &memories.of(*a.storage);
    a.writes = event.parameters[k].writes;
    a.varied = a.memory->varies;
  }
  return made;
}

void KnownLaunches::add(KnownLaunch& launch) {
  auto& of_kernel = all_[launch.recording.get()];
  if (of_kernel.size() == most_of_kernel) of_kernel.pop_back();
  of_kernel.insert(of_kernel.begin(), &launch);
}

}  // namespace quern::autodiff
