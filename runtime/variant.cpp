#include "runtime/variant.h"

#include <atomic>

namespace quern::runtime {

using namespace ir;

namespace {
/// Of one run of a region; a loop counts as eight rounds.
uint64_t operations_of(const Region* region) {
  uint64_t sum = 0;
  for (const Inst* inst = region->first; inst && sum < 1u << 20; inst = inst->next) {
    const bool repeats = inst->op == Op::loop || inst->op == Op::while_;
    sum += info(inst->op).library ? 16 : 1;
    for (const Region* r : inst->regions) sum += operations_of(r) * (repeats ? 8 : 1);
  }
  return sum;
}

uint64_t aligned(uint64_t n) { return (n + 63) / 64 * 64; }

std::atomic<VariantHook> variant_hook = nullptr;
}  // namespace

void set_variant_hook(VariantHook hook) { variant_hook = hook; }

Prepared prepare(const Kernel& kernel, const Signature& signature, const Target& target) {
  if (signature.modes.strict) expect_ordered(kernel, signature);
  std::unique_ptr<Kernel> copy = clone(kernel);
  copy->modes = signature.modes;
  if (target.optimise)
    optimise(*copy);
  else
    split(*copy);
  std::vector<uint64_t> operations;
  for (const Task& task : copy->tasks) operations.push_back(operations_of(task.body));
  if (target.traits.walk != Task::unlowered)
    lower(*copy, signature, target.traits);
  else
    bind(*copy, signature);
  if (target.traits.walk == Task::unlowered && target.traits.stoppable) add_stop_sites(*copy);
  operations.resize(copy->tasks.size());  // lowering adds tasks that combine
  return {std::move(copy), std::move(operations)};
}

Variant::Variant(std::shared_ptr<Device> on, std::shared_ptr<const Kernel> source,
                 const Signature& signature)
    : device(std::move(on)), source_(std::move(source)), signature_(signature) {
  const Target& target = device->target();
  if (signature.modes.strict && !target.strict_refusal.empty())
    throw Error(source_->loc, "strict mode cannot be kept on device " + device->name() + ": " +
                                  target.strict_refusal);
  if (VariantHook hook = variant_hook) hook(*source_, signature);
  Prepared prepared = prepare(*source_, signature, target);
  kernel = std::move(prepared.kernel);
  reporter = std::make_shared<Reporter>(Reporter{kernel->name, kernel->sites});
  layout = abi::layout(*kernel);
  frame_offset = uint32_t(aligned(layout.bytes));
  block_bytes = uint32_t(frame_offset + aligned(kernel->frame_bytes()));
  takes_value = ir::takes_value(*kernel, target.traits);
  for (size_t k = 0; k < kernel->tasks.size(); k++) {
    Plan plan{std::nullopt, prepared.operations[k]};
    if (const Region* domain = kernel->tasks[k].domain)
      plan.domain.emplace(*kernel, domain, layout);
    plans.push_back(std::move(plan));
  }
  Driver& driver = device->driver();
  executable = driver.load(*kernel, driver.compiler().compile(*kernel, target));
}

const Executable& Variant::wide() {
  std::call_once(compile_wide_, [&] {
    Signature signature = signature_;
    signature.wide = true;
    Driver& driver = device->driver();
    std::unique_ptr<Kernel> lowered = prepare(*source_, signature, device->target()).kernel;
    wide_ = driver.load(*lowered, driver.compiler().compile(*lowered, device->target()));
  });
  return *wide_;
}

Variant::~Variant() {
  std::vector<Address> memory;
  for (auto& block : free_) {
    if (block->memory) memory.push_back(block->memory);
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
      // What the host does not write itself follows the launch before, as all commands do.
      if (candidate->host && !driver.done(candidate->last)) continue;
      std::swap(candidate, self->free_.back());
      block = std::move(self->free_.back());
      self->free_.pop_back();
      break;
    }
  }
  if (!block) {
    block = std::make_unique<Block>();
    const uint32_t bytes =
        self->takes_value ? self->block_bytes - self->frame_offset : self->block_bytes;
    if (bytes) block->memory = self->device->allocate(bytes, "a launch's argument block");
    if (!self->takes_value) block->host = driver.host_pointer(block->memory);
    if (block->host) {  // the host writes to it next
      try {
        driver.wait(driver.submit({}));
      } catch (...) {
        self->device->release({&block->memory, 1});
        throw;
      }
    }
    if (!block->host) block->staging.resize(self->block_bytes);
  }
  return {block.release(), [self](Block* b) { self->give_back(std::unique_ptr<Block>(b)); }};
}

void Variant::give_back(std::unique_ptr<Block> block) {
  std::lock_guard lock(mutex_);
  free_.push_back(std::move(block));
}

}  // namespace quern::runtime
