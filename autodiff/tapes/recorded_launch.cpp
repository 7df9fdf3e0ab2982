#include "autodiff/tapes/recorded_launch.h"

#include <thread>

#include "quern/runtime/observer.h"

namespace quern::autodiff {

namespace {

/// Records one launch of this thread.
class Recorder final : public runtime::LaunchObserver {
 public:
  Recorder(Reversed& reversed, std::optional<Recorded>& recorded)
      : reversed_(reversed), recorded_(recorded), observation_(*this) {}

  void before(const runtime::LaunchEvent& event) override {
    if (std::this_thread::get_id() != by_) return;
    record(event, event.instead ? Augment::never : Augment::where_it_pays);
    if (recorded_->is_augmented()) event.instead = this;
  }

  std::shared_ptr<runtime::Outcome> launch_instead(const runtime::LaunchEvent& event) override {
    return recorded_->augmented_launch(event.arguments, event.loc).run(event.loc);
  }

 private:
  void record(const runtime::LaunchEvent& event, Augment augment) {
    auto program = reversed_.program(*event.key, augment);
    if (program->augmented) {
      const auto kept = program->kept_with(event.arguments, event.loc);
      if (!kept.pays || kept.bytes > most_kept_by_augmented)
        return record(event, program->less_augmented());
    }
    SeenFields seen;
    auto passed = seen.passed(program, event.arguments, event.loc);
    recorded_.emplace(std::move(passed), event.arguments, seen, event.loc);
  }

  Reversed& reversed_;
  std::optional<Recorded>& recorded_;
  const std::thread::id by_ = std::this_thread::get_id();
  const runtime::Observation observation_;
};

}  // namespace

detail::LaunchObject* launch_recorded(detail::KernelObject& kernel, Reversed& reversed,
                                      std::span<const runtime::Argument> arguments, Loc loc,
                                      std::optional<Recorded>& recorded) {
  detail::LaunchObject* made = nullptr;
  if (!runtime::LaunchCall::tells()) {  // an observer's own
    SeenFields seen;
    recorded.emplace(reversed.program(runtime::LaunchKey(arguments, kernel.modes), Augment::never),
                     arguments, seen, loc);
    made = detail::launch(*kernel.program, arguments, kernel.modes, loc);
  } else {
    const Recorder recorder(reversed, recorded);
    made = detail::launch(*kernel.program, arguments, kernel.modes, loc);
  }
  recorded->was_launched();
  return made;
}

}  // namespace quern::autodiff
