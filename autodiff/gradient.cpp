// Gradients of launches, behind their handles.
#include <algorithm>
#include <mutex>

#include "autodiff/differentiable.h"
#include "autodiff/primal/activity.h"
#include "autodiff/tapes/recorded_launch.h"
#include "dsl/recording.h"
#include "quern/autodiff.h"

namespace quern::detail {

struct GradientObject : Counted<GradientObject> {
  Ref<KernelObject> kernel;
  std::shared_ptr<autodiff::Reversed> reversed;
  std::mutex mutex;  ///< guards `last`
  /// What the last launch passed that yielded its value itself, where it took no snapshot and all
  /// its fields are the kernel's own: those passed by the user are not kept.
  std::shared_ptr<autodiff::Passed> last;

  /// What a launch with these arguments passes to `program`, which yields its value.
  std::shared_ptr<autodiff::Passed> passed(
      const std::shared_ptr<autodiff::Reversed::Program>& program,
      std::span<const runtime::Argument> arguments, size_t given, autodiff::SeenFields& seen,
      Loc loc) {
    const auto is_field = [](const runtime::Argument& a) { return a.storage != nullptr; };
    if (std::ranges::any_of(arguments.first(given), is_field))
      return seen.passed(program, arguments, loc);
    std::lock_guard lock(mutex);
    if (last && last->is_for(*program, arguments)) return last;
    auto made = seen.passed(program, arguments, loc);
    last = made->snapshots.empty() ? made : nullptr;
    return made;
  }
};

void retain(GradientObject* o) noexcept { add_reference(o); }
void release(GradientObject* o) noexcept { drop_reference(o); }

namespace {

/// Fields that are read, and scalars: each of them has its derivative, be it 0.
std::vector<bool> read_by(const ir::Kernel& kernel) {
  std::vector<bool> read;
  for (const ir::Binding& b : kernel.bindings) read.push_back(b.kind == ir::Binding::scalar);
  ir::walk(kernel.body, [&](const ir::Inst* inst) {
    const bool is_load =
        inst->is(ir::Op::load) ||
        (inst->is(ir::Op::atomic) && (inst->used() || inst->atomic() == ir::AtomicOp::load));
    if (is_load) read[inst->binding()] = true;
  });
  return read;
}

std::vector<bool> inputs_among(const KernelObject& kernel, const Inputs& inputs, Loc loc) {
  const ir::Kernel& primal = kernel.program->kernel();
  std::vector<bool> chosen(primal.bindings.size(), false);
  if (inputs.all) {
    chosen = read_by(primal);
  } else {
    const auto first = size_t(inputs.argument_count);
    for (size_t k = 0; k < first; k++) chosen[k] = inputs.arguments[k];
    for (int n = 0; n < inputs.captured_count; n++) {
      const FieldObject* wanted = inputs.captured[n].get();
      bool is_captured = false;
      for (size_t k = 0; k < kernel.captured.size(); k++) {
        const FieldObject* here = kernel.captured[k].get();
        is_captured = is_captured || here->storage == wanted->storage;
        if (wanted->storage && here->storage->overlaps(*wanted->storage)) chosen[first + k] = true;
      }
      if (!is_captured || !wanted->storage)
        throw Error(loc, "field number " + std::to_string(n) +
                             " of wrt() is none that the kernel captures: fields that it is passed "
                             "are chosen by the number of the parameter");
    }
  }
  for (size_t k = 0; k < chosen.size(); k++)
    if (!autodiff::has_floats(primal.bindings[k])) chosen[k] = false;
  return chosen;
}

LaunchObject* object_of(std::shared_ptr<runtime::Outcome> outcome, size_t first = 0) {
  if (!outcome) return nullptr;
  auto object = std::make_unique<LaunchObject>();
  object->outcome = std::move(outcome);
  object->first = first;
  return object.release();
}

}  // namespace

GradientObject* make_gradient(KernelObject* kernel, const Inputs& inputs, bool second, Loc loc) {
  const ir::Kernel& primal = expect_differentiable(kernel, loc);
  auto object = std::make_unique<GradientObject>();
  // The handle keeps the kernel, and that its recording.
  object->reversed =
      autodiff::ReversedByInputs::of(kernel->program->attached())
          ->by(std::shared_ptr<const ir::Kernel>(std::shared_ptr<void>(), &primal),
               inputs_among(*kernel, inputs, loc),
               second ? autodiff::Reversed::second : autodiff::Reversed::with_values);
  retain(kernel);
  object->kernel = Ref<KernelObject>(kernel);
  return object.release();
}

GradientLaunches launch_gradient(GradientObject* gradient, const Argument* arguments,
                                 const uint64_t* tangents, int count, Loc loc) {
  if (!gradient) throw Error(loc, "this gradient holds no kernel: it was moved from");
  KernelObject* kernel = gradient->kernel.get();
  const std::vector<runtime::Argument> all =
      launch_arguments({arguments, size_t(count)}, kernel->captured, loc);
  auto program = gradient->reversed->program(runtime::LaunchKey(all, kernel->modes),
                                             autodiff::Augment::where_it_pays);
  std::optional<autodiff::Recorded> launched;
  Ref<LaunchObject> value;
  if (program->reverse.yields_values) {
    autodiff::SeenFields seen;
    launched.emplace(gradient->passed(program, all, size_t(count), seen, loc), all, seen, loc);
  } else {
    value = Ref<LaunchObject>(
        autodiff::launch_recorded(*kernel, *gradient->reversed, all, loc, launched));
  }
  const autodiff::Recorded& recorded = *launched;
  recorded.clear_adjoints(loc);
  const ir::Type type = ir::derivative_type(kernel->program->kernel().results[0]);
  const uint64_t seed = ir::bits_of_real(1, type);
  std::vector<uint64_t> directions;
  if (tangents)
    for (uint32_t scalar : recorded.scalars()) directions.push_back(tangents[scalar]);
  const auto outcome = recorded.go_back({&seed, 1}, loc, directions);
  if (recorded.yields_values()) return {object_of(outcome), object_of(outcome, 1)};
  LaunchObject* derivatives = object_of(outcome);
  retain(value.get());
  return {value.get(), derivatives};
}

}  // namespace quern::detail
