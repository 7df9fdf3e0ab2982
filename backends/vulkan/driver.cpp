#include "backends/vulkan/driver.h"

#include <algorithm>
#include <cstring>

#include "backends/vulkan/grid.h"
#include "quern/error.h"
#include "quern/ir/abi.h"

namespace quern::vulkan {

using runtime::Address;
using runtime::Ticket;

namespace {

constexpr uint64_t staging_bytes = 4 << 20;

class Executable : public runtime::Executable {
 public:
  explicit Executable(std::shared_ptr<const Pipelines> p) : pipelines(std::move(p)) {}
  std::shared_ptr<const Pipelines> pipelines;
};

}  // namespace

Driver::Driver(std::shared_ptr<Instance> instance, const Adapter& adapter)
    : gpu_(std::make_shared<Gpu>(std::move(instance), adapter)),
      target_(adapter.target()),
      fields_(gpu_, adapter.memory_type, adapter.mapped),
      staging_(gpu_, adapter.staging_type, true) {
  auto type = structure<VkSemaphoreTypeCreateInfo>(VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO);
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  auto info = structure<VkSemaphoreCreateInfo>(VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO);
  info.pNext = &type;
  expect(gpu_->CreateSemaphore(gpu_->handle, &info, nullptr, &semaphore_), "vkCreateSemaphore");
  auto pool = structure<VkCommandPoolCreateInfo>(VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO);
  pool.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
  pool.queueFamilyIndex = adapter.queue_family;
  VkResult result = gpu_->CreateCommandPool(gpu_->handle, &pool, nullptr, &pool_);
  if (result != VK_SUCCESS) gpu_->DestroySemaphore(gpu_->handle, semaphore_, nullptr);
  expect(result, "vkCreateCommandPool");
  if (adapter.abilities.mesa_software) {
    fault_ = staging_.allocate(sizeof(CutLoop));
    std::memset(staging_.find(fault_, sizeof(CutLoop)).host, 0, sizeof(CutLoop));
  }
}

Driver::~Driver() {
  gpu_->DeviceWaitIdle(gpu_->handle);
  running_.clear();
  gpu_->DestroyCommandPool(gpu_->handle, pool_, nullptr);
  gpu_->DestroySemaphore(gpu_->handle, semaphore_, nullptr);
}

Address Driver::allocate(uint64_t bytes, uint32_t) {
  {
    std::lock_guard lock(mutex_);
    retire();
  }
  Address at = fields_.allocate(bytes);
  gpu_->expect_silence();
  return at;
}

void Driver::release(Address address, uint32_t) {
  std::lock_guard lock(mutex_);
  retire();
  if (running_.empty())
    fields_.release(address);
  else
    running_.back().released.push_back(address);
}

std::unique_ptr<runtime::Executable> Driver::load(const runtime::Image& image) {
  runtime::expect_runs(image, target_, runs_on);
  auto pipelines = std::make_shared<Pipelines>(gpu_, image);
  {
    std::lock_guard lock(mutex_);
    pipelines->id = next_id_++;
    if (fault_) ids_[pipelines->id] = {pipelines, pipelines->name, pipelines->loops};
  }
  gpu_->expect_silence();
  return std::make_unique<Executable>(std::move(pipelines));
}

// ---- submission

VkCommandBuffer Driver::take_buffer() {
  if (idle_.empty()) {
    auto info =
        structure<VkCommandBufferAllocateInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO);
    info.commandPool = pool_;
    info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
    info.commandBufferCount = 1;
    VkCommandBuffer buffer = nullptr;
    expect(gpu_->AllocateCommandBuffers(gpu_->handle, &info, &buffer), "vkAllocateCommandBuffers");
    return buffer;
  }
  VkCommandBuffer buffer = idle_.back();
  idle_.pop_back();
  return buffer;
}

