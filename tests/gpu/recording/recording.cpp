// Built once with the names of CUDA's driver API and once with those of HIP's (QUERN_RECORDING_CUDA
// is 1 or 0).
#include <elf.h>
#include <unistd.h>

#include <cstdio>

#include "tests/gpu/recording/machine.h"

using namespace quern::gpu;
using namespace quern::recording;

#if QUERN_RECORDING_CUDA
#define EXPORT(cuda, hip) extern "C" int cuda
#else
#define EXPORT(cuda, hip) extern "C" int hip
#endif
#define VENDOR_ONLY extern "C"

extern "C" Recorder* quern_recording(bool reset) {
  Recorder& r = recorder();
  std::lock_guard lock(r.mutex);
  if (!reset) return &r;
  std::map<std::string, int> live = std::move(r.live);
  static_cast<Session&>(r) = {};
  r.live = std::move(live);
  state().ran = 0;
  return &r;
}

/// A program that misused the library, or left something behind, does not end well.
__attribute__((destructor)) static void report_misuse() {
  if (!Execution::ends_misused_programs) return;
  if (!recorder().broken)
    for (const auto& [what, count] : recorder().live)
      if (count != 0) misuse(std::to_string(count) + " " + what + " never given back");
  if (recorder().misuse.empty()) return;
  for (const std::string& what : recorder().misuse)
    std::fprintf(stderr, "the interpreter of PTX: misuse of CUDA's driver: %s\n", what.c_str());
  std::fflush(nullptr);  // of what the program has written, _exit would drop the rest
  _exit(70);
}

// ---- devices

EXPORT(cuInit, hipInit)(unsigned) {
  CALL(init);
  return recorder().devices == 0 ? 100 : 0;
}
EXPORT(cuDriverGetVersion, hipRuntimeGetVersion)(int* version) {
  CALL(runtime_version);
  *version = recorder().version;
  return 0;
}
EXPORT(cuDeviceGetCount, hipGetDeviceCount)(int* count) {
  CALL(device_count);
  *count = recorder().devices;
  return *count == 0 && !QUERN_RECORDING_CUDA ? 100 : 0;
}
EXPORT(cuDeviceGetName, hipDeviceGetName)(char* name, int bytes, int) {
  CALL(device_name);
  std::strncpy(name, recorder().name.c_str(), size_t(bytes));
  return 0;
}
EXPORT(cuDeviceTotalMem_v2, hipDeviceTotalMem)(size_t* bytes, int) {
  CALL(device_memory);
  *bytes = recorder().memory;
  return 0;
}
EXPORT(cuDeviceGetAttribute, hipDeviceGetAttribute)(int* value, int attribute, int) {
  CALL(device_attribute);
  const Recorder& r = recorder();
  const std::map<int, int> cuda = {{16, r.multiprocessors},
                                   {1, r.max_threads},
                                   {5, r.max_grid},
                                   {10, r.warp_size},
                                   {8, 49152},
                                   {115, r.pools},
                                   {75, r.capability / 10},
                                   {76, r.capability % 10}};
  const std::map<int, int> hip = {{63, r.multiprocessors}, {56, r.max_threads}, {29, r.max_grid},
                                  {87, r.warp_size},       {74, 65536},         {88, r.pools}};
  const std::map<int, int>& known = QUERN_RECORDING_CUDA ? cuda : hip;
  if (!known.contains(attribute)) return 1;
  *value = known.at(attribute);
  return 0;
}
EXPORT(cuMemGetInfo_v2, hipMemGetInfo)(size_t* free_bytes, size_t* total) {
  CALL(memory_info);
  *total = recorder().memory;
  *free_bytes = *total - state().used;
  return 0;
}

// ---- streams and events

