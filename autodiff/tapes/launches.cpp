#include "autodiff/tapes/launches.h"

#include <algorithm>
#include <unordered_map>

#include "autodiff/forward/forward.h"
#include "autodiff/primal/activity.h"
#include "autodiff/reverse/at_once.h"
#include "quern/ir/trees.h"
#include "quern/runtime/tree.h"

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

namespace {

/// Of one kernel's launches with different fields that a tape looks for among those before: fields
/// that take turns are two or three.
constexpr size_t most_passed = 4;

/// swap takes it along. Of no elements it does not matter which.
uint64_t memory_of(const runtime::Storage& held) { return held.size() > 0 ? held.identity() : 0; }

std::shared_ptr<runtime::Device> device_of(std::span<const runtime::Argument> arguments, Loc loc) {
  for (const runtime::Argument& a : arguments)
    if (a.storage) return a.storage->shared_device();
  return runtime::Device::standard(loc);
}

std::vector<ir::Storage> stored(std::span<const ir::Type> types) {
  std::vector<ir::Storage> components;
  components.reserve(types.size());
  for (ir::Type t : types) components.push_back({t, ir::storage_type(t)});
  return components;
}

/// Rows to allocate: rounds that were not counted stay in the last one until a check ends the
/// launch.
int64_t at_least_one(uint64_t rows) { return std::max<int64_t>(int64_t(rows), 1); }

std::vector<ir::Type> adjoint_types(const runtime::Storage& field) {
  std::vector<ir::Type> types;
  for (const ir::Component& c : field.components()) types.push_back(ir::derivative_type(c.type));
  return types;
}

/// Zeros, or anything, for the adjoints of the field, lying on their own.
std::shared_ptr<runtime::Storage> like_adjoints_of(const runtime::Storage& field, bool unset,
                                                   Loc loc) {
  static const std::string what = "a gradient at once";
  std::vector<ir::Storage> types = stored(adjoint_types(field));
  const auto made = unset ? runtime::Storage::unset(field.shared_device(), std::move(types),
                                                    field.shape(), what, loc)
                          : std::make_shared<runtime::Storage>(
                                field.shared_device(), std::move(types), field.shape(), loc);
  std::vector<int64_t> firsts(field.shape().size());
  for (uint32_t axis = 0; axis < firsts.size(); axis++) firsts[axis] = field.first(axis);
  const bool is_based = std::ranges::any_of(firsts, [](int64_t first) { return first != 0; });
  return is_based ? made->rebased(firsts, loc) : made;
}

std::shared_ptr<runtime::Outcome> run(runtime::Program& program,
                                      std::span<const runtime::Argument> arguments, Loc loc,
                                      runtime::FixedArguments fixed = runtime::not_fixed) {
  return program.launch(arguments, program.kernel().modes, loc, nullptr, fixed);
}

}  // namespace

const runtime::Storage::Contents& SeenFields::now(Field& field, Loc loc) {
  const runtime::Storage& storage = *field.storage;
  const uint64_t memory = storage.memory_number();
  if (field.versions_of == memory) return field.versions->of(storage, loc);
  if (kept_ == by_tape && runtime::Storage::Versions::suit(storage)) {
    field.versions = &small_[memory];
    field.versions_of = memory;
    return field.versions->of(storage, loc);
  }
  if (!storage.has(field.contents)) field.contents = storage.contents(loc);
  return field.contents;
}

bool SeenFields::Field::is_of_now() const {
  return before && before->shape() == storage->shape() &&
         before->facts_number() == storage->facts_number();
}

bool SeenFields::Passed::is_for(const Reversed::Program& of,
                                std::span<const runtime::Argument> given) const {
  return program.get() == &of &&
         std::ranges::equal(given, of_primal, {}, &runtime::Argument::storage,
                            &runtime::Argument::storage) &&
         std::ranges::all_of(
             snapshots,
             [](const Snapshot& s) { return s.storage == s.of->before && s.of->is_of_now(); }) &&
         holds_same_memory();
}

