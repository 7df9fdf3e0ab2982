// A tape of launches.
#include <algorithm>
#include <optional>
#include <thread>

#include "autodiff/activity.h"
#include "autodiff/launches.h"
#include "autodiff/tape.h"
#include "dsl/recording.h"
#include "quern/autodiff.h"
#include "quern/runtime/observer.h"

namespace quern::detail {

/// Records each launch of a kernel, those of algorithms too.
struct TapeObject : Counted<TapeObject>, runtime::LaunchObserver {
  std::optional<runtime::Observation> observation;
  std::mutex mutex;
  struct Entry {
    std::function<void(Loc)> go_back;
    std::thread::id by;
    bool is_submitted = false;  ///< else its call threw, and nothing ran
    std::shared_ptr<autodiff::Recorded> launch = {};
  };
  std::vector<Entry> launches;  ///< and parts of the program, as entries of theirs
  std::thread::id paused;
  Loc gone_back;
  std::map<const runtime::Uses*, uint64_t> versions;  ///< of memory, behind the last launch

  /// What nobody recorded cannot be gone back through.
  void expect_known(const runtime::LaunchEvent& event, size_t k) const {
    const auto& storage = event.arguments[k].storage;
    if (!storage || storage->is_snapshot()) return;
    const auto known = versions.find(&storage->uses());
    if (known != versions.end() && known->second != storage->version())
      throw Error(event.loc, event.parameters[k].name +
                                 " was written between launches that a tape records, by the host "
                                 "or an algorithm that moves elements: write it before the tape "
                                 "begins, or in a kernel");
  }

  /// What goes back is not gone back through.
  static void expect_forward(const runtime::LaunchEvent& event) {
    for (size_t k = 0; k < event.parameters.size(); k++)
      if (event.parameters[k].is_derived() && event.parameters[k].companion == autodiff::adjoints)
        throw Error(event.loc, "a launch of '" + std::string(event.name) +
                                   "', which goes back, cannot be recorded by a tape: end the "
                                   "tape before it");
  }

  /// The same kernel, to which companions are passed like other fields: a launch event has them.
  /// Its accesses are those of the launch, which has checked them if it was to.
  static std::shared_ptr<const ir::Kernel> all_passed(
      const std::shared_ptr<const ir::Kernel>& recording) {
    const auto is_derived = [](const ir::Binding& b) { return b.is_derived(); };
    if (std::ranges::none_of(recording->bindings, is_derived)) return recording;
    std::shared_ptr<ir::Kernel> made = ir::clone(*recording);
    for (ir::Binding& b : made->bindings) b.of = ir::Binding::not_derived;
    ir::walk(made->body, [](ir::Inst* inst) {
      if (!inst->is(ir::Op::check) && !inst->is(ir::Op::print)) inst->site = ir::no_site;
    });
    return made;
  }

  void after(const runtime::LaunchEvent& event) noexcept override {
    std::lock_guard lock(mutex);
    const auto last = std::ranges::find(launches.rbegin(), launches.rend(),
                                        std::this_thread::get_id(), &Entry::by);
    if (last != launches.rend() && paused != last->by && last->launch) {
      last->is_submitted = true;
      last->launch->was_launched();
    }
    for (const runtime::Argument& a : event.arguments)
      if (a.storage && !a.storage->is_snapshot())
        versions[&a.storage->uses()] = a.storage->version();
  }

  void before(const runtime::LaunchEvent& event) override {
    if (!event.recording)
      throw Error(event.loc, "kernel '" + std::string(event.name) +
                                 "' was loaded without its recording, so a tape cannot go back "
                                 "through it");
    expect_forward(event);
    std::lock_guard lock(mutex);
    for (size_t k = 0; k < event.arguments.size(); k++) expect_known(event, k);
    if (paused == std::this_thread::get_id()) return;
    const auto reversed = event.attached->get<autodiff::Reversed>([&] {
      return std::make_shared<autodiff::Reversed>(all_passed(event.recording),
                                                  autodiff::inputs_of(*event.recording));
    });
    auto program = reversed->program(runtime::premises_of(event.arguments, event.modes));
    const auto launch =
        std::make_shared<autodiff::Recorded>(std::move(program), event.arguments, event.loc);
    launches.push_back(
        {[launch](Loc loc) { launch->go_back({}, loc); }, std::this_thread::get_id(), false, launch});
  }
};

void retain(TapeObject* o) noexcept { add_reference(o); }
void release(TapeObject* o) noexcept { drop_reference(o); }

Pause::Pause(TapeObject* tape) : tape_(tape) {
  std::lock_guard lock(tape->mutex);
  tape->paused = std::this_thread::get_id();
}
Pause::~Pause() {
  std::lock_guard lock(tape_->mutex);
  tape_->paused = {};
}

void add_part(TapeObject* tape, std::function<void(Loc)> go_back) {
  std::lock_guard lock(tape->mutex);
  tape->launches.push_back({std::move(go_back), std::this_thread::get_id(), true});
}

TapeObject* make_tape(Loc loc) {
  expect_no_recording("a tape", loc);
  auto object = std::make_unique<TapeObject>();
  object->observation.emplace(*object, runtime::Observation::kernels);
  return object.release();
}

void expect_recording(TapeObject* tape, Loc loc) {
  if (!tape) throw Error(loc, "this Tape is none: it was moved from");
  if (tape->gone_back.line)
    throw Error(loc, "the tape was gone back through already, at " + place(tape->gone_back));
}

void go_back(TapeObject* tape, Loc loc) {
  expect_no_recording("going back through a tape", loc);
  expect_recording(tape, loc);
  tape->gone_back = loc;
  tape->observation.reset();
  for (; !tape->launches.empty(); tape->launches.pop_back())
    if (tape->launches.back().is_submitted) tape->launches.back().go_back(loc);
}

}  // namespace quern::detail