EXPORT(cuStreamCreate, hipStreamCreateWithFlags)(StreamHandle* stream, unsigned flags) {
  CALL(stream_create);
  if (flags != 1) misuse("a stream that blocks");
  auto* made = new Stream{current(), {}, 0, nullptr};
  state().streams.insert(made);
  hand_out(stream, made, "streams");
  return 0;
}
EXPORT(cuStreamDestroy_v2, hipStreamDestroy)(StreamHandle stream) {
  std::lock_guard lock(recorder().mutex);
  call("stream_destroy");
  if (!lives(stream, "the end")) return 400;
  of(stream)->run();
  state().streams.erase(of(stream));
  take_back<Stream>(stream, "streams");
  return 0;
}
EXPORT(cuStreamSynchronize, hipStreamSynchronize)(StreamHandle stream) {
  std::lock_guard lock(recorder().mutex);
  if (of(stream)->capture) misuse("a wait for a stream that records");
  of(stream)->run();  // also where the call fails: nothing runs later
  int failed = call("stream_synchronize");
  return failed ? failed : recorder().broken;
}
EXPORT(cuStreamWaitEvent, hipStreamWaitEvent)(StreamHandle stream, EventHandle event, unsigned) {
  CALL(stream_wait_event);
  if (!lives(stream, "a wait") || !lives(event, "a wait for")) return 400;
  if (of(stream)->capture) misuse("a wait for an event in a graph");
  Stream* other = of(event)->stream;
  uint64_t position = of(event)->position;
  of(stream)->put([=](bool) {
    if (other && state().streams.contains(other)) other->run_to(position);
  });
  return 0;
}
EXPORT(cuEventCreate, hipEventCreateWithFlags)(EventHandle* event, unsigned) {
  CALL(event_create);
  auto* made = new Event{current(), nullptr, 0};
  state().events.insert(made);
  hand_out(event, made, "events");
  return 0;
}
EXPORT(cuEventDestroy_v2, hipEventDestroy)(EventHandle event) {
  std::lock_guard lock(recorder().mutex);
  call("event_destroy");
  if (!lives(event, "the end of")) return 400;
  state().events.erase(of(event));
  take_back<Event>(event, "events");
  return 0;
}
EXPORT(cuEventRecord, hipEventRecord)(EventHandle event, StreamHandle stream) {
  CALL(event_record);
  if (!lives(stream, "an event") || !lives(event, "a record of")) return 400;
  Stream* s = of(stream);
  if (of(event)->device != s->device) misuse("an event of another device's");
  *of(event) = {s->device, s, s->done + s->ops.size()};
  return 0;
}
EXPORT(cuEventQuery, hipEventQuery)(EventHandle event) {
  CALL(event_query);
  if (!lives(event, "a question about")) return 400;
  const Event& e = *of(event);
  if (!e.stream || !state().streams.contains(e.stream) || e.stream->done >= e.position)
    return recorder().broken;
  e.stream->run_one();
  return recorder().broken ? recorder().broken : 600;
}
EXPORT(cuEventSynchronize, hipEventSynchronize)(EventHandle event) {
  CALL(event_synchronize);
  if (!lives(event, "a wait for")) return 400;
  Stream* stream = of(event)->stream;  // whose end ran what was in it
  if (stream && state().streams.contains(stream)) stream->run_to(of(event)->position);
  return recorder().broken;
}
EXPORT(cuEventElapsedTime, hipEventElapsedTime)(float* milliseconds, EventHandle, EventHandle) {
  CALL(event_elapsed);
  *milliseconds = 0;
  return 0;
}

// ---- memory