bool SeenFields::Passed::holds_same_memory() const {
  return known_at == runtime::Storage::moves() ||
         std::ranges::all_of(held, [](const Held& h) { return memory_of(*h.storage) == h.memory; });
}

std::span<const runtime::Argument> SeenFields::Passed::primal() const {
  return std::span(arguments).first(program->reverse.fields.size());
}

size_t SeenFields::Passed::first_seed() const {
  return program->reverse.fields.size() + program->passed->fields.size();
}

const std::shared_ptr<SeenFields::Field>& SeenFields::of(
    const std::shared_ptr<runtime::Storage>& field, Loc loc) {
  field->expect_alive(loc);
  std::shared_ptr<Field>& known = all_[field.get()];
  if (!known) {
    known = std::make_shared<Field>();
    known->storage = field;
  }
  return known;
}

const std::shared_ptr<runtime::Storage>& SeenFields::companion(
    const std::shared_ptr<runtime::Storage>& field, const std::string& name, Loc loc) {
  auto& companions = of(field, loc)->companions;
  const auto known = std::ranges::find(companions, name, [](const auto& c) { return c.first; });
  if (known != companions.end()) return known->second;
  return companions.emplace_back(name, field->companion(name, loc)).second;
}

std::shared_ptr<SeenFields::Passed> SeenFields::passed(
    const std::shared_ptr<Reversed::Program>& program, std::span<const runtime::Argument> arguments,
    Loc loc) {
  auto& known = passed_[program.get()];
  const auto found = std::ranges::find_if(
      known, [&](const auto& passed) { return passed->is_for(*program, arguments); });
  if (found != known.end()) return *found;
  if (known.size() == most_passed) known.pop_back();
  return *known.insert(known.begin(), pass(program, arguments, loc));
}

std::shared_ptr<SeenFields::Passed> SeenFields::pass(
    const std::shared_ptr<Reversed::Program>& program, std::span<const runtime::Argument> arguments,
    Loc loc) {
  const Reverse& reverse = program->reverse;
  auto made = std::make_shared<Passed>();
  made->known_at = runtime::Storage::moves();
  made->program = program;
  made->of_primal.assign(arguments.begin(), arguments.end());
  std::vector<runtime::Argument> given = made->of_primal;
  for (const Scratch& scratch : reverse.scratch)
    given.push_back({0, companion(given[scratch.of].storage, scratch.companion, loc)});
  for (size_t k = 0; k < reverse.fields.size(); k++)
    if (reverse.fields[k] != ir::no_binding) {
      made->fields.push_back(given[k]);
      const auto& of_field = companion(given[k].storage, adjoints, loc);
      made->held.push_back({of_field, memory_of(*of_field)});
    }
  // Before and while the kernel runs that does what the launch would, adjoints are written alone.
  const auto stays = [&, written = made->fields.size()](const runtime::Storage& field) {
    return reverse.yields_values && !field.tree() &&
           std::ranges::none_of(std::span(made->held).first(written),
                                [&](const Passed::Held& h) { return field.overlaps(*h.storage); });
  };
  for (uint32_t field : reverse.lent) made->fields.push_back(given[field]);
  std::vector<runtime::Argument>& all = made->arguments;
  for (size_t k = 0; k < reverse.fields.size(); k++) {
    all.push_back(given[k]);
    const auto& storage = given[k].storage;
    if (!storage) made->scalars.push_back(uint32_t(k));
    if (storage) made->device = &storage->device();
    if (storage && storage->tree()) {
      made->takes_trees = true;
      if (reverse.fields[k] != ir::no_binding) made->on_trees.push_back(storage);
    }
    if (!storage || !reverse.reads[k] || storage->is_snapshot()) continue;
    if (stays(*storage)) {
      made->held.push_back({storage, memory_of(*storage)});
      continue;
    }
    const std::shared_ptr<Field>& field = of(storage, loc);
    if (!field->is_of_now()) {
      field->before = storage->empty_snapshot(loc);
      field->nothing = field->before->contents(loc);
    }
    all.back().storage = field->before;
    made->snapshots.push_back({field, field->before});
  }
  if (!program->passed) return made;
  for (uint32_t field : program->passed->fields) all.push_back(made->fields[field]);
  all.resize(all.size() + reverse.seeds);
  for (const auto& [field, name] : program->passed->companions)
    all.push_back({0, companion(made->fields[field].storage, name, loc)});
  return made;
}

