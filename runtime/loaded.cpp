#include "runtime/loaded.h"

#include <algorithm>

namespace quern::runtime {

namespace {
/// Launches of one kernel with blocks that the host writes: more wait for the first of them.
constexpr size_t most_running = 1024;
/// Blocks that stay filled in for arguments of their own, as fields that take turns are two or
/// three.
constexpr size_t most_filled = 4;

uint32_t aligned(uint32_t n) { return (n + 63) / 64 * 64; }

std::vector<ir::abi::Packed> elements_of(std::span<const Image::Buffer> buffers) {
  std::vector<ir::abi::Packed> all;
  for (const Image::Buffer& b : buffers) all.push_back(ir::abi::packed(b.components));
  return all;
}
}  // namespace

namespace {
std::vector<uint32_t> written_of(std::span<const Image::Parameter> parameters) {
  std::vector<uint32_t> all;
  for (uint32_t k = 0; k < parameters.size(); k++)
    if (parameters[k].writes) all.push_back(k);
  return all;
}

bool follows_from_fields(const HostExpression& e, const Image& image) {
  const auto is_scalar = [&](uint64_t offset) {
    for (size_t k = 0; k < image.parameters.size(); k++)
      if (!image.parameters[k].is_field && image.layout.places[k].value() == offset) return true;
    return false;
  };
  return !e.reads_frame && std::ranges::none_of(e.steps, [&](const HostExpression::Step& s) {
    return s.source == HostExpression::argument && is_scalar(s.imm);
  });
}

bool commands_follow_from_fields(const Image& image) {
  const auto follows = [&](const auto& e) { return !e || follows_from_fields(*e, image); };
  return image.tree_parts.empty() &&
         std::ranges::all_of(image.schedule,
                             [](const ir::Step& s) { return s.kind == ir::Step::launch; }) &&
         std::ranges::all_of(
             image.tasks, [&](const auto& t) { return follows(t.domain) && follows(t.bound); }) &&
         std::ranges::all_of(image.buffers, [&](const Image::Buffer& b) {
           return !b.is_kept && follows_from_fields(b.count, image);
         });
}
}  // namespace

Loaded::Loaded(std::shared_ptr<Device> on, std::shared_ptr<const Image> of, WideImage wide)
    : device(std::move(on)),
      image(std::move(of)),
      reporter(std::make_shared<Reporter>(Reporter{image->kernel, image->sites})),
      frame_offset(aligned(image->layout.bytes)),
      block_bytes(frame_offset + aligned(image->frame_bytes)),
      buffer_elements(elements_of(image->buffers)),
      written(written_of(image->parameters)),
      repeats(commands_follow_from_fields(*image)),
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
  for (auto& block : free_) {
    const uint64_t bytes = memory_bytes();
    if (block->memory) device->release({&block->memory, 1}, {&bytes, 1}, block->queue);
    for (const LaunchMemory::Buffer& buffer : block->buffers)
      if (buffer.address) device->release({&buffer.address, 1}, {&buffer.bytes, 1}, block->queue);
  }
}

Loaded::Taken Loaded::take_memory(uint32_t queue, SameArguments same) {
  std::unique_ptr<LaunchMemory> block = take_free(queue, same);
  if (!block) block = make_memory(queue);
  return Taken(block.release(), GiveBack{this});
}

/// None where a few more may be filled in; kernels with buffers have as few as can be.
Loaded::Free::iterator Loaded::best_of_free(uint32_t queue, SameArguments same) {
  const auto first = std::ranges::find(free_, queue, [](const auto& b) { return b->queue; });
  const bool may_have_own = same != other_arguments && image->buffers.empty();
  if (first == free_.end() || (*first)->arguments == same || !may_have_own) return first;
  const auto last = free_.begin() + ptrdiff_t(std::min(free_.size(), most_filled));
  const auto known = std::find_if(free_.begin(), last, [&](const auto& b) {
    return b->queue == queue && b->arguments == same;
  });
  if (known != last) return known;
  return (*first)->arguments != other_arguments && free_.size() < most_filled ? free_.end() : first;
}

/// Null where a new one is to be made. What the host does not write itself follows the launch
/// before, as all commands of a queue do; where it does, the block that came back first is done
/// first.
std::unique_ptr<LaunchMemory> Loaded::take_free(uint32_t queue, SameArguments same) {
  Driver& driver = device->driver();
  std::unique_ptr<LaunchMemory> block;
  bool is_done = true;
  {
    std::lock_guard lock(mutex_);
    const auto first = best_of_free(queue, same);
    if (first == free_.end()) return nullptr;
    is_done = !(*first)->host || driver.done((*first)->last);
    if (!is_done && free_.size() < most_running) return nullptr;
    block = std::move(*first);
    if (first == free_.begin())
      free_.pop_front();  // cheaper
    else
      free_.erase(first);
  }
  if (!is_done) driver.wait(block->last);
  return block;
}

std::unique_ptr<LaunchMemory> Loaded::make_memory(uint32_t queue) {
  auto block = std::make_unique<LaunchMemory>();
  block->loaded = this;
  block->queue = queue;
  block->buffers.resize(image->buffers.size());
  if (const uint64_t bytes = memory_bytes())
    block->memory = device->allocate(bytes, "a launch's argument block", {}, Device::Contents::any);
  if (!image->takes_value) block->host = device->driver().host_pointer(block->memory);
  if (!block->host) block->staging.resize(block_bytes);
  return block;
}

void Loaded::give_back(std::unique_ptr<LaunchMemory> block) {
  std::lock_guard lock(mutex_);
  free_.push_back(std::move(block));
}

}  // namespace quern::runtime