Ticket Driver::submit(std::span<const runtime::Command> commands, const runtime::Order&) {
  std::lock_guard lock(mutex_);
  retire();
  if (commands.empty()) return {0, last_};
  Submission s;
  s.buffer = take_buffer();
  try {
    auto begin = structure<VkCommandBufferBeginInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO);
    begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
    expect(gpu_->BeginCommandBuffer(s.buffer, &begin), "vkBeginCommandBuffer");
    for (const runtime::Command& command : commands) {
      barrier(s.buffer, false);
      std::visit([&](const auto& c) { record(s, c); }, command);
    }
    barrier(s.buffer, true);
    expect(gpu_->EndCommandBuffer(s.buffer), "vkEndCommandBuffer");
    uint64_t value = last_ + 1;
    auto timeline =
        structure<VkTimelineSemaphoreSubmitInfo>(VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO);
    timeline.signalSemaphoreValueCount = 1;
    timeline.pSignalSemaphoreValues = &value;
    auto info = structure<VkSubmitInfo>(VK_STRUCTURE_TYPE_SUBMIT_INFO);
    info.pNext = &timeline;
    info.commandBufferCount = 1;
    info.pCommandBuffers = &s.buffer;
    info.signalSemaphoreCount = 1;
    info.pSignalSemaphores = &semaphore_;
    expect(gpu_->QueueSubmit(gpu_->queue, 1, &info, nullptr), "vkQueueSubmit");
  } catch (...) {
    gpu_->ResetCommandBuffer(s.buffer, 0);
    idle_.push_back(s.buffer);
    for (Address a : s.released) fields_.release(a);
    throw;
  }
  s.number = ++last_;
  running_.push_back(std::move(s));
  gpu_->expect_silence();
  return {0, last_};
}

/// What ran before is done and seen by what follows (or by the host).
void Driver::barrier(VkCommandBuffer buffer, bool to_host) {
  auto memory = structure<VkMemoryBarrier>(VK_STRUCTURE_TYPE_MEMORY_BARRIER);
  memory.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
  memory.dstAccessMask = to_host ? VkAccessFlags(VK_ACCESS_HOST_READ_BIT)
                                 : VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT |
                                       VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
  VkPipelineStageFlags device =
      VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
  gpu_->CmdPipelineBarrier(buffer, device,
                           to_host ? VkPipelineStageFlags(VK_PIPELINE_STAGE_HOST_BIT) : device, 0,
                           1, &memory, 0, nullptr, 0, nullptr);
}

/// Invocations that keep a device busy; each of 2^31 iterations' share is below the 65,535 rounds of
/// Mesa's software device.
constexpr uint64_t busy = 1 << 16;

void Driver::record(Submission& s, const runtime::Launch& launch) {
  const auto& pipelines = static_cast<const Executable*>(launch.executable)->pipelines;
  const Pipelines::Task& task = pipelines->tasks.at(launch.task);
  const bool strides = std::holds_alternative<runtime::Elements>(launch.work) ||
                       std::holds_alternative<runtime::Combining>(launch.work);
  const uint64_t threads = runtime::threads_of(launch.work, task.lanes);
  if (threads == 0) return;
  uint64_t groups = threads / task.group + (threads % task.group != 0);
  if (task.combines) {
    uint64_t few = target_.workers;
    // Mesa's software device ends an invocation's loops after 65,535 rounds in all.
    if (gpu_->adapter.abilities.mesa_software) few = std::max(few, groups / 16);
    groups = std::min(groups, few);
  }
  const auto* elements = std::get_if<runtime::Elements>(&launch.work);
  if (elements && elements->is_bound) groups = std::min(groups, busy / task.group);
  const Grid grid = spread(groups, task.group, gpu_->adapter.max_groups, strides);
  if (grid.x == 0)
    throw Error("a task of " + std::to_string(threads) + " chunks is more than " +
                gpu_->adapter.name + " starts at once");
  const auto [amount, by, more] = runtime::words_of(launch.work);
  const PushConstants constants{launch.args, launch.guard | (launch.asks ? ir::abi::asks_bit : 0),
                                amount,      by,
                                more,        fault_,
                                fault_,      pipelines->id};
  gpu_->CmdBindPipeline(s.buffer, VK_PIPELINE_BIND_POINT_COMPUTE, task.pipeline);
  gpu_->CmdPushConstants(s.buffer, gpu_->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof constants,
                         &constants);
  gpu_->CmdDispatch(s.buffer, grid.x, grid.y, 1);
  s.kept.push_back(pipelines);
}