Recorded::Recorded(std::shared_ptr<SeenFields::Passed> passed,
                   std::span<const runtime::Argument> arguments, SeenFields& seen, Loc loc,
                   std::pmr::memory_resource* memory)
    : passed_(std::move(passed)), contents_(memory), scalars_(memory), loc_(loc) {
  if (program().reverse.races) program().reverse.races->expect_none(arguments);
  contents_.reserve(passed_->snapshots.size());
  for (const auto& snapshot : passed_->snapshots) contents_.push_back(seen.now(*snapshot.of, loc));
  scalars_.reserve(passed_->scalars.size());
  for (uint32_t k : passed_->scalars) scalars_.push_back(arguments[k].bits);
  if (passed_->device) failures_ = passed_->device->failures();
  for (const auto& field : passed_->on_trees) tree_moves_.push_back(field->tree()->moves());
}

void Recorded::expect_done(Loc loc) const {
  if (passed_->device && passed_->device->failures() != failures_)
    throw Error(loc, "a launch has failed since the one at " + std::string(loc_.file) + ":" +
                         std::to_string(loc_.line) +
                         " was recorded, and what is launched behind it does nothing until that "
                         "is known: what was recorded cannot be gone back through");
}

/// While it lives, what the launch was passed stands in what it shares with others.
class Recorded::Shown {
 public:
  explicit Shown(const Recorded& of) : of_(of), passed_(*of.passed_), lock_(passed_.mutex) {
    for (size_t k = 0; k < of.contents_.size(); k++)
      passed_.snapshots[k].storage->show(of.contents_[k]);
    for (size_t k = 0; k < of.scalars_.size(); k++)
      passed_.arguments[passed_.scalars[k]].bits = of.scalars_[k];
  }
  /// What takes no memory of its own, as it is in a block or still the field's, is shown until
  /// something else is: the next launch nearly always wants the same.
  ~Shown() {
    for (size_t k = 0; k < of_.contents_.size(); k++) {
      if (of_.contents_[k].is_in_block()) continue;
      const auto& snapshot = passed_.snapshots[k];
      const bool is_alone = snapshot.storage->tree() || of_.contents_[k].bytes() > 0;
      if (!snapshot.storage->is_in_block() && is_alone)
        snapshot.storage->show(snapshot.of->nothing);
    }
  }
  Shown(const Shown&) = delete;

 private:
  const Recorded& of_;
  SeenFields::Passed& passed_;
  std::lock_guard<runtime::BiasedMutex> lock_;
};

namespace {
/// All elements become 0; on a tree none becomes active.
void clear(runtime::Storage& field, Loc loc) {
  runtime::Storage& elements = field.tree() ? *field.tree_part(ir::tree::elements, loc) : field;
  const std::vector<std::byte> zero(elements.element_bytes());
  elements.fill(zero.data(), loc);
}
}  // namespace

void clear_adjoints_of(runtime::Storage& field, Loc loc) {
  clear(*field.companion(adjoints, loc), loc);
}

void Recorded::clear_adjoints(Loc loc) const {
  const std::vector<uint32_t>& of = program().reverse.fields;
  const std::vector<bool>& assigned = program().reverse.assigned;
  for (size_t k = 0, n = 0; k < of.size(); k++) {
    if (of[k] == ir::no_binding) continue;
    const runtime::Argument& field = fields()[n++];
    if (k < assigned.size() && assigned[k]) continue;
    const auto companion = field.storage->companion(adjoints, loc);
    clear(*companion, loc);
    if (program().second) clear(*companion->companion(tangents, loc), loc);
  }
}

