#include "autodiff/tapes/passed.h"

#include <algorithm>

#include "quern/runtime/tree.h"

namespace quern::autodiff {

namespace {
/// swap takes it along. Of no elements it does not matter which.
uint64_t memory_of(const runtime::Storage& held) { return held.size() > 0 ? held.identity() : 0; }

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
  return known_at == runtime::Storage::moves() || std::ranges::all_of(held, &Held::has_same_memory);
}

bool SeenFields::Passed::Held::has_same_memory() const { return memory_of(*storage) == memory; }

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

}  // namespace quern::autodiff
