#include "runtime/compile/compile.h"

#include <algorithm>

namespace quern::runtime {

using namespace ir;

namespace {
constexpr uint64_t most_operations = 1u << 24;

/// A loop counts as eight rounds, or as more where constants say so.
uint64_t rounds_of(const Inst* inst) {
  if (inst->op != Op::loop && inst->op != Op::while_) return 1;
  uint64_t rounds = 8;
  int64_t bounds[3];
  for (size_t k = 0; k < 3; k++) {
    const Inst* bound = inst->op == Op::loop ? inst->operand(k)->inst : nullptr;
    if (!bound || !bound->is(Op::constant)) return rounds;
    bounds[k] = to_signed(bound->imm, bound->type());
  }
  if (bounds[1] <= bounds[0] || bounds[2] <= 0) return rounds;
  const uint64_t span = uint64_t(bounds[1]) - uint64_t(bounds[0]);
  return std::max(rounds, std::min(span / uint64_t(bounds[2]), most_operations));
}

/// Of one run of a region.
uint64_t operations_of(const Region* region) {
  uint64_t sum = 0;
  for (const Inst* inst = region->first; inst && sum < most_operations; inst = inst->next) {
    sum += info(inst->op).library ? 16 : 1;
    for (const Region* r : inst->regions) sum += operations_of(r) * rounds_of(inst);
  }
  return std::min(sum, most_operations);
}
}  // namespace

const Kernel& Recording::optimised(const Premises& premises) {
  std::lock_guard lock(mutex_);
  for (const auto& [known, kernel] : optimised_)
    if (known == premises) return *kernel;
  std::unique_ptr<Kernel> copy = clone(*kernel_);
  assume(*copy, premises);
  optimise(*copy);
  return *optimised_.emplace_back(premises, std::move(copy)).second;
}

Prepared prepare(Recording& source, const Signature& signature, const Target& target) {
  const Premises premises = premises_of(signature);
  std::unique_ptr<Kernel> copy;
  // Whether a strict kernel is refused is the same on every device: optimising decides it.
  if (target.optimise || signature.modes.strict) {
    copy = clone(source.optimised(premises));
    split(*copy);
    if (signature.modes.strict) expect_ordered(*copy, signature);
  }
  if (!target.optimise) {
    copy = clone(source.kernel());
    assume(*copy, premises);
    split_as_written(*copy);
  }
  std::vector<uint64_t> operations;
  std::vector<uint32_t> cells;  // of the tree that the task walks, if any: their elements
  for (const Task& task : copy->tasks) {
    operations.push_back(operations_of(task.body));
    const uint32_t field = task.options.over;
    const bool walks = field != no_binding && signature.fields[field].layout.is_sparse();
    cells.push_back(walks ? signature.fields[field].layout.pools.back().children : 1);
  }
  if (target.traits.walk != Task::unlowered)
    lower(*copy, signature, target.traits);
  else
    bind(*copy, signature), expand_trees(*copy);
  if (target.traits.walk == Task::unlowered && target.traits.stoppable) add_stop_sites(*copy);
  for (size_t k = 0; k < cells.size(); k++)
    if (copy->tasks[k].rank == 1) operations[k] *= cells[k];  // an iteration takes a cell
  for (Binding& b : copy->bindings)
    if (b.size.rule == BufferSize::copies && copy->tasks[b.size.task].rank == 1)
      b.size.updates *= cells[b.size.task];
  operations.resize(copy->tasks.size());  // lowering adds tasks that combine
  return {std::move(copy), std::move(operations)};
}

std::vector<Image::Parameter> parameters_of(const Kernel& source) {
  std::vector<Image::Parameter> all;
  for (const Binding& b : source.bindings)
    all.push_back({.is_field = b.kind == Binding::field,
                   .rank = b.rank,
                   .components = b.components,
                   .name = b.name,
                   .of = b.of,
                   .companion = b.companion});
  for (const Region* root : roots(source))
    walk(const_cast<Region*>(root), [&](const Inst* inst) {
      if (accesses_element(inst->op)) {
        all[inst->binding()].reads |= has(inst->op, flag::reads);
        all[inst->binding()].writes |= has(inst->op, flag::writes);
      }
      for (const Part& axis : narrow_axes(inst))
        all[axis.binding].narrow.push_back({axis.component, inst->loc});
    });
  return all;
}

std::shared_ptr<const Image> compile(Recording& source, const Signature& signature,
                                     const Target& target) {
  if (signature.modes.strict && !target.strict_refusal.empty())
    throw Error(source.kernel().loc, "strict mode cannot be kept on device " + target.backend +
                                         ": " + target.strict_refusal);
  Prepared prepared = prepare(source, signature, target);
  auto image =
      std::make_shared<Image>(compiler_of(target.backend).compile(*prepared.kernel, target));
  image->signature = signature_text(signature, target);
  image->made_for = signature;
  image->parameters = parameters_of(source.kernel());
  for (size_t k = 0; k < image->tasks.size(); k++)
    image->tasks[k].operations = prepared.operations[k];
  return image;
}

}  // namespace quern::runtime