/// Runs the launch again, on copies of what it reads behind its writes, and keeps what it reads.
void Recorded::add_log(Arguments& all, std::span<const uint64_t> along,
                       const std::shared_ptr<runtime::Device>& device, Loc loc) const {
  const Log& log = program().reverse.log;
  const size_t count = all.size();
  const auto field = [&](const LogField& f, int64_t rows) {
    if (f.is_written_first)
      return runtime::Argument{0, runtime::Storage::unset(device, stored({&f.type, 1}), {rows},
                                                          "what is read behind writes", loc)};
    return runtime::Argument{0, std::make_shared<runtime::Storage>(device, stored({&f.type, 1}),
                                                                   std::vector{rows}, loc)};
  };
  if (!program().log_sizes) {  // nobody reads it
    const LogField none{ir::Type::u8};
    for (size_t k = 0; k < program().reverse.logged; k++) all.push_back(field(none, 0));
    return;
  }
  const auto rerun = [&](runtime::Program& program, bool forward = false) {
    Arguments own = all;
    runtime::Storage::Copies copies;
    for (size_t k = 0; k < log.copied.size(); k++)
      if (log.copied[k]) own[k].storage = copies.of(*own[k].storage, loc);
    if (forward) add_tangents(own, along, copies, loc);
    return run(program, own, loc);
  };
  for (const LogField& f : log.fields)
    all.push_back(field(f, f.rule == LogField::constant ? int64_t(f.number) : 0));
  auto sizes = rerun(*program().log_sizes);
  const auto size_all = [&](LogField::Rule rule, auto&& rows) {
    for (size_t k = 0; k < log.fields.size(); k++)
      if (log.fields[k].rule == rule)
        all[count + k] = field(log.fields[k], at_least_one(rows(log.fields[k].number)));
  };
  size_all(LogField::sized, [&](uint64_t k) { return sizes->result(k); });
  if (program().log_count) {
    rerun(*program().log_count);
    std::vector<int64_t> taken(size_t(all[log.cursors].storage->size()));
    all[log.cursors].storage->read(taken.data(), 0, int64_t(taken.size()));
    size_all(LogField::counted, [&](uint64_t k) { return uint64_t(taken[k]); });
  }
  if (program().log_record) rerun(*program().log_record, program().second);
}

/// For the kernel that records the log: of scalars, and of fields, copies where it writes them.
/// What has none of its own, scratch and the log, has them from here on.
void Recorded::add_tangents(Arguments& own, std::span<const uint64_t> along,
                            runtime::Storage::Copies& copies, Loc loc) const {
  const Reverse& reverse = program().reverse;
  const size_t primal = reverse.fields.size();
  Arguments made;
  for (uint64_t bits : along) made.push_back({bits, nullptr});
  for (uint32_t k : program().log_tangents) {
    const bool is_input = k < primal && reverse.fields[k] != ir::no_binding;
    const runtime::Storage& of =
        is_input ? *fields()[reverse.fields[k] - primal - reverse.logged].storage : *own[k].storage;
    std::shared_ptr<runtime::Storage> held = of.companion(tangents, loc);
    if (is_input && reverse.log.copied[k]) held = copies.of(*held, loc);
    made.push_back({0, std::move(held)});
  }
  own.insert(own.end(), made.begin(), made.end());
}

