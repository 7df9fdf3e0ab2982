#include "autodiff/launches.h"

namespace quern::autodiff {

std::shared_ptr<Reversed::Program> Reversed::program(const ir::Premises& premises) {
  std::lock_guard lock(mutex_);
  for (const auto& [known, program] : programs_)
    if (known == premises) return program;
  auto made = std::make_shared<Program>();
  made->reverse = reverse(*primal_, premises);
  made->program = std::make_unique<runtime::Program>(std::move(made->reverse.kernel));
  if (made->reverse.count)
    made->count = std::make_unique<runtime::Program>(std::move(made->reverse.count));
  programs_.emplace_back(premises, made);
  return made;
}

namespace {
/// swap takes them along.
runtime::Address where_adjoints_are(const runtime::Argument& field, Loc loc) {
  const auto companion = field.storage->companion(adjoints, loc);
  return companion->size() > 0 ? companion->base(0) : 0;
}
}  // namespace

Recorded::Recorded(std::shared_ptr<Reversed::Program> program,
                   std::span<const runtime::Argument> arguments, Loc loc)
    : program_(std::move(program)), loc_(loc) {
  const Reverse& reverse = program_->reverse;
  for (size_t k = 0; k < reverse.fields.size(); k++) {
    runtime::Argument argument = arguments[k];
    if (argument.storage && reverse.reads[k] && !argument.storage->is_snapshot())
      argument.storage = argument.storage->snapshot(loc);
    arguments_.push_back(std::move(argument));
  }
  for (size_t k = 0; k < reverse.fields.size(); k++)
    if (reverse.fields[k] != ir::no_binding) {
      arguments_.push_back(arguments[k]);
      adjoints_.push_back(where_adjoints_are(arguments[k], loc));
    }
}

/// Fields for what loops carry, once it is known how much that is.
void Recorded::add_rows(std::vector<runtime::Argument>& all, Loc loc) const {
  const Reverse& reverse = program_->reverse;
  const std::span<const runtime::Argument> primal(all.data(), reverse.fields.size());
  auto counted = program_->count->launch(primal, program_->count->kernel().modes, loc);
  std::shared_ptr<runtime::Device> device;
  for (const runtime::Argument& a : primal)
    if (a.storage) device = a.storage->shared_device();
  if (!device) device = runtime::Device::standard(loc);
  for (size_t k = 0; k < reverse.rows.size(); k++) {
    std::vector<ir::Storage> components;
    for (ir::Type t : reverse.rows[k]) components.push_back({t, ir::storage_type(t)});
    all.push_back(
        {0, runtime::Storage::unset(device, std::move(components), {int64_t(counted->result(k))},
                                    "what a loop carries", loc)});
  }
  const std::vector<ir::Storage> cursors = {{ir::Type::i64, ir::Type::i64}};
  all.push_back({0, std::make_shared<runtime::Storage>(
                        device, cursors, std::vector{int64_t(reverse.rows.size())}, loc)});
}

std::shared_ptr<runtime::Outcome> Recorded::go_back(std::span<const uint64_t> seeds,
                                                    Loc loc) const {
  const size_t count = program_->reverse.fields.size();
  for (size_t k = 0; k < adjoints_.size(); k++)
    if (where_adjoints_are(arguments_[count + k], loc) != adjoints_[k])
      throw Error(loc, "a field of the launch at " + std::string(loc_.file) + ":" +
                           std::to_string(loc_.line) +
                           " was swapped since, which cannot be gone back through: give the "
                           "kernel both fields, in turns");
  std::vector<runtime::Argument> all = arguments_;
  for (size_t k = 0; k < program_->reverse.seeds; k++)
    all.push_back({k < seeds.size() ? seeds[k] : 0, nullptr});
  if (program_->count) add_rows(all, loc);
  return program_->program->launch(all, program_->program->kernel().modes, loc);
}

}  // namespace quern::autodiff
