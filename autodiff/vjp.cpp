// Launches that are gone back through one by one, behind their handles.
#include "autodiff/differentiable.h"
#include "autodiff/primal/activity.h"
#include "autodiff/tapes/recorded_launch.h"
#include "dsl/recording.h"
#include "quern/autodiff.h"

namespace quern::detail {

struct ReverseObject : Counted<ReverseObject> {
  Ref<KernelObject> kernel;
  std::shared_ptr<autodiff::Reversed> reversed;
};

struct PullbackObject : Counted<PullbackObject> {
  std::optional<autodiff::Recorded> recorded;
  Ref<LaunchObject> launch;
};

void retain(ReverseObject* o) noexcept { add_reference(o); }
void release(ReverseObject* o) noexcept { drop_reference(o); }
void retain(PullbackObject* o) noexcept { add_reference(o); }
void release(PullbackObject* o) noexcept { drop_reference(o); }

ReverseObject* make_reverse(KernelObject* kernel, Loc loc) {
  const ir::Kernel& primal = expect_differentiable(kernel, loc);
  auto object = std::make_unique<ReverseObject>();
  retain(kernel);
  object->kernel = Ref<KernelObject>(kernel);
  // The handle keeps the kernel, and that its recording.
  object->reversed = autodiff::ReversedByInputs::of(kernel->program->attached())
                         ->by(std::shared_ptr<const ir::Kernel>(std::shared_ptr<void>(), &primal),
                              autodiff::inputs_of(primal));
  return object.release();
}

PullbackObject* launch_recorded(ReverseObject* reverse, const Argument* arguments, int count,
                                Loc loc) {
  if (!reverse) throw Error(loc, "this Vjp holds no kernel: it was moved from");
  KernelObject* kernel = reverse->kernel.get();
  const std::vector<runtime::Argument> all =
      launch_arguments({arguments, size_t(count)}, kernel->captured, loc);
  auto object = std::make_unique<PullbackObject>();
  object->launch = Ref<LaunchObject>(
      autodiff::launch_recorded(*kernel, *reverse->reversed, all, loc, object->recorded));
  return object.release();
}

LaunchObject* recorded_launch(PullbackObject* pullback) {
  LaunchObject* launch = pullback->launch.get();
  if (launch) retain(launch);
  return launch;
}

LaunchObject* go_back(PullbackObject* pullback, const uint64_t* seeds, int count, Loc loc) {
  expect_no_recording("going back through a launch", loc);
  if (!pullback) throw Error(loc, "this Pullback holds no launch: it was moved from");
  auto outcome = pullback->recorded->go_back({seeds, size_t(count)}, loc);
  if (!outcome) return nullptr;
  auto object = std::make_unique<LaunchObject>();
  object->outcome = std::move(outcome);
  return object.release();
}

}  // namespace quern::detail
