#include "autodiff/recorded_launch.h"

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
    auto program =
        reversed_.program(*event.key, event.instead ? Augment::never : Augment::where_it_pays);
    SeenFields seen;
    recorded_.emplace(std::move(program), event.arguments, seen, event.loc);
    if (!recorded_->is_augmented()) return;
    recorded_->count_kept(event.loc);
    event.instead = this;
  }

  std::shared_ptr<runtime::Outcome> launch_instead(const runtime::LaunchEvent& event) override {
    return recorded_->augmented_launch(event.arguments, event.loc).run(event.loc);
  }

 private:
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
  {
    const Recorder recorder(reversed, recorded);
    made = detail::launch(*kernel.program, arguments, kernel.modes, loc);
  }
  recorded->was_launched();
  return made;
}

}  // namespace quern::autodiff
