#include "autodiff/tapes/passed.h"

#include <algorithm>
#include <new>

#include "autodiff/reverse/at_once.h"
#include "autodiff/tapes/kept_fields.h"
#include "quern/runtime/tree.h"

namespace quern::autodiff {

namespace {
/// swap takes it along. Of no elements it does not matter which.
uint64_t memory_of(const runtime::Storage& held) { return held.size() > 0 ? held.identity() : 0; }

uint64_t number_of(const runtime::Argument& a) { return a.storage ? a.storage->number() : 0; }
}  // namespace

bool Passed::Snapshot::is_of_now() const {
  return storage->shape() == of->shape() && storage->facts_number() == of->facts_number();
}

bool Passed::is_for(const Reversed::Program& by, std::span<const runtime::Argument> given) const {
  return program.get() == &by &&
         std::ranges::equal(given, of_primal, {}, &runtime::Argument::storage,
                            &runtime::Argument::storage) &&
         std::ranges::all_of(snapshots, &Snapshot::is_of_now) && holds_same_memory();
}

bool Passed::holds_same_memory() const {
  return known_at == runtime::Storage::moves() || std::ranges::all_of(held, &Held::has_same_memory);
}

bool Passed::Held::has_same_memory() const { return memory_of(*storage) == memory; }

std::span<const runtime::Argument> Passed::primal() const {
  return std::span(arguments).first(program->reverse.fields.size());
}

size_t Passed::first_seed() const {
  return program->reverse.fields.size() + program->passed->fields.size();
}

namespace {

std::shared_ptr<Passed> made_for(const std::shared_ptr<Reversed::Program>& program,
                                 std::span<const runtime::Argument> arguments, Loc loc) {
  const Reverse& reverse = program->reverse;
  const size_t primal = reverse.fields.size();
  auto made = std::make_shared<Passed>();
  made->known_at = runtime::Storage::moves();
  made->program = program;
  made->of_primal.assign(arguments.begin(), arguments.end());
  for (const runtime::Argument& a : arguments)
    if (a.storage) a.storage->expect_alive(loc);
  std::vector<runtime::Argument> given;
  given.reserve(primal);
  given = made->of_primal;
  for (const Scratch& scratch : reverse.scratch)
    given.push_back({0, given[scratch.of].storage->companion(scratch.companion, loc)});
  made->fields.reserve(primal + reverse.lent.size());
  made->held.reserve(primal);
  for (size_t k = 0; k < primal; k++)
    if (reverse.fields[k] != ir::no_binding) {
      made->fields.push_back(given[k]);
      auto of_field = given[k].storage->companion(adjoints, loc);
      const uint64_t memory = memory_of(*of_field);
      made->held.push_back({std::move(of_field), memory});
    }
  // Before and while the kernel runs that does what the launch would, adjoints are written alone.
  const auto stays = [&, written = made->fields.size()](const runtime::Storage& field) {
    return reverse.yields_values && !field.tree() &&
           std::ranges::none_of(std::span(made->held).first(written),
                                [&](const Passed::Held& h) { return field.overlaps(*h.storage); });
  };
  for (uint32_t field : reverse.lent) made->fields.push_back(given[field]);
  const auto snapshot_of = [&](const std::shared_ptr<runtime::Storage>& field) {
    for (const Passed::Snapshot& s : made->snapshots)
      if (s.of == field) return s.storage;
    auto taken = field->empty_snapshot(loc);
    Passed::Snapshot& snapshot = made->snapshots.emplace_back();
    snapshot.of = field;
    snapshot.storage = taken;
    snapshot.nothing = taken->contents(loc);
    return taken;
  };
  std::vector<runtime::Argument>& all = made->arguments;
  all.reserve(primal + (program->passed ? program->passed->fields.size() + reverse.seeds +
                                              program->passed->companions.size()
                                        : 0));
  for (size_t k = 0; k < primal; k++) {
    all.push_back(given[k]);
    const auto& storage = given[k].storage;
    if (!storage) made->scalars.push_back(uint32_t(k));
    if (storage) made->device = &storage->device();
    if (storage && storage->tree()) {
      made->takes_trees = true;
      if (reverse.fields[k] != ir::no_binding) made->on_trees.push_back(storage);
    }
    if (!storage || !reverse.reads[k] || storage->is_snapshot()) continue;
    if (stays(*storage))
      made->held.push_back({storage, memory_of(*storage)});
    else
      all.back().storage = snapshot_of(storage);
  }
  if (!program->passed) return made;
  for (uint32_t field : program->passed->fields) all.push_back(made->fields[field]);
  all.resize(all.size() + reverse.seeds);
  for (const auto& [field, name] : program->passed->companions)
    all.push_back({0, made->fields[field].storage->companion(name, loc)});
  return made;
}

}  // namespace

Passed::KeptFields Passed::kept_at_once(const std::shared_ptr<Passed>& of, Loc loc) {
  const AtOnce& at_once = *of->program->reverse.augmented.at_once;
  const auto is_assigned = [&](uint32_t k) {
    return k < at_once.assigned.size() && at_once.assigned[k];
  };
  std::unique_ptr<const std::vector<runtime::Argument>> fields;
  {
    std::lock_guard lock(of->idle_mutex);
    fields = std::move(of->idle);
  }
  if (fields) {
    for (size_t k = 0; k < fields->size(); k++)
      if (!is_assigned(at_once.kept[k].field)) (*fields)[k].storage->clear(loc);
  } else {
    auto made = std::make_unique<std::vector<runtime::Argument>>();
    made->reserve(at_once.kept.size());
    for (const AtOnce::Kept& k : at_once.kept)
      made->push_back(
          {0, like_adjoints_of(*of->primal()[k.field].storage, is_assigned(k.field), loc)});
    fields = std::move(made);
  }
  const std::vector<runtime::Argument>* const lent = fields.release();
  return {lent, [of](const std::vector<runtime::Argument>* given_back) {
            constexpr uint64_t small = 64 << 10;  // beside what a kernel takes in any case
            std::unique_ptr<const std::vector<runtime::Argument>> ended(given_back);
            uint64_t bytes = 0;
            for (const runtime::Argument& a : *ended) bytes += a.storage->bytes();
            if (bytes > small) return;
            std::lock_guard lock(of->idle_mutex);
            std::swap(of->idle, ended);
          }};
}

/// Of all that others may want to be gone. Snapshots are its own and stay, as Snapshot::storage, those
/// among the arguments only by that.
template <class F>
void Passed::for_each_storage(F&& visit) {
  for (auto* list : {&of_primal, &arguments, &fields})
    for (runtime::Argument& a : *list) visit(a.storage);
  for (Held& h : held) visit(h.storage);
  for (Snapshot& s : snapshots) visit(s.of);
}

void Passed::let_go() {
  for (Snapshot& s : snapshots) {
    s.storage->show(s.nothing);
    s.contents = {};
    s.versions = nullptr;
    s.versions_of = 0;
  }
  if (let_go_of.empty()) {
    for (const runtime::Argument& a : of_primal) numbers.push_back(number_of(a));
    for_each_storage([&](const auto& storage) { let_go_of.push_back(storage); });
  }
  for_each_storage([](auto& storage) { storage.reset(); });
}

bool Passed::had(std::span<const runtime::Argument> given) const {
  return std::ranges::equal(given, numbers, {}, number_of);
}

bool Passed::take_up() {
  size_t n = 0;
  bool are_there = true;
  for_each_storage([&](auto& storage) {
    const std::weak_ptr<runtime::Storage>& of = let_go_of[n++];
    storage = of.lock();
    const std::weak_ptr<runtime::Storage> of_scalar;
    const bool is_scalar = !of.owner_before(of_scalar) && !of_scalar.owner_before(of);
    are_there = are_there && (storage || is_scalar);
  });
  return are_there;
}

/// Fields that are swapped have a list for each memory that they had.
std::shared_ptr<Passed> PassedBefore::take(const std::shared_ptr<Reversed::Program>& program,
                                           std::span<const runtime::Argument> arguments) {
  std::vector<std::shared_ptr<Passed>> of_other_memory;
  std::shared_ptr<Passed> found;
  while ((found = take_newest(arguments))) {
    if (!found->take_up()) continue;
    found->program = program;
    if (found->is_for(*program, arguments)) break;
    of_other_memory.push_back(std::move(found));
  }
  for (; !of_other_memory.empty(); of_other_memory.pop_back()) {
    of_other_memory.back()->program.reset();
    of_other_memory.back()->let_go();
    add(of_other_memory.back());
  }
  return found;
}

/// Is not among the others any more.
std::shared_ptr<Passed> PassedBefore::take_newest(std::span<const runtime::Argument> arguments) {
  std::lock_guard lock(mutex_);
  for (auto at = idle_.end(); at != idle_.begin();)
    if ((*--at)->had(arguments)) {
      std::shared_ptr<Passed> newest = std::move(*at);
      idle_.erase(at);
      return newest;
    }
  return nullptr;
}

void PassedBefore::add(std::shared_ptr<Passed> passed) {
  std::shared_ptr<Passed> oldest;  // ends behind the lock
  std::lock_guard lock(mutex_);
  if (idle_.size() == most_passed) {
    oldest = std::move(idle_.front());
    idle_.erase(idle_.begin());
  }
  idle_.push_back(std::move(passed));
}

std::shared_ptr<Passed> PassedBefore::lend(std::shared_ptr<Passed> passed) {
  Passed* const lent = passed.get();
  return {lent, [own = std::move(passed)](Passed*) mutable { come_back(std::move(own)); }};
}

/// One that there is no memory to keep is made again. Companions of views end with their users.
void PassedBefore::come_back(std::shared_ptr<Passed> passed) noexcept try {
  const std::shared_ptr<Reversed::Program> program = std::move(passed->program);
  const auto is_view = [](const runtime::Argument& a) { return a.storage && a.storage->is_view(); };
  if (passed->is_replaced || passed->takes_trees) return;
  if (std::ranges::any_of(passed->of_primal, is_view)) return;
  if (passed->device && passed->device->is_joined()) return;  // others decide when that ends
  passed->let_go();
  program->passed_before->add(std::move(passed));
} catch (const std::bad_alloc&) {
}

const runtime::Storage::Contents& SeenFields::now(Passed::Snapshot& snapshot, Loc loc) {
  const runtime::Storage& storage = *snapshot.of;
  const uint64_t memory = storage.memory_number();
  if (snapshot.versions_of == memory) return snapshot.versions->of(storage, loc);
  if (kept_ == by_tape && runtime::Storage::Versions::suit(storage)) {
    snapshot.versions = &small_[memory];
    snapshot.versions_of = memory;
    return snapshot.versions->of(storage, loc);
  }
  if (!storage.has(snapshot.contents)) snapshot.contents = storage.contents(loc);
  return snapshot.contents;
}

std::shared_ptr<Passed> SeenFields::passed(const std::shared_ptr<Reversed::Program>& program,
                                           std::span<const runtime::Argument> arguments, Loc loc) {
  auto& known = passed_[program.get()];
  const auto found = std::ranges::find_if(
      known, [&](const auto& passed) { return passed->is_for(*program, arguments); });
  if (found != known.end()) return *found;
  if (known.size() == most_passed) {
    known.back()->is_replaced = true;
    known.pop_back();
  }
  auto passed = program->passed_before->take(program, arguments);
  if (!passed) passed = made_for(program, arguments, loc);
  return *known.insert(known.begin(), PassedBefore::lend(std::move(passed)));
}

}  // namespace quern::autodiff
