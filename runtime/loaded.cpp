#include "runtime/loaded.h"

namespace quern::runtime {

namespace {
uint32_t aligned(uint32_t n) { return (n + 63) / 64 * 64; }
}  // namespace

Loaded::Loaded(std::shared_ptr<Device> on, std::shared_ptr<const Image> of, WideImage wide)
    : device(std::move(on)),
      image(std::move(of)),
      reporter(std::make_shared<Reporter>(Reporter{image->kernel, image->sites})),
      frame_offset(aligned(image->layout.bytes)),
      block_bytes(frame_offset + aligned(image->frame_bytes)),
      executable(device->driver().load(*image)),
      make_wide_(std::move(wide)) {}

const Executable& Loaded::wide() {
  if (image->made_for.wide) return *executable;
  std::call_once(load_wide_, [&] {
    if (!make_wide_)
      throw Error(image->loc, "kernel '" + image->kernel +
                                  "' was compiled for launches of fewer than 2^31 iterations");
    wide_ = device->driver().load(*make_wide_());
  });
  return *wide_;
}

Loaded::~Loaded() {
  std::vector<Address> memory;
  for (auto& block : free_) {
    if (block->memory) memory.push_back(block->memory);
    if (block->scratch) memory.push_back(block->scratch);
  }
  if (!memory.empty()) device->release(memory);
}

std::shared_ptr<Block> Loaded::take_block(const std::shared_ptr<Loaded>& self) {
  Driver& driver = self->device->driver();
  const bool takes_value = self->image->takes_value;
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
    block->loaded = self.get();
    const uint32_t bytes = takes_value ? self->block_bytes - self->frame_offset : self->block_bytes;
    if (bytes) block->memory = self->device->allocate(bytes, "a launch's argument block");
    if (!takes_value) block->host = driver.host_pointer(block->memory);
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

void Loaded::give_back(std::unique_ptr<Block> block) {
  std::lock_guard lock(mutex_);
  free_.push_back(std::move(block));
}

}  // namespace quern::runtime
