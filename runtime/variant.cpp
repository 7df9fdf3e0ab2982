#include "runtime/variant.h"

#include <cstdio>

namespace quern::runtime {

using namespace ir;

namespace {
/// Operations of one run of a region; a loop counts as eight rounds.
uint64_t cost_of(const Region* region) {
  uint64_t cost = 0;
  for (const Inst* inst = region->first; inst; inst = inst->next) {
    bool repeats = inst->op == Op::loop || inst->op == Op::while_;
    cost += info(inst->op).library ? 16 : 1;
    for (const Region* r : inst->regions) cost += cost_of(r) * (repeats ? 8 : 1);
    if (cost > 1u << 20) return cost;
  }
  return cost;
}

uint64_t aligned(uint64_t n) { return (n + 63) / 64 * 64; }
}  // namespace

std::unique_ptr<Kernel> prepare(const Kernel& kernel, const Signature& signature,
                                const Target& target) {
  if (signature.modes.strict) expect_ordered(kernel, signature);
  std::unique_ptr<Kernel> copy = clone(kernel);
  copy->modes = signature.modes;
  if (target.optimise)
    optimise(*copy);
  else
    split(*copy);
  if (target.traits.walk != Task::unlowered) lower(*copy, signature, target.traits);
  return copy;
}

Variant::Variant(std::shared_ptr<Device> on, const Kernel& source, const Signature& signature)
    : device(std::move(on)) {
  const Target& target = device->target();
  if (signature.modes.strict && !target.strict_refusal.empty())
    throw Error(source.loc, "strict mode cannot be kept on device " + device->name() + ": " +
                                target.strict_refusal);
  kernel = prepare(source, signature, target);
  reporter = std::make_shared<Reporter>(Reporter{kernel->name, kernel->sites});
  layout = abi::layout(*kernel);
  frame_offset = uint32_t(aligned(layout.bytes));
  block_bytes = uint32_t(frame_offset + aligned(kernel->frame_bytes()));
  for (const Task& task : kernel->tasks) {
    Plan plan;
    if (task.domain) plan.domain.emplace(*kernel, task.domain, layout);
    plan.cost = std::max<uint64_t>(1, cost_of(task.body));
    plans.push_back(std::move(plan));
  }
  Driver& driver = device->driver();
  executable = driver.load(*kernel, driver.compiler().compile(*kernel, target));
}

Variant::~Variant() {
  std::vector<Address> memory;
  for (auto& block : free_) {
    memory.push_back(block->memory);
    if (block->scratch) memory.push_back(block->scratch);
  }
  if (!memory.empty()) device->release(memory);
}

std::shared_ptr<Block> Variant::take_block(const std::shared_ptr<Variant>& self) {
  Driver& driver = self->device->driver();
  std::unique_ptr<Block> block;
  {
    std::lock_guard lock(self->mutex_);
    for (auto& candidate : self->free_) {
      if (!driver.done(candidate->last)) continue;
      std::swap(candidate, self->free_.back());
      block = std::move(self->free_.back());
      self->free_.pop_back();
      break;
    }
  }
  if (!block) {
    block = std::make_unique<Block>();
    block->memory = self->device->allocate(self->block_bytes, "a launch's argument block");
    try {
      driver.wait(driver.submit({}));
    } catch (...) {
      self->device->release({&block->memory, 1});
      throw;
    }
    block->host = driver.host_pointer(block->memory);
    if (!block->host) block->staging.resize(self->block_bytes);
  }
  return {block.release(), [self](Block* b) { self->give_back(std::unique_ptr<Block>(b)); }};
}

void Variant::give_back(std::unique_ptr<Block> block) {
  std::lock_guard lock(mutex_);
  free_.push_back(std::move(block));
}

}  // namespace quern::runtime