Memory::Place Driver::place(Address address, uint64_t bytes) const {
  Memory::Place p = fields_.find(address, bytes);
  if (!p.buffer) p = staging_.find(address, bytes);
  if (!p.buffer)
    throw InternalError("no device memory of " + std::to_string(bytes) + " bytes at address " +
                        std::to_string(address));
  return p;
}

void Driver::record(Submission& s, const runtime::Copy& copy) {
  if (copy.bytes == 0 || copy.to == copy.from) return;
  bool apart = copy.to + copy.bytes <= copy.from || copy.from + copy.bytes <= copy.to;
  if (apart) return copy_apart(s.buffer, copy.to, copy.from, copy.bytes);
  place(copy.from, copy.bytes);  // refused before room is made
  place(copy.to, copy.bytes);
  Address between = fields_.allocate(copy.bytes);
  s.released.push_back(between);
  copy_apart(s.buffer, between, copy.from, copy.bytes);
  barrier(s.buffer, false);
  copy_apart(s.buffer, copy.to, between, copy.bytes);
}

void Driver::copy_apart(VkCommandBuffer buffer, Address to, Address from, uint64_t bytes) {
  Memory::Place source = place(from, bytes), target = place(to, bytes);
  VkBufferCopy region{source.offset, target.offset, bytes};
  gpu_->CmdCopyBuffer(buffer, source.buffer, target.buffer, 1, &region);
}

void Driver::record(Submission& s, const runtime::Fill& fill) {
  if (fill.bytes == 0) return;
  Memory::Place target = place(fill.to, fill.bytes);
  gpu_->CmdFillBuffer(s.buffer, target.buffer, target.offset, fill.bytes, fill.pattern);
}

void Driver::retire() {
  if (running_.empty()) return;
  uint64_t reached = 0;
  expect(gpu_->GetSemaphoreCounterValue(gpu_->handle, semaphore_, &reached),
         "vkGetSemaphoreCounterValue");
  while (!running_.empty() && running_.front().number <= reached) {
    Submission& s = running_.front();
    for (Address a : s.released) fields_.release(a);
    idle_.push_back(s.buffer);
    running_.pop_front();
  }
}

bool Driver::done(Ticket ticket) {
  uint64_t reached = 0;
  expect(gpu_->GetSemaphoreCounterValue(gpu_->handle, semaphore_, &reached),
         "vkGetSemaphoreCounterValue");
  return reached >= ticket.number;
}

void Driver::wait(Ticket ticket) {
  auto info = structure<VkSemaphoreWaitInfo>(VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO);
  info.semaphoreCount = 1;
  info.pSemaphores = &semaphore_;
  info.pValues = &ticket.number;
  expect(gpu_->WaitSemaphores(gpu_->handle, &info, UINT64_MAX), "vkWaitSemaphores");
  gpu_->expect_silence();
  if (fault_) expect_whole_loops();
}

void Driver::expect_whole_loops() {
  std::lock_guard lock(mutex_);
  CutLoop cut;
  std::byte* word = staging_.find(fault_, sizeof(CutLoop)).host;
  std::memcpy(&cut, word, sizeof cut);
  if (cut.loop == 0) {
    std::erase_if(ids_, [](auto& known) { return known.second.pipelines.expired(); });
    return;
  }
  std::memset(word, 0, sizeof cut);
  std::string text = " was cut short: " + gpu_->adapter.name +
                     " runs at most 65,535 rounds in all loops of an iteration together";
  const auto known = ids_.find(cut.id);
  if (known == ids_.end()) throw Error("a loop" + text);
  const std::vector<Loc>& loops = known->second.loops.at(cut.task);
  throw Error(cut.loop <= loops.size() ? loops[cut.loop - 1u] : Loc{},
              "a loop of kernel '" + known->second.name + "'" + text);
}

// ---- between host and device

void Driver::wait_all() {
  Ticket last;
  {
    std::lock_guard lock(mutex_);
    last.number = last_;
  }
  wait(last);
}