EXPORT(cuMemAlloc_v2, hipMalloc)(Address* address, size_t bytes) {
  CALL(allocate);
  return allocate(address, bytes, nullptr, current());
}
EXPORT(cuMemFree_v2, hipFree)(Address address) {
  std::lock_guard lock(recorder().mutex);
  call("free");
  release(address);
  return 0;
}
EXPORT(cuMemHostAlloc, hipHostMalloc)(void** memory, size_t bytes, unsigned) {
  CALL(host_allocate);
  *memory = std::malloc(bytes);
  state().pinned[static_cast<std::byte*>(*memory)] = bytes;
  recorder().live["pinned"]++;
  return 0;
}
EXPORT(cuMemFreeHost, hipHostFree)(void* memory) {
  std::lock_guard lock(recorder().mutex);
  call("host_free");
  state().pinned.erase(static_cast<std::byte*>(memory));
  std::free(memory);
  recorder().live["pinned"]--;
  return 0;
}
EXPORT(cuPointerGetAttribute, hipPointerGetAttribute)(void* value, int attribute, Address address) {
  CALL(pointer_attribute);
  auto* at = reinterpret_cast<const std::byte*>(address);
  auto in_memory = state().memory.upper_bound(address);
  if (in_memory != state().memory.begin()) {
    auto& [start, a] = *std::prev(in_memory);
    if (address - start < a.bytes) {
      if (attribute == 1 && QUERN_RECORDING_CUDA) {
        std::memcpy(value, &a.context, sizeof a.context);
        return 0;
      }
      int answer = attribute == 2 ? 2 : a.device;
      if (attribute != 2 && attribute != 9) return 1;
      std::memcpy(value, &answer, sizeof answer);
      return 0;
    }
  }
  auto next = state().pinned.upper_bound(at);
  if (attribute != 2 || next == state().pinned.begin()) return 1;
  auto [start, bytes] = *std::prev(next);
  if (size_t(at - start) >= bytes) return 1;
  unsigned host = 1;
  std::memcpy(value, &host, sizeof host);
  return 0;
}
EXPORT(cuMemcpyHtoDAsync_v2, hipMemcpyHtoDAsync)(Address to, const void* from, size_t bytes,
                                                 StreamHandle stream) {
  CALL(upload);
  of(stream)->put([=, device = of(stream)->device](bool) {
    expect_reached(to, bytes, device);
    if (!recorder().broken) std::memcpy(host_of(to), from, bytes);
  });
  return 0;
}
EXPORT(cuMemcpyDtoHAsync_v2, hipMemcpyDtoHAsync)(void* to, Address from, size_t bytes,
                                                 StreamHandle stream) {
  CALL(download);
  of(stream)->put([=, device = of(stream)->device](bool) {
    expect_reached(from, bytes, device);
    if (!recorder().broken) std::memcpy(to, host_of(from), bytes);
  });
  return 0;
}
EXPORT(cuMemcpyDtoDAsync_v2, hipMemcpyDtoDAsync)(Address to, Address from, size_t bytes,
                                                 StreamHandle stream) {
  CALL(copy);
  if (to < from + bytes && from < to + bytes) misuse("a copy onto itself");
  of(stream)->put([=, device = of(stream)->device](bool) {
    expect_reached(to, bytes, device);
    expect_reached(from, bytes, device);
    if (!recorder().broken) std::memcpy(host_of(to), host_of(from), bytes);
  });
  return 0;
}
EXPORT(cuMemsetD32Async, hipMemsetD32Async)(Address to, unsigned pattern, size_t words,
                                            StreamHandle stream) {
  CALL(fill);
  of(stream)->put([=, device = of(stream)->device](bool) {
    expect_reached(to, words * 4, device);
    if (recorder().broken) return;
    for (size_t k = 0; k < words; k++) std::memcpy(host_of(to) + 4 * k, &pattern, 4);
  });
  return 0;
}
EXPORT(cuDeviceCanAccessPeer, hipDeviceCanAccessPeer)(int* can, int, int) {
  CALL(can_access_peer);
  *can = recorder().peers;
  return 0;
}

EXPORT(cuMemPoolCreate, hipMemPoolCreate)(PoolHandle* pool, const PoolProperties* properties) {
  CALL(pool_create);
  hand_out(pool, new Pool{properties->location.device, {}}, "pools");
  return 0;
}
EXPORT(cuMemPoolDestroy, hipMemPoolDestroy)(PoolHandle pool) {
  std::lock_guard lock(recorder().mutex);
  call("pool_destroy");
  for (auto& [address, a] : state().memory)
    if (a.pool == reinterpret_cast<Pool*>(pool) && !recorder().broken)
      misuse("a pool destroyed with memory in use");
  take_back<Pool>(pool, "pools");
  return 0;
}
EXPORT(cuMemPoolSetAttribute, hipMemPoolSetAttribute)(PoolHandle, int, void*) {
  CALL(pool_set);
  return 0;
}
EXPORT(cuMemPoolTrimTo, hipMemPoolTrimTo)(PoolHandle, size_t) {
  CALL(pool_trim);
  return 0;
}
EXPORT(cuMemPoolSetAccess, hipMemPoolSetAccess)(PoolHandle pool, const PoolAccess* access, size_t) {
  CALL(pool_access);
  reinterpret_cast<Pool*>(pool)->open_to.insert(access->location.device);
  return 0;
}
EXPORT(cuMemAllocFromPoolAsync, hipMallocFromPoolAsync)(Address* address, size_t bytes,
                                                        PoolHandle pool, StreamHandle stream) {
  CALL(pool_allocate);
  if (of(stream)->capture) misuse("an allocation in a graph");
  auto* p = reinterpret_cast<Pool*>(pool);
  return allocate(address, bytes, p, p->device);
}
EXPORT(cuMemFreeAsync, hipFreeAsync)(Address address, StreamHandle stream) {
  std::lock_guard lock(recorder().mutex);
  call("pool_free");
  of(stream)->put([=](bool) { release(address); });
  return recorder().broken;
}

