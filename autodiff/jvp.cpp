// Kernels run forward, behind their handle.
#include "autodiff/differentiable.h"
#include "autodiff/forward/forward.h"
#include "dsl/recording.h"
#include "quern/autodiff.h"

namespace quern::detail {

struct ForwardObject : Counted<ForwardObject> {
  std::unique_ptr<runtime::Program> program;
  ir::Modes modes;
  std::vector<Ref<FieldObject>> captured;
  std::vector<uint32_t> tangent_of;  ///< autodiff::Forward::tangent_of
  std::vector<std::pair<uint32_t, uint32_t>> distinct;
  std::vector<uint32_t> not_on_trees;
  std::shared_ptr<const autodiff::Races> races;
};

void retain(ForwardObject* o) noexcept { add_reference(o); }
void release(ForwardObject* o) noexcept { drop_reference(o); }

ForwardObject* make_forward(KernelObject* kernel, bool fields, Loc loc) {
  const ir::Kernel& primal = expect_differentiable(kernel, loc);
  autodiff::Directions directions = autodiff::all_directions(primal);
  for (size_t k = 0; k < directions.of.size(); k++)
    if (!fields && primal.bindings[k].kind == ir::Binding::field) directions.of[k] = ir::no_binding;
  autodiff::Forward forward = autodiff::forward(primal, kernel->modes, directions);
  auto object = std::make_unique<ForwardObject>();
  object->program = std::make_unique<runtime::Program>(std::move(forward.kernel));
  object->modes = kernel->modes;
  object->captured = kernel->captured;
  object->tangent_of = std::move(forward.tangent_of);
  object->distinct = std::move(forward.distinct);
  object->not_on_trees = std::move(forward.not_on_trees);
  object->races = std::move(forward.races);
  return object.release();
}

namespace {
void expect_distinct(const ForwardObject& forward, std::span<const runtime::Argument> arguments,
                     Loc loc) {
  const std::vector<uint32_t> classes =
      runtime::premises_of(arguments, forward.modes).alias_classes;
  const std::vector<ir::Binding>& bindings = forward.program->kernel().bindings;
  for (const auto& [a, b] : forward.distinct)
    if (a < classes.size() && b < classes.size() && classes[a] == classes[b])
      throw Error(loc, bindings[a].name + " and " + bindings[b].name +
                           " overlap, and iterations combine elements of one of them by min, "
                           "max or products: what runs forward takes fields that do not");
}

void expect_not_on_trees(const ForwardObject& forward, std::span<const runtime::Argument> arguments,
                         Loc loc) {
  for (uint32_t k : forward.not_on_trees)
    if (k < arguments.size() && arguments[k].storage && arguments[k].storage->tree())
      throw Error(loc, forward.program->kernel().bindings[k].name +
                           " is on a tree, and is changed by a kernel whose iterations combine "
                           "floats by min, max or products: combine them in another kernel");
}
}  // namespace

LaunchObject* launch_forward(ForwardObject* forward, const Argument* arguments,
                             const uint64_t* tangents, int count, Loc loc) {
  if (!forward) throw Error(loc, "this Jvp holds no kernel: it was moved from");
  std::vector<runtime::Argument> all =
      launch_arguments({arguments, size_t(count)}, forward->captured, loc);
  if (!forward->distinct.empty()) expect_distinct(*forward, all, loc);
  expect_not_on_trees(*forward, all, loc);
  if (forward->races) forward->races->expect_none(all);
  for (size_t k = 0; k < forward->tangent_of.size(); k++)
    if (forward->tangent_of[k] != ir::no_binding) all.push_back({tangents[k], nullptr});
  return launch(*forward->program, all, forward->modes, loc);
}

}  // namespace quern::detail
