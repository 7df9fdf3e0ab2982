#include "backends/gpu/module.h"

#include <algorithm>
#include <string_view>

#include "quern/ir/abi.h"

namespace quern::gpu {

namespace {
/// Larger blocks gain no residency on the devices there are, and leave more threads idle at the
/// end.
constexpr int largest_block = 256;
constexpr uint32_t chunk_block = 64;
/// Blocks are started for this many times the threads that are resident at once: where some take
/// longer, others even that out. Where the threads of a block combine what they have, for these
/// only: fewer blocks combine.
constexpr uint64_t rounds = 4;

uint64_t divide_up(uint64_t a, uint64_t b) { return a / b + (a % b != 0); }
}  // namespace

// ---- modules

Module::Module(std::shared_ptr<Gpu> gpu, std::span<const std::byte> code)
    : image(code.begin(), code.end()), gpu_(std::move(gpu)) {
  if (image.empty()) throw InternalError("an empty image");
  std::string log;
  Code c = gpu_->api->load_module(&handle_, image, log);
  if (c == code::success) return;
  fail(*gpu_->api, c, "loading a kernel" + (log.empty() ? "" : " (" + log + ")"));
}

Module::~Module() {
  Current current(*gpu_);
  gpu_->api->module_unload(handle_);
}

FunctionHandle Module::function(const std::string& name) const {
  FunctionHandle found = nullptr;
  Code c = gpu_->api->module_function(&found, handle_, name.c_str());
  if (c == code::not_found) throw InternalError("an image without the function " + name);
  gpu_->expect(c, "finding a function");
  return found;
}

std::shared_ptr<const Module> Modules::load(const std::shared_ptr<Gpu>& gpu,
                                            std::span<const std::byte> image) {
  size_t hash =
      std::hash<std::string_view>()({reinterpret_cast<const char*>(image.data()), image.size()});
  std::lock_guard lock(mutex_);
  std::erase_if(known_, [](auto& known) { return known.second.expired(); });
  auto [first, last] = known_.equal_range(hash);
  for (auto known = first; known != last; ++known)
    if (auto module = known->second.lock())
      if (std::ranges::equal(module->image, image)) return module;
  auto module = std::make_shared<const Module>(gpu, image);
  known_.emplace(hash, module);
  return module;
}

// ---- programs

Program::Program(std::shared_ptr<Gpu> gpu, const runtime::Image& image,
                 std::shared_ptr<const Module> module)
    : takes_value(image.takes_value), gpu_(std::move(gpu)), module_(std::move(module)) {
  kernels = {image.kernel};
  for (size_t k = 0; k < image.tasks.size(); k++)
    tasks_.push_back(prepare(image.tasks[k], module_->function(runtime::task_symbol(k))));
}

Program::Task Program::prepare(const runtime::Image::Task& task, FunctionHandle function) const {
  Task t{function, task.kind, task.walk};
  if (t.kind == ir::Task::serial) return t;
  const Api& api = *gpu_->api;
  int most = 0;
  gpu_->expect(api.function_attribute(&most, flag::function_max_threads, function),
               "asking about a function");
  most = std::min(most, int(gpu_->properties.max_threads));
  if (t.walk == ir::Task::chunked) {
    t.block = std::min<uint32_t>(chunk_block, uint32_t(most));
    return t;
  }
  t.lanes = task.lanes;
  t.once = task.once;
  t.fixed = task.block_size != 0;
  if (t.fixed) {
    t.block = task.block_size;
    if (t.block > uint32_t(most))
      throw Error(task.loc, "a block of " + std::to_string(t.block) + " iterations; " +
                                gpu_->properties.name + " runs at most " + std::to_string(most) +
                                " of this loop");
  } else {
    int best = 0;
    gpu_->expect(api.best_block(&best, function, std::min(most, largest_block)),
                 "choosing the size of blocks");
    t.block = uint32_t(std::max(best, 1));
  }
  int resident = 0;
  gpu_->expect(api.resident_blocks(&resident, function, int(t.block), 0),
               "asking how many blocks run at once");
  t.resident = uint64_t(std::max(resident, 1)) * gpu_->properties.multiprocessors;
  t.combines = task.combines;
  return t;
}

Geometry Program::geometry(const runtime::Launch& launch) const {
  const Task& task = tasks_.at(launch.task);
  const uint64_t threads = runtime::threads_of(launch.work, task.lanes);
  if (std::holds_alternative<runtime::Serial>(launch.work)) return {1, 1};
  if (threads == 0) return {};
  const bool chunked = std::holds_alternative<runtime::Chunked>(launch.work);
  uint32_t block = task.block;
  const Properties& device = gpu_->properties;
  while (!task.fixed && block > device.warp_size &&
         divide_up(threads, block) < device.multiprocessors)
    block = std::max(block / 2, device.warp_size);
  uint64_t limit = device.max_grid;
  if (gpu_->api->grid_in_threads) limit = std::min<uint64_t>(limit, UINT32_MAX / block);
  uint64_t grid = divide_up(threads, block);
  const bool whole = chunked || task.once;  // a thread does no more than its own
  if (!whole) {
    limit = std::min(limit, ir::abi::max_threads / block);
    grid = std::min(grid, task.resident * (task.combines ? 1 : rounds));
  }
  if (grid > limit && whole)
    throw Error("a task of " + std::to_string(threads) + " threads is more than " + device.name +
                " starts at once");
  return {uint32_t(std::min(grid, limit)), block};
}

}  // namespace quern::gpu