/// Fields for what loops carry, once it is known how much that is. `read`: those of the primal, and
/// its log.
void Recorded::add_rows(Arguments& all, const Arguments& read,
                        const std::shared_ptr<runtime::Device>& device, Loc loc) const {
  const Reverse& reverse = program().reverse;
  auto counted = run(*program().count, read, loc);
  for (size_t k = 0; k < reverse.rows.size(); k++)
    all.push_back({0, runtime::Storage::unset(device, stored(reverse.rows[k]),
                                              {at_least_one(counted->result(k))},
                                              "what a loop carries", loc)});
  const ir::Type cursor = ir::Type::i64;
  all.push_back(
      {0, std::make_shared<runtime::Storage>(device, stored({&cursor, 1}),
                                             std::vector{int64_t(reverse.rows.size())}, loc)});
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
  const auto counted = run(*augmented_count, given, loc);
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

uint64_t Recorded::kept_bytes() const {
  uint64_t bytes = 0;
  for (const runtime::Argument& kept : kept_) bytes += kept.storage->bytes();
  return bytes;
}

Recorded::AugmentedLaunch Recorded::augmented_launch(std::span<const runtime::Argument> arguments,
                                                     Loc loc) {
  const auto device = device_of(arguments, loc);
  const auto add = [&](std::span<const ir::Type> types, uint64_t elements) {
    if (types.empty()) return;
    kept_.push_back({0, runtime::Storage::unset(device, stored(types), {at_least_one(elements)},
                                                "what a loop carries", loc)});
  };
  const auto& sites = program().reverse.augmented.sites;
  std::vector<uint64_t> counts;
  if (!sites.empty()) counts = passed_->program->kept_with(arguments, loc).counts;
  for (size_t k = 0; k < sites.size(); k++) {
    add(sites[k].rows, counts[2 * k]);
    add(sites[k].ends, counts[2 * k + 1]);
  }
  AugmentedLaunch made{passed_->program, {arguments.begin(), arguments.end()}};
  if (program().passed_at_once)
    pass_at_once(made.arguments, loc);
  else
    made.arguments.insert(made.arguments.end(), kept_.begin(), kept_.end());
  return made;
}

/// To the kernel that computes the gradient at once: what it adds to is kept.
void Recorded::pass_at_once(Arguments& all, Loc loc) {
  const AtOnce& at_once = *program().reverse.augmented.at_once;
  const size_t inputs = at_once.looked_up_by.size() - at_once.lent.size();
  const auto field = [&](uint32_t number) -> const runtime::Argument& {
    return number < inputs ? fields()[number] : primal()[at_once.lent[number - inputs]];
  };
  const auto is_assigned = [&](uint32_t k) {
    return k < at_once.assigned.size() && at_once.assigned[k];
  };
  for (const AtOnce::Kept& k : at_once.kept)
    kept_.push_back({0, like_adjoints_of(*primal()[k.field].storage, is_assigned(k.field), loc)});
  for (uint32_t number : program().passed_at_once->fields) all.push_back(field(number));
  for (const auto& [number, name] : program().passed_at_once->companions) {
    const auto kept = std::ranges::find(at_once.kept, number, &AtOnce::Kept::input);
    const bool is_kept = name == adjoints && kept != at_once.kept.end();
    all.push_back(is_kept ? kept_[size_t(kept - at_once.kept.begin())]
                          : runtime::Argument{0, field(number).storage->companion(name, loc)});
  }
}

std::shared_ptr<runtime::Outcome> Recorded::AugmentedLaunch::run(Loc loc) const {
  return autodiff::run(*by->augmented, arguments, loc);
}

void Recorded::expect_unchanged(Loc loc) const {
  const uint64_t now = runtime::Storage::moves();
  if (passed_->known_at != now) {
    for (const runtime::Argument& field : fields()) field.storage->expect_alive(loc);
    for (const auto& known : passed_->held)
      if (memory_of(*known.storage) != known.memory)
        throw Error(loc, "a field of the launch at " + std::string(loc_.file) + ":" +
                             std::to_string(loc_.line) +
                             " was swapped since, which cannot be gone back through: give the "
                             "kernel both fields, in turns");
    passed_->known_at = now;
  }
  for (size_t k = 0; k < tree_moves_.size(); k++)
    if (passed_->on_trees[k]->tree()->moves() != tree_moves_[k])
      throw Error(loc, "elements of a tree have ended or moved since the launch at " +
                           std::string(loc_.file) + ":" + std::to_string(loc_.line) +
                           ", which cannot be gone back through: their adjoints are gone");
}

void prefetch(const void* first, size_t bytes) {
  constexpr size_t line = 64;
  for (size_t at = 0; at < bytes; at += line)
    __builtin_prefetch(static_cast<const char*>(first) + at);
}

void Recorded::prefetch() const {
  autodiff::prefetch(contents_.data(), contents_.size() * sizeof(contents_[0]));
}

std::shared_ptr<runtime::Outcome> Recorded::go_back(std::span<const uint64_t> seeds, Loc loc,
                                                    std::span<const uint64_t> along) const {
  expect_done(loc);
  expect_unchanged(loc);
  // Who passes the fields themselves, and arguments of its own, does not wait for others that do.
  std::optional<Shown> shown;
  if (!program().passed || seeds.empty() || !passed_->snapshots.empty()) shown.emplace(*this);
  std::optional<runtime::SameRandomNumbers> same;
  if (was_launched_) same.emplace(key_);
  if (program().passed) {
    if (seeds.empty()) return run(*program().program, passed_->arguments, loc, passed_->fixed);
    Arguments all = passed_->arguments;
    for (size_t k = 0; k < scalars_.size(); k++) all[passed_->scalars[k]].bits = scalars_[k];
    for (size_t k = 0; k < std::min(seeds.size(), program().reverse.seeds); k++)
      all[passed_->first_seed() + k].bits = seeds[k];
    return run(*program().program, all, loc);
  }
  const auto device = device_of(primal(), loc);
  Arguments read(primal().begin(), primal().end());
  if (program().reverse.logged > 0) add_log(read, along, device, loc);
  Arguments all = read;
  all.insert(all.end(), fields().begin(), fields().end());
  for (size_t k = 0; k < program().reverse.seeds; k++)
    all.push_back({k < seeds.size() ? seeds[k] : 0, nullptr});
  if (program().count) add_rows(all, read, device, loc);
  all.insert(all.end(), kept_.begin(), kept_.end());
  for (uint64_t bits : along) all.push_back({bits, nullptr});
  return run(*program().program, all, loc);
}

/// Of fields that the launch writes and reads, which it is run again on.
uint64_t Recorded::copied_bytes() const {
  const std::vector<bool>& copied = program().reverse.log.copied;
  std::unordered_map<uint64_t, uint64_t> by_memory;
  for (size_t k = 0; program().log_sizes && k < copied.size(); k++)
    if (copied[k]) by_memory[primal()[k].storage->memory_number()] = primal()[k].storage->bytes();
  uint64_t bytes = 0;
  for (const auto& [memory, of] : by_memory) bytes += of;
  return bytes;
}

Recorded::Working Recorded::working(Loc loc) const {
  if (program().passed) return {};
  expect_unchanged(loc);
  const Shown shown(*this);
  std::optional<runtime::SameRandomNumbers> same;
  if (was_launched_) same.emplace(key_);
  const auto device = device_of(primal(), loc);
  const auto bytes_of = [](std::span<const runtime::Argument> made) {
    uint64_t bytes = 0;
    for (const runtime::Argument& a : made) bytes += a.storage->bytes();
    return bytes;
  };
  Arguments read(primal().begin(), primal().end()), rows;
  if (program().reverse.logged > 0) add_log(read, {}, device, loc);
  if (program().count) add_rows(rows, read, device, loc);
  const uint64_t log = bytes_of(std::span(read).subspan(primal().size()));
  return {log + std::max(copied_bytes(), bytes_of(rows)),
          program().counts_by_data || program().augmented_by_data || passed_->takes_trees};
}

}  // namespace quern::autodiff