// ---- modules and launches

namespace {
/// An image comes without its size: a text ends in 0, an ELF object with its section headers.
std::string contents(const void* image) {
  auto* bytes = static_cast<const char*>(image);
  if (std::strncmp(bytes, ELFMAG, SELFMAG) != 0) return bytes;
  Elf64_Ehdr head;
  std::memcpy(&head, bytes, sizeof head);
  return {bytes, size_t(head.e_shoff) + size_t(head.e_shnum) * head.e_shentsize};
}

int load(ModuleHandle* module, const void* image, char* log, size_t log_bytes) {
  CALL(load_module);
  std::string text = contents(image);
  if (text.starts_with("bad")) {
    if (log) std::strncpy(log, "line 1: no such instruction", log_bytes);
    return 218;
  }
  auto made = std::make_unique<Module>();
  made->text = text;
  made->device = current();
  std::vector<Address> variables;
  auto variable = [&](size_t bytes) {
    Address at = 0;
    if (allocate(&at, bytes, nullptr, current()) != 0) throw std::bad_alloc();
    variables.push_back(at);
    return Range{at, at + bytes, host_of(at)};
  };
  auto refused = [&](int code) {
    for (Address at : variables) release(at);
    return code;
  };
  try {
    made->program = Execution::load(text, recorder().capability, variable);
  } catch (const std::runtime_error& why) {
    if (log) std::strncpy(log, why.what(), log_bytes - 1);
    return refused(218);
  } catch (const std::bad_alloc&) {
    return refused(2);
  }
  hand_out(module, made.release(), "modules");
  return 0;
}
int best_block(int* block, int limit) {
  CALL(best_block);
  *block = std::min(limit, recorder().best_block);
  return 0;
}
int enable_peer(int peer) {
  CALL(enable_peer);
  return state().peers[current()].insert(peer).second ? 0 : 704;
}
const char* meaning_of(int c) {
  const char* fault = state().execution.fault();
  if (c == recorder().broken && *fault) return fault;
  return c == 700 ? "an illegal memory access was encountered" : nullptr;
}
const char* name_of(int c) {
  switch (c) {
    case 2: return QUERN_RECORDING_CUDA ? "CUDA_ERROR_OUT_OF_MEMORY" : "hipErrorOutOfMemory";
    case 218: return QUERN_RECORDING_CUDA ? "CUDA_ERROR_INVALID_PTX" : "hipErrorInvalidKernelFile";
    case 700: return QUERN_RECORDING_CUDA ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "hipErrorIllegalAddress";
    case 702: return "CUDA_ERROR_LAUNCH_TIMEOUT";
    case 716: return "CUDA_ERROR_MISALIGNED_ADDRESS";
    case 719: return QUERN_RECORDING_CUDA ? "CUDA_ERROR_LAUNCH_FAILED" : "hipErrorLaunchFailure";
    case 999: return "CUDA_ERROR_UNKNOWN";
    default: return nullptr;
  }
}
}  // namespace

