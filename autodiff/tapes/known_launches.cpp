#include "autodiff/tapes/known_launches.h"

namespace quern::autodiff {

bool KnownLaunch::varies_alike(const Memories& memories) {
  if (variation == memories.variation()) return true;
  for (const Argument& a : arguments)
    if (a.memory && a.memory->varies != a.varied) return false;
  variation = memories.variation();
  return true;
}

void KnownLaunch::expect_known(const runtime::LaunchEvent& event) const {
  for (size_t k = 0; k < arguments.size(); k++)
    if (arguments[k].memory) Memories::expect_known(*arguments[k].memory, event, k);
}

void KnownLaunch::pass(const runtime::LaunchEvent& event, SeenFields& seen, Memories& memories) {
  const bool are_same_fields = passed && !arguments.empty();
  if (are_same_fields && passed->holds_same_memory()) return;
  passed = seen.passed(program, event.arguments, event.loc);
  wanted.clear();
  wanted.reserve(passed->snapshots.size());
  for (const auto& snapshot : passed->snapshots)
    wanted.push_back({&memories.of(*snapshot.of), snapshot.of->bytes()});
}

KnownLaunch& KnownLaunch::less_augmented(const runtime::LaunchEvent& event) {
  if (!less) {
    less = std::make_unique<KnownLaunch>();
    less->arguments = arguments;
    less->reversed = reversed;
    less->program = reversed->program(*event.key, program->less_augmented());
  }
  return *less;
}

void KnownLaunch::note_wanted(std::span<const runtime::Storage::Contents> contents) const {
  for (size_t k = 0; k < contents.size(); k++) {
    const auto& [memory, of_field] = wanted[k];
    const uint64_t bytes = contents[k].bytes();
    if (bytes == 0)
      memory->turnover.wants(of_field, Turnover::when_overwritten);
    else if (passed->snapshots[k].of->has(contents[k]))
      memory->turnover.wants(bytes, Turnover::when_recorded);
    else
      memory->turnover.copies(bytes);
  }
}

/// But for the first time, what it only reads has the version that it was expected to have.
void KnownLaunch::note_written(const runtime::LaunchEvent& event) {
  for (size_t k = 0; k < arguments.size() && !has_been; k++)
    if (arguments[k].memory) arguments[k].memory->version = event.arguments[k].storage->version();
  has_been = true;
  for (uint32_t k : written) {
    KnownMemory& memory = *arguments[k].memory;
    memory.version = event.arguments[k].storage->version();
    memory.turnover.writes();
  }
}

KnownLaunch* KnownLaunches::find(const runtime::LaunchEvent& event,
                                 const Memories& memories) const {
  if (event.same == runtime::other_arguments) return nullptr;
  const auto known = all_.find(event.same);
  return known != all_.end() && known->second->varies_alike(memories) ? known->second : nullptr;
}

std::unique_ptr<KnownLaunch> KnownLaunches::make(const runtime::LaunchEvent& event,
                                                 Memories& memories) {
  auto made = std::make_unique<KnownLaunch>();
  for (const runtime::Argument& a : event.arguments)
    if (a.storage && (a.storage->tree() || a.storage->is_snapshot())) return made;
  made->arguments.reserve(event.arguments.size());
  for (size_t k = 0; k < event.arguments.size(); k++) {
    KnownLaunch::Argument& a = made->arguments.emplace_back();
    if (!event.arguments[k].storage) continue;
    a.memory = &memories.of(*event.arguments[k].storage);
    if (event.parameters[k].writes) made->written.push_back(uint32_t(k));
    a.varied = a.memory->varies;
  }
  return made;
}

KnownLaunch& KnownLaunches::add(std::unique_ptr<KnownLaunch>& launch,
                                const runtime::LaunchEvent& event) {
  KnownLaunch& known = *launch;
  if (event.same == runtime::other_arguments || known.arguments.empty()) return known;
  all_[event.same] = added_.emplace_back(std::move(launch)).get();
  return known;
}

}  // namespace quern::autodiff