template <class F>
void Driver::staged(uint64_t bytes, F&& part) {
  uint64_t room = std::min(bytes, staging_bytes);
  Address between = staging_.allocate(room);
  std::byte* host = staging_.find(between, room).host;
  try {
    for (uint64_t first = 0; first < bytes; first += staging_bytes)
      part(first, std::min(staging_bytes, bytes - first), between, host);
  } catch (...) {
    staging_.release(between);
    throw;
  }
  staging_.release(between);
}

void Driver::upload(Address to, std::span<const std::byte> from, uint32_t) {
  if (from.empty()) return;
  if (gpu_->adapter.mapped) {
    wait_all();
    std::memcpy(place(to, from.size()).host, from.data(), from.size());
    return;
  }
  staged(from.size(), [&](uint64_t first, uint64_t bytes, Address between, std::byte* host) {
    std::memcpy(host, from.data() + first, bytes);
    runtime::Command command = runtime::Copy{to + first, between, bytes};
    wait(submit({&command, 1}, {}));
  });
}

void Driver::download(std::span<std::byte> to, Address from, uint32_t) {
  if (to.empty()) return;
  if (gpu_->adapter.mapped) {
    wait_all();
    std::memcpy(to.data(), place(from, to.size()).host, to.size());
    return;
  }
  staged(to.size(), [&](uint64_t first, uint64_t bytes, Address between, std::byte* host) {
    runtime::Command command = runtime::Copy{between, from + first, bytes};
    wait(submit({&command, 1}, {}));
    std::memcpy(to.data() + first, host, bytes);
  });
}

std::byte* Driver::host_pointer(Address address) { return fields_.find(address, 1).host; }

// ---- pipelines

Pipelines::Pipelines(std::shared_ptr<Gpu> on, const runtime::Image& image)
    : gpu(std::move(on)), name(image.kernel) {
  std::vector<Module> modules = unpack(image.code);
  if (modules.size() != image.tasks.size())
    throw InternalError("the code of a kernel of the vulkan back end has " +
                        std::to_string(modules.size()) + " tasks, its image " +
                        std::to_string(image.tasks.size()));
  for (size_t k = 0; k < modules.size(); k++) {
    const runtime::Image::Task& task = image.tasks[k];
    loops.push_back(std::move(modules[k].loops));
    const uint32_t group = group_size(task.kind == ir::Task::serial, task.block_size);
    const uint32_t most = gpu->adapter.max_group_threads;
    if (group > most)
      throw Error(task.loc, "a block of " + std::to_string(group) + " iterations; " +
                                gpu->adapter.name + " runs at most " + std::to_string(most));
    tasks.push_back({nullptr, task.kind, task.walk, task.lanes, group, task.combines});
  }
  try {
    for (size_t k = 0; k < modules.size(); k++) tasks[k].pipeline = make(modules[k].words);
  } catch (...) {
    destroy();
    throw;
  }
}

VkPipeline Pipelines::make(std::span<const uint32_t> words) {
  auto code = structure<VkShaderModuleCreateInfo>(VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO);
  code.codeSize = words.size() * 4;
  code.pCode = words.data();
  VkShaderModule module = nullptr;
  expect(gpu->CreateShaderModule(gpu->handle, &code, nullptr, &module), "vkCreateShaderModule");
  auto info =
      structure<VkComputePipelineCreateInfo>(VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO);
  info.stage = structure<VkPipelineShaderStageCreateInfo>(
      VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO);
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = module;
  info.stage.pName = "main";
  info.layout = gpu->layout;
  VkPipeline pipeline = nullptr;
  VkResult result = gpu->CreateComputePipelines(gpu->handle, nullptr, 1, &info, nullptr, &pipeline);
  gpu->DestroyShaderModule(gpu->handle, module, nullptr);
  expect(result, "vkCreateComputePipelines");
  return pipeline;
}

void Pipelines::destroy() {
  for (Task& t : tasks) gpu->DestroyPipeline(gpu->handle, t.pipeline, nullptr);
}

Pipelines::~Pipelines() { destroy(); }

}  // namespace quern::vulkan