EXPORT(cuModuleUnload, hipModuleUnload)(ModuleHandle module) {
  std::lock_guard lock(recorder().mutex);
  call("module_unload");
  for (Address v : reinterpret_cast<Module*>(module)->program.variables) release(v);
  expect_current(reinterpret_cast<Module*>(module)->device, "unloading a module");
  take_back<Module>(module, "modules");
  return 0;
}
EXPORT(cuModuleGetFunction, hipModuleGetFunction)(FunctionHandle* function, ModuleHandle module,
                                                  const char* name) {
  CALL(module_function);
  auto* m = reinterpret_cast<Module*>(module);
  if (!Execution::has(m->program, m->text, name)) return 500;
  state().functions.push_back(std::make_unique<Function>(Function{name, m}));
  *function = reinterpret_cast<FunctionHandle>(state().functions.back().get());
  return 0;
}
EXPORT(cuLaunchKernel, hipModuleLaunchKernel)(FunctionHandle function, unsigned grid_x,
                                              unsigned grid_y, unsigned grid_z, unsigned block_x,
                                              unsigned block_y, unsigned block_z,
                                              unsigned shared_bytes, StreamHandle stream,
                                              void** parameters, void** extra) {
  CALL(launch);
  auto* f = reinterpret_cast<Function*>(function);
  expect_current(f->module->device, "a launch");
  if (extra) misuse("extra parameters");
  if (grid_x == 0 || block_x == 0 || int(block_x) > recorder().max_threads) return 1;
  if (!QUERN_RECORDING_CUDA && uint64_t(grid_x) * block_x > UINT32_MAX) return 9;
  Launch l{f->name,
           f->module->text,
           {grid_x, grid_y, grid_z},
           {block_x, block_y, block_z},
           shared_bytes};
  if (reached(reinterpret_cast<Address>(parameters[0]), 1, f->module->device))
    misuse("a parameter that lies in the memory of the device");
  Execution::Work work;
  if (int refused =
          Execution::prepare(work, l, f->module->program, recorder().first_bytes, parameters))
    return refused;
  l.device = of(stream)->device;
  of(stream)->put([l, work](bool in_graph) { run_kernel(l, work, in_graph); });
  return 0;
}
EXPORT(cuOccupancyMaxActiveBlocksPerMultiprocessor,
       hipModuleOccupancyMaxActiveBlocksPerMultiprocessor)(int* blocks, FunctionHandle, int,
                                                           size_t) {
  CALL(resident_blocks);
  *blocks = recorder().resident;
  return 0;
}
EXPORT(cuFuncGetAttribute, hipFuncGetAttribute)(int* value, int attribute, FunctionHandle) {
  CALL(function_attribute);
  *value = attribute == 0 ? recorder().max_threads : 0;
  return 0;
}

// ---- graphs

EXPORT(cuStreamBeginCapture_v2, hipStreamBeginCapture)(StreamHandle stream, int) {
  CALL(capture_begin);
  of(stream)->capture = std::make_shared<std::vector<Op>>();
  return 0;
}
EXPORT(cuStreamEndCapture, hipStreamEndCapture)(StreamHandle stream, GraphHandle* graph) {
  std::lock_guard lock(recorder().mutex);
  Graph recorded = std::move(of(stream)->capture);
  if (int failed = call("capture_end")) return failed;
  hand_out(graph, new Graph(std::move(recorded)), "graphs");
  return 0;
}
EXPORT(cuGraphInstantiate_v2, hipGraphInstantiate)(GraphExecHandle* exec, GraphHandle graph, void*,
                                                   char*, size_t) {
  CALL(graph_instantiate);
  hand_out(exec, new Exec{*reinterpret_cast<Graph*>(graph)}, "executable graphs");
  return 0;
}
EXPORT(cuGraphDestroy, hipGraphDestroy)(GraphHandle graph) {
  std::lock_guard lock(recorder().mutex);
  call("graph_destroy");
  take_back<Graph>(graph, "graphs");
  return 0;
}
EXPORT(cuGraphLaunch, hipGraphLaunch)(GraphExecHandle handle, StreamHandle stream) {
  CALL(graph_launch);
  auto* exec = reinterpret_cast<Exec*>(handle);
  exec->waiting++;
  of(stream)->put([exec](bool) {
    exec->waiting--;
    for (const Op& op : *exec->graph) op(true);
  });
  return 0;
}
EXPORT(cuGraphExecDestroy, hipGraphExecDestroy)(GraphExecHandle exec) {
  std::lock_guard lock(recorder().mutex);
  call("graph_exec_destroy");
  if (reinterpret_cast<Exec*>(exec)->waiting && !recorder().broken)
    misuse("a graph destroyed before it ran");
  take_back<Exec>(exec, "executable graphs");
  return 0;
}

