#include "autodiff/tapes/reversed.h"

#include <algorithm>

#include "autodiff/forward/forward.h"
#include "autodiff/primal/activity.h"
#include "autodiff/reverse/at_once.h"
#include "autodiff/tapes/kept_fields.h"
#include "autodiff/tapes/passed.h"

namespace quern::autodiff {

namespace {
bool is_used(const Log& log, size_t field) {
  return log.sizes && log.fields[field].rule != LogField::unused;
}

/// The bindings of fields that companions are looked up by.
std::vector<uint32_t> looked_up_by(const Reverse& reverse) {
  std::vector<uint32_t> all;
  for (uint32_t field : reverse.fields)
    if (field != ir::no_binding) all.push_back(field);
  const uint32_t first_lent = reverse.first_lent;
  for (uint32_t k = 0; k < reverse.lent.size(); k++) all.push_back(first_lent + k);
  return all;
}

/// Of the primal's inputs, of adjoints, and of what loops carry and the log keeps. Fields' tangents
/// stand with the fields themselves: their snapshots have none.
Directions directions_of(const Reverse& reverse) {
  Directions made = all_directions(*reverse.kernel);
  made.is_without_races = true;
  const size_t primal = reverse.fields.size();
  for (size_t k = 0; k < primal; k++) made.of[k] = reverse.fields[k];
  for (uint32_t field : looked_up_by(reverse)) made.of[field] = ir::no_binding;
  for (uint32_t scalar : reverse.scalars) made.of[scalar] = scalar;
  for (size_t k = 0; k < reverse.logged; k++)
    if (!is_used(reverse.log, k)) made.of[primal + k] = ir::no_binding;
  for (size_t k = primal; k < made.of.size(); k++)
    if (reverse.kernel->bindings[k].kind == ir::Binding::scalar) made.of[k] = ir::no_binding;
  return made;
}

/// The kernel that records the log keeps tangents too. Those of fields are passed to it, as it
/// writes to copies of them, and of scratch that varies.
void record_tangents(Reversed::Program& made) {
  ir::Kernel& record = *made.reverse.log.record;
  Directions directions = all_directions(record);
  directions.is_taken_apart = directions.is_without_races = true;
  const std::vector<Scratch>& scratch = made.reverse.scratch;
  const size_t first_scratch = made.reverse.fields.size() - scratch.size();
  for (uint32_t k = 0; k < made.reverse.fields.size(); k++) {
    const bool varies = k < first_scratch ? made.reverse.fields[k] != ir::no_binding
                                          : scratch[k - first_scratch].varies;
    if (!varies) directions.of[k] = ir::no_binding;
  }
  for (uint32_t scalar : made.reverse.scalars) directions.of[scalar] = scalar;
  for (size_t k = 0; k < made.reverse.logged; k++)
    if (!is_used(made.reverse.log, k))
      directions.of[made.reverse.fields.size() + k] = ir::no_binding;
  for (uint32_t k = 0; k < directions.of.size(); k++)
    if (directions.of[k] != ir::no_binding && record.bindings[k].kind == ir::Binding::field)
      made.log_tangents.push_back(k);
  made.reverse.log.record = forward(record, record.modes, directions).kernel;
  for (ir::Binding& b : made.reverse.log.record->bindings) b.of = ir::Binding::not_derived;
}

void run_forward(Reversed::Program& made) {
  made.second = true;
  const ir::Kernel& first = *made.reverse.kernel;
  made.reverse.kernel = forward(first, first.modes, directions_of(made.reverse)).kernel;
  if (made.reverse.log.record) record_tangents(made);
}

/// Is what the launch of the reverse kernel passes known when the primal's is recorded?
bool is_known_before(const Reversed::Program& made) {
  return !made.second && made.reverse.logged == 0 && !made.reverse.count && !made.reverse.augmented;
}

PassedCompanions pass_all_to(Reverse& reverse) {
  return pass_companions(*reverse.kernel, looked_up_by(reverse));
}

std::optional<PassedCompanions> pass_all_at_once(Augmented& augmented) {
  if (!augmented.at_once) return {};
  return pass_companions(*augmented.kernel, augmented.at_once->looked_up_by);
}

}  // namespace

std::shared_ptr<Reversed::Program> Reversed::program(const runtime::LaunchKey& key,
                                                     Augment augment) {
  std::lock_guard lock(mutex_);
  const std::vector<runtime::LaunchKey::OnTree> trees = key.trees();
  for (const Known& known : programs_)
    if (known.augment == augment && key.has(known.premises) && known.trees == trees)
      return known.program;
  const ir::Premises premises = key.premises();
  auto made = std::make_shared<Program>();
  made->passed_before = std::make_shared<PassedBefore>();
  made->reverse =
      reverse(*primal_, premises, inputs_, trees, kind_ == with_values, kind_ == second, augment);
  if (kind_ == second) run_forward(*made);
  if (is_known_before(*made)) made->passed = pass_all_to(made->reverse);
  const auto program_of = [](std::unique_ptr<ir::Kernel>& kernel) {
    return kernel ? std::make_unique<runtime::Program>(std::move(kernel)) : nullptr;
  };
  for (const auto* kernel :
       {&made->reverse.count, &made->reverse.log.sizes, &made->reverse.log.count})
    made->counts_by_data |= *kernel && depends_on_data(**kernel);
  if (made->reverse.augmented) {
    made->passed_at_once = pass_all_at_once(made->reverse.augmented);
    const ir::Kernel& count = *made->reverse.augmented.count;
    made->augmented_by_data = depends_on_data(*made->reverse.augmented.count);
    ir::walk(count.body, [&](const ir::Inst* inst) {
      if (inst->is(ir::Op::param)) made->augmented_by.push_back(inst->binding());
    });
  }
  made->program = program_of(made->reverse.kernel);
  made->count = program_of(made->reverse.count);
  made->log_sizes = program_of(made->reverse.log.sizes);
  made->log_count = program_of(made->reverse.log.count);
  made->log_record = program_of(made->reverse.log.record);
  made->augmented_count = program_of(made->reverse.augmented.count);
  made->augmented = program_of(made->reverse.augmented.kernel);
  programs_.push_back({premises, trees, augment, made});
  return made;
}

namespace {
/// The same kernel, to which companions are passed like other fields: a launch event has them.
/// Its accesses are those of the launch, which has checked them if it was to.
std::shared_ptr<const ir::Kernel> all_passed(const std::shared_ptr<const ir::Kernel>& recording) {
  const auto is_derived = [](const ir::Binding& b) { return b.is_derived(); };
  if (std::ranges::none_of(recording->bindings, is_derived)) return recording;
  std::shared_ptr<ir::Kernel> made = ir::clone(*recording);
  for (ir::Binding& b : made->bindings) b.of = ir::Binding::not_derived;
  ir::walk(made->body, [](ir::Inst* inst) {
    if (!inst->is(ir::Op::check) && !inst->is(ir::Op::print)) inst->site = ir::no_site;
  });
  return made;
}
}  // namespace

std::shared_ptr<ReversedByInputs> ReversedByInputs::of(runtime::Attached& program) {
  return program.get<ReversedByInputs>([] { return std::make_shared<ReversedByInputs>(); });
}

std::shared_ptr<Reversed> ReversedByInputs::find(const std::shared_ptr<const ir::Kernel>& kernel,
                                                 const std::vector<bool>& inputs,
                                                 Reversed::Kind kind) {
  for (const Known& known : all_)
    if (known.kernel == kernel.get() && known.kind == kind && known.inputs == inputs)
      return known.reversed;
  all_.push_back({kernel.get(), inputs, kind, std::make_shared<Reversed>(kernel, inputs, kind)});
  return all_.back().reversed;
}

std::shared_ptr<Reversed> ReversedByInputs::by(const std::shared_ptr<const ir::Kernel>& kernel,
                                               const std::vector<bool>& inputs,
                                               Reversed::Kind kind) {
  std::lock_guard lock(mutex_);
  return find(kernel, inputs, kind);
}

std::shared_ptr<Reversed> ReversedByInputs::by_passed(
    const std::shared_ptr<const ir::Kernel>& kernel, const std::vector<bool>& inputs) {
  std::lock_guard lock(mutex_);
  if (!passed_) passed_ = all_passed(kernel);
  return find(passed_, inputs, Reversed::adjoints);
}

Reversed::Program::Kept Reversed::Program::kept_with(std::span<const runtime::Argument> given,
                                                     Loc loc) {
  std::vector<uint64_t> by;
  for (uint32_t k : augmented_by) by.push_back(given[k].bits);
  for (const runtime::Argument& a : given)
    for (uint32_t axis = 0; a.storage && axis < a.storage->shape().size(); axis++)
      by.insert(by.end(), {uint64_t(a.storage->shape()[axis]), uint64_t(a.storage->first(axis)),
                           uint64_t(a.storage->origin(axis))});
  std::lock_guard lock(kept_mutex_);
  if (!augmented_by_data)
    if (const auto at = std::ranges::find(kept_, by, &KeptBy::first); at != kept_.end())
      return at->second;
  Kept kept;
  const runtime::LaunchCall untold(runtime::LaunchCall::upkeep);
  const Augmented& of = reverse.augmented;
  const auto counted = augmented_count->launch(given, augmented_count->kernel().modes, loc);
  const size_t results = of.at_once ? 1 : 2 * of.sites.size();
  for (size_t k = 0; k < results; k++) kept.counts.push_back(counted->result(k));
  const auto add = [&](std::span<const ir::Type> types, uint64_t elements) {
    for (ir::Type t : types)
      kept.bytes += uint64_t(at_least_one(elements)) * ir::byte_size(ir::storage_type(t));
  };
  for (size_t k = 0; k < of.sites.size(); k++) {
    add(of.sites[k].rows, kept.counts[2 * k]);
    add(of.sites[k].ends, kept.counts[2 * k + 1]);
  }
  if (of.at_once) {
    for (const AtOnce::Kept& k : of.at_once->kept)
      add(adjoint_types(*given[k.field].storage), uint64_t(given[k.field].storage->size()));
    kept.pays = pays_at_once(kept.counts[0], kept.bytes);
  }
  if (augmented_by_data) return kept;
  if (kept_.size() == most_passed) kept_.erase(kept_.begin());
  kept_.emplace_back(std::move(by), kept);
  return kept;
}

}  // namespace quern::autodiff
