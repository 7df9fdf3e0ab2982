// A tape of launches.
#include <optional>
#include "autodiff/launches.h"
#include "dsl/recording.h"
#include "quern/autodiff.h"
#include "quern/runtime/observer.h"

namespace quern::detail {

/// Records each launch of a kernel, those of algorithms too.
struct TapeObject : Counted<TapeObject>, runtime::LaunchObserver {
  std::optional<runtime::Observation> observation;
  std::mutex mutex;
  /// By recording, which the entry keeps alive, so that no other takes its address.
  std::map<const ir::Kernel*,
           std::pair<std::shared_ptr<const ir::Kernel>, std::unique_ptr<autodiff::Reversed>>>
      kernels;
  std::vector<autodiff::Recorded> launches;
  Loc gone_back;

  void before(const runtime::LaunchEvent& event) override {
    if (!event.recording)
      throw Error(event.loc, "kernel '" + std::string(event.name) +
                                 "' was loaded without its recording, so a tape cannot go back "
                                 "through it");
    std::lock_guard lock(mutex);
    auto& [recording, reversed] = kernels[event.recording.get()];
    if (!reversed) {
      recording = event.recording;
      reversed = std::make_unique<autodiff::Reversed>(event.recording);
    }
    auto program = reversed->program(runtime::premises_of(event.arguments, event.modes));
    launches.emplace_back(std::move(program), event.arguments, event.loc);
  }
};

void retain(TapeObject* o) noexcept { o->references.fetch_add(1, std::memory_order_relaxed); }
void release(TapeObject* o) noexcept {
  if (o->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete o;
}

TapeObject* make_tape(Loc loc) {
  expect_no_recording("a tape", loc);
  auto object = std::make_unique<TapeObject>();
  object->observation.emplace(*object, runtime::Observation::kernels);
  return object.release();
}

void go_back(TapeObject* tape, Loc loc) {
  expect_no_recording("going back through a tape", loc);
  if (!tape) throw Error(loc, "this Tape is none: it was moved from");
  if (tape->gone_back.line)
    throw Error(loc, "the tape was gone back through already, at " + place(tape->gone_back));
  tape->gone_back = loc;
  tape->observation.reset();
  for (; !tape->launches.empty(); tape->launches.pop_back()) tape->launches.back().go_back({}, loc);
}

}  // namespace quern::detail