// ---- where the vendors differ

#if QUERN_RECORDING_CUDA
VENDOR_ONLY int cuDevicePrimaryCtxRetain(Context* context, int device) {
  CALL(retain);
  *context = reinterpret_cast<Context>(uintptr_t(device + 1));
  recorder().live["contexts"]++;
  return 0;
}
VENDOR_ONLY int cuDevicePrimaryCtxRelease_v2(int) {
  std::lock_guard lock(recorder().mutex);
  recorder().live["contexts"]--;
  return 0;
}
VENDOR_ONLY int cuCtxPushCurrent_v2(Context context) {
  CALL(enter);
  recorder().live["entered contexts"]++;
  // The primary context of device k is k + 1; what differs above the low byte is another.
  current_devices.push_back(int(reinterpret_cast<uintptr_t>(context) & 0xff) - 1);
  current_contexts.push_back(reinterpret_cast<uintptr_t>(context));
  return 0;
}
VENDOR_ONLY int cuCtxPopCurrent_v2(Context*) {
  std::lock_guard lock(recorder().mutex);
  recorder().live["entered contexts"]--;
  current_devices.pop_back();
  current_contexts.pop_back();
  return 0;
}
VENDOR_ONLY int cuModuleLoadDataEx(ModuleHandle* module, const void* image, unsigned count,
                                   int* options, void** values) {
  if (count != 2 || options[0] != 5 || options[1] != 6) misuse("options of a compilation");
  return load(module, image, static_cast<char*>(values[0]), reinterpret_cast<uintptr_t>(values[1]));
}
VENDOR_ONLY int cuOccupancyMaxPotentialBlockSize(int* grid, int* block, FunctionHandle,
                                                 size_t (*)(int), size_t, int limit) {
  *grid = 1;
  return best_block(block, limit);
}
VENDOR_ONLY int cuCtxEnablePeerAccess(Context peer, unsigned) {
  return enable_peer(int(reinterpret_cast<uintptr_t>(peer)) - 1);
}
VENDOR_ONLY int cuGetErrorName(int c, const char** name) {
  *name = name_of(c);
  return *name ? 0 : 1;
}
VENDOR_ONLY int cuGetErrorString(int c, const char** meaning) {
  *meaning = meaning_of(c);
  return *meaning ? 0 : 1;
}
#else
VENDOR_ONLY int hipGetDevice(int* device) {
  CALL(enter);
  *device = current();
  return 0;
}
VENDOR_ONLY int hipSetDevice(int device) {
  std::lock_guard lock(recorder().mutex);
  recorder().live["threads on another device"] += (device != 0) - (current() != 0);
  current_devices.back() = device;
  return 0;
}
VENDOR_ONLY int hipGetDevicePropertiesR0600(void* properties, int) {
  CALL(architecture);
  std::strcpy(static_cast<char*>(properties) + 1160, recorder().architecture.c_str());
  return 0;
}
VENDOR_ONLY int hipModuleLoadData(ModuleHandle* module, const void* image) {
  return load(module, image, nullptr, 0);
}
VENDOR_ONLY int hipModuleOccupancyMaxPotentialBlockSize(int* grid, int* block, FunctionHandle,
                                                        size_t, int limit) {
  *grid = 1;
  return best_block(block, limit);
}
VENDOR_ONLY int hipDeviceEnablePeerAccess(int peer, unsigned) { return enable_peer(peer); }
VENDOR_ONLY const char* hipGetErrorName(int c) { return name_of(c); }
VENDOR_ONLY const char* hipGetErrorString(int c) { return meaning_of(c); }
#endif

// Each has the type that the table says.
#if QUERN_RECORDING_CUDA
#define QUERN_COMPARE(name, cuda, hip, parameters) \
  static_assert(std::is_same_v<decltype(&cuda), decltype(Api::name)>);
#else
#define QUERN_COMPARE(name, cuda, hip, parameters) \
  static_assert(std::is_same_v<decltype(&hip), decltype(Api::name)>);
#endif
QUERN_GPU_FUNCTIONS(QUERN_COMPARE)
QUERN_GPU_POOL_FUNCTIONS(QUERN_COMPARE)
