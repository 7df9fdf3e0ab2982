#include "autodiff/tapes/launches.h"

#include <algorithm>
#include <unordered_map>

#include "autodiff/forward/forward.h"
#include "autodiff/tapes/kept_fields.h"
#include "quern/ir/trees.h"
#include "quern/runtime/tree.h"

namespace quern::autodiff {

namespace {
std::shared_ptr<runtime::Device> device_of(std::span<const runtime::Argument> arguments, Loc loc) {
  for (const runtime::Argument& a : arguments)
    if (a.storage) return a.storage->shared_device();
  return runtime::Device::standard(loc);
}

std::shared_ptr<runtime::Outcome> run(runtime::Program& program,
                                      std::span<const runtime::Argument> arguments, Loc loc,
                                      runtime::FixedArguments fixed = runtime::not_fixed) {
  return program.launch(arguments, program.kernel().modes, loc, nullptr, fixed);
}

}  // namespace

Recorded::Recorded(std::shared_ptr<Passed> passed, std::span<const runtime::Argument> arguments,
                   SeenFields& seen, Loc loc, std::pmr::memory_resource* memory)
    : passed_(std::move(passed)), contents_(memory), scalars_(memory), loc_(loc) {
  if (program().reverse.races) program().reverse.races->expect_none(arguments);
  contents_.reserve(passed_->snapshots.size());
  for (auto& snapshot : passed_->snapshots) contents_.push_back(seen.now(snapshot, loc));
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
      if (!snapshot.storage->is_in_block() && is_alone) snapshot.storage->show(snapshot.nothing);
    }
  }
  Shown(const Shown&) = delete;

 private:
  const Recorded& of_;
  Passed& passed_;
  std::lock_guard<runtime::BiasedMutex> lock_;
};

namespace {
/// All elements become 0; on a tree none becomes active.
void clear(runtime::Storage& field, Loc loc) {
  runtime::Storage& elements = field.tree() ? *field.tree_part(ir::tree::elements, loc) : field;
  elements.clear(loc);
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

uint64_t Recorded::kept_bytes() const {
  uint64_t bytes = 0;
  for (const runtime::Argument& kept : kept()) bytes += kept.storage->bytes();
  return bytes;
}

Recorded::AugmentedLaunch Recorded::augmented_launch(std::span<const runtime::Argument> arguments,
                                                     Loc loc) {
  AugmentedLaunch made{passed_->program, {arguments.begin(), arguments.end()}};
  if (program().passed_at_once) {
    pass_at_once(made.arguments, loc);
    return made;
  }
  const auto device = device_of(arguments, loc);
  auto rows = std::make_shared<Arguments>();
  const auto add = [&](std::span<const ir::Type> types, uint64_t elements) {
    if (types.empty()) return;
    rows->push_back({0, runtime::Storage::unset(device, stored(types), {at_least_one(elements)},
                                                "what a loop carries", loc)});
  };
  const auto& sites = program().reverse.augmented.sites;
  std::vector<uint64_t> counts;
  if (!sites.empty()) counts = passed_->program->kept_with(arguments, loc).counts;
  for (size_t k = 0; k < sites.size(); k++) {
    add(sites[k].rows, counts[2 * k]);
    add(sites[k].ends, counts[2 * k + 1]);
  }
  made.arguments.insert(made.arguments.end(), rows->begin(), rows->end());
  kept_ = std::move(rows);
  return made;
}

/// To the kernel that computes the gradient at once: what it adds to is kept.
void Recorded::pass_at_once(Arguments& all, Loc loc) {
  const AtOnce& at_once = *program().reverse.augmented.at_once;
  const PassedCompanions& passed = *program().passed_at_once;
  const size_t inputs = at_once.looked_up_by.size() - at_once.lent.size();
  const auto field = [&](uint32_t number) -> const runtime::Argument& {
    return number < inputs ? fields()[number] : primal()[at_once.lent[number - inputs]];
  };
  kept_ = Passed::kept_at_once(passed_, loc);
  all.reserve(all.size() + passed.fields.size() + passed.companions.size());
  for (uint32_t number : passed.fields) all.push_back(field(number));
  for (const auto& [number, name] : passed.companions) {
    const auto at = std::ranges::find(at_once.kept, number, &AtOnce::Kept::input);
    const bool is_kept = name == adjoints && at != at_once.kept.end();
    all.push_back(is_kept ? kept()[size_t(at - at_once.kept.begin())]
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
      if (!known.has_same_memory())
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
  all.insert(all.end(), kept().begin(), kept().end());
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
