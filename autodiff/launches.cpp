#include "autodiff/launches.h"

namespace quern::autodiff {

std::shared_ptr<Reversed::Program> Reversed::program(const ir::Premises& premises) {
  std::lock_guard lock(mutex_);
  for (const auto& [known, program] : programs_)
    if (known == premises) return program;
  auto made = std::make_shared<Program>();
  made->reverse = reverse(*primal_, premises);
  made->program = std::make_unique<runtime::Program>(std::move(made->reverse.kernel));
  programs_.emplace_back(premises, made);
  return made;
}

Recorded::Recorded(std::shared_ptr<Reversed::Program> program,
                   std::span<const runtime::Argument> arguments, Loc loc)
    : program_(std::move(program)) {
  const Reverse& reverse = program_->reverse;
  for (size_t k = 0; k < reverse.fields.size(); k++) {
    runtime::Argument argument = arguments[k];
    if (argument.storage && reverse.reads[k] && !argument.storage->is_snapshot())
      argument.storage = argument.storage->snapshot(loc);
    arguments_.push_back(std::move(argument));
  }
  for (size_t k = 0; k < reverse.fields.size(); k++)
    if (reverse.fields[k] != ir::no_binding) arguments_.push_back(arguments[k]);
}

std::shared_ptr<runtime::Outcome> Recorded::go_back(std::span<const uint64_t> seeds,
                                                    Loc loc) const {
  std::vector<runtime::Argument> all = arguments_;
  for (size_t k = 0; k < program_->reverse.seeds; k++)
    all.push_back({k < seeds.size() ? seeds[k] : 0, nullptr});
  ir::Modes modes = program_->program->kernel().modes;
  return program_->program->launch(all, modes, loc);
}

}  // namespace quern::autodiff
