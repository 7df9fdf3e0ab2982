#pragma once
// The part of a vendor's GPU interface that Quern calls: CUDA's driver API or HIP's module API,
// which have the same shape function by function. Nothing of a vendor's toolkit is needed to build
// this.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace quern::gpu {

using Code = int;          ///< CUresult, hipError_t: the numbers agree
using Address = uint64_t;  ///< CUdeviceptr, hipDeviceptr_t
using Context = struct OpaqueContext*;
using StreamHandle = struct OpaqueStream*;
using EventHandle = struct OpaqueEvent*;
using ModuleHandle = struct OpaqueModule*;
using FunctionHandle = struct OpaqueFunction*;
using GraphHandle = struct OpaqueGraph*;
using GraphExecHandle = struct OpaqueGraphExec*;
using PoolHandle = struct OpaquePool*;

/// A place of memory: CUmemLocation, hipMemLocation.
struct Location {
  int type = 1;  ///< a device
  int device = 0;
};
/// CUmemPoolProps, hipMemPoolProps.
struct PoolProperties {
  int allocation = 1;  ///< pinned, the only one there is
  int handles = 0;     ///< not exported to other processes
  Location location;
  void* security = nullptr;
  size_t max_bytes = 0;  ///< as many as there are
  unsigned char reserved[56] = {};
};
static_assert(sizeof(PoolProperties) == 88);
/// CUmemAccessDesc, hipMemAccessDesc.
struct PoolAccess {
  Location location;
  int flags = 3;  ///< to read and to write
};

/// F(name, CUDA's symbol, HIP's symbol, parameters). CUDA's are the versioned names that its header
/// maps the plain ones to (cuda.h of 11.0 to 13.0); HIP's are those of hip_runtime_api.h 6.3, all
/// in the library since ROCm 5.2. Where one has a pointer and the other an integer, the integer
/// stands here: both are passed alike on x86-64 and AArch64.
#define QUERN_GPU_FUNCTIONS(F)                                                                     \
  F(init, cuInit, hipInit, (unsigned flags))                                                       \
  F(runtime_version, cuDriverGetVersion, hipRuntimeGetVersion, (int* version))                     \
  F(device_count, cuDeviceGetCount, hipGetDeviceCount, (int* count))                               \
  F(device_name, cuDeviceGetName, hipDeviceGetName, (char* name, int bytes, int device))           \
  F(device_memory, cuDeviceTotalMem_v2, hipDeviceTotalMem, (size_t* bytes, int device))            \
  F(device_attribute, cuDeviceGetAttribute, hipDeviceGetAttribute,                                 \
    (int* value, int attribute, int device))                                                       \
  F(memory_info, cuMemGetInfo_v2, hipMemGetInfo, (size_t* free_bytes, size_t* total_bytes))        \
  F(stream_create, cuStreamCreate, hipStreamCreateWithFlags,                                       \
    (StreamHandle * stream, unsigned flags))                                                       \
  F(stream_destroy, cuStreamDestroy_v2, hipStreamDestroy, (StreamHandle stream))                   \
  F(stream_synchronize, cuStreamSynchronize, hipStreamSynchronize, (StreamHandle stream))          \
  F(stream_wait_event, cuStreamWaitEvent, hipStreamWaitEvent,                                      \
    (StreamHandle stream, EventHandle event, unsigned flags))                                      \
  F(event_create, cuEventCreate, hipEventCreateWithFlags, (EventHandle * event, unsigned flags))   \
  F(event_destroy, cuEventDestroy_v2, hipEventDestroy, (EventHandle event))                        \
  F(event_record, cuEventRecord, hipEventRecord, (EventHandle event, StreamHandle stream))         \
  F(event_query, cuEventQuery, hipEventQuery, (EventHandle event))                                 \
  F(event_synchronize, cuEventSynchronize, hipEventSynchronize, (EventHandle event))               \
  F(event_elapsed, cuEventElapsedTime, hipEventElapsedTime,                                        \
    (float* milliseconds, EventHandle begin, EventHandle end))                                     \
  F(allocate, cuMemAlloc_v2, hipMalloc, (Address * address, size_t bytes))                         \
  F(free, cuMemFree_v2, hipFree, (Address address))                                                \
  F(host_allocate, cuMemHostAlloc, hipHostMalloc, (void** memory, size_t bytes, unsigned flags))   \
  F(host_free, cuMemFreeHost, hipHostFree, (void* memory))                                         \
  F(pointer_attribute, cuPointerGetAttribute, hipPointerGetAttribute,                              \
    (void* value, int attribute, Address address))                                                 \
  F(upload, cuMemcpyHtoDAsync_v2, hipMemcpyHtoDAsync,                                              \
    (Address to, const void* from, size_t bytes, StreamHandle stream))                             \
  F(download, cuMemcpyDtoHAsync_v2, hipMemcpyDtoHAsync,                                            \
    (void* to, Address from, size_t bytes, StreamHandle stream))                                   \
  F(copy, cuMemcpyDtoDAsync_v2, hipMemcpyDtoDAsync,                                                \
    (Address to, Address from, size_t bytes, StreamHandle stream))                                 \
  F(fill, cuMemsetD32Async, hipMemsetD32Async,                                                     \
    (Address to, unsigned pattern, size_t words, StreamHandle stream))                             \
  F(can_access_peer, cuDeviceCanAccessPeer, hipDeviceCanAccessPeer,                                \
    (int* can, int device, int peer))                                                              \
  F(module_unload, cuModuleUnload, hipModuleUnload, (ModuleHandle module))                         \
  F(module_function, cuModuleGetFunction, hipModuleGetFunction,                                    \
    (FunctionHandle * function, ModuleHandle module, const char* name))                            \
  F(launch, cuLaunchKernel, hipModuleLaunchKernel,                                                 \
    (FunctionHandle function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, \
     unsigned block_y, unsigned block_z, unsigned shared_bytes, StreamHandle stream,               \
     void** parameters, void** extra))                                                             \
  F(resident_blocks, cuOccupancyMaxActiveBlocksPerMultiprocessor,                                  \
    hipModuleOccupancyMaxActiveBlocksPerMultiprocessor,                                            \
    (int* blocks, FunctionHandle function, int block, size_t shared_bytes))                        \
  F(function_attribute, cuFuncGetAttribute, hipFuncGetAttribute,                                   \
    (int* value, int attribute, FunctionHandle function))                                          \
  F(capture_begin, cuStreamBeginCapture_v2, hipStreamBeginCapture,                                 \
    (StreamHandle stream, int mode))                                                               \
  F(capture_end, cuStreamEndCapture, hipStreamEndCapture,                                          \
    (StreamHandle stream, GraphHandle * graph))                                                    \
  F(graph_instantiate, cuGraphInstantiate_v2, hipGraphInstantiate,                                 \
    (GraphExecHandle * exec, GraphHandle graph, void* error_node, char* log, size_t log_bytes))    \
  F(graph_destroy, cuGraphDestroy, hipGraphDestroy, (GraphHandle graph))                           \
  F(graph_launch, cuGraphLaunch, hipGraphLaunch, (GraphExecHandle exec, StreamHandle stream))      \
  F(graph_exec_destroy, cuGraphExecDestroy, hipGraphExecDestroy, (GraphExecHandle exec))

/// Allocation in the order of a stream: since CUDA 11.2 and ROCm 5.3. Null where the library has
/// none.
#define QUERN_GPU_POOL_FUNCTIONS(F)                                                     \
  F(pool_create, cuMemPoolCreate, hipMemPoolCreate,                                     \
    (PoolHandle * pool, const PoolProperties* properties))                              \
  F(pool_destroy, cuMemPoolDestroy, hipMemPoolDestroy, (PoolHandle pool))               \
  F(pool_set, cuMemPoolSetAttribute, hipMemPoolSetAttribute,                            \
    (PoolHandle pool, int attribute, void* value))                                      \
  F(pool_trim, cuMemPoolTrimTo, hipMemPoolTrimTo, (PoolHandle pool, size_t kept_bytes)) \
  F(pool_access, cuMemPoolSetAccess, hipMemPoolSetAccess,                               \
    (PoolHandle pool, const PoolAccess* access, size_t count))                          \
  F(pool_allocate, cuMemAllocFromPoolAsync, hipMallocFromPoolAsync,                     \
    (Address * address, size_t bytes, PoolHandle pool, StreamHandle stream))            \
  F(pool_free, cuMemFreeAsync, hipFreeAsync, (Address address, StreamHandle stream))

/// Numbers that both vendors give the same meaning (cuda.h 13.0, hip_runtime_api.h 6.3).
namespace code {
constexpr Code success = 0, out_of_memory = 2, no_device = 100, invalid_image = 200,
               no_binary = 209, invalid_text = 218, unsupported_text = 222, not_found = 500,
               not_ready = 600, peer_access_already_enabled = 704, out_of_resources = 701;
}  // namespace code
namespace flag {
constexpr unsigned stream_non_blocking = 1, event_without_timing = 2, host_portable = 1;
constexpr int capture_relaxed = 2;         ///< other threads' calls do not disturb it
constexpr int function_max_threads = 0;    ///< an attribute of functions
constexpr int pool_release_threshold = 4;  ///< an attribute of pools
constexpr int pointer_context = 1;         ///< attributes of pointers: CUDA only
constexpr int pointer_memory_type = 2;     ///< …
constexpr int pointer_device = 9;          ///< …
}  // namespace flag

/// A vendor's functions. Members are called with the context of `enter` current.
class Api {
 public:
  virtual ~Api() = default;
  Api(const Api&) = delete;

#define QUERN_DECLARE(name, cuda, hip, parameters) Code(*name) parameters = nullptr;
  QUERN_GPU_FUNCTIONS(QUERN_DECLARE)
  QUERN_GPU_POOL_FUNCTIONS(QUERN_DECLARE)
#undef QUERN_DECLARE

  /// What device_attribute calls them: the two vendors' numbers differ.
  struct Attributes {
    int multiprocessors, max_threads, max_grid_x, warp_size, shared_bytes, pools;
  };
  std::string vendor;  ///< "CUDA"
  Attributes attributes{};
  unsigned host_memory = 1;      ///< the memory type of pinned memory
  bool grid_in_threads = false;  ///< blocks times threads of a block must stay below 2^32

  // Where the shapes of the two differ.
  virtual Code retain(Context* context, int device) const = 0;
  virtual Code release(int device) const = 0;
  /// Makes the device the calling thread's; `before` is for leave, which restores what was.
  virtual Code enter(Context context, int device, int* before) const = 0;
  virtual void leave(int before) const = 0;
  virtual Code load_module(ModuleHandle* module, std::span<const std::byte> image,
                           std::string& log) const = 0;
  /// Code for every device that Quern serves of the kernel that Copies launches; empty: none.
  virtual std::string copy_module(size_t /*pieces*/) const { return {}; }
  /// The block size of highest occupancy, at most `limit`.
  virtual Code best_block(int* block, FunctionHandle function, int limit) const = 0;
  /// Lets the current device reach memory of the peer's that is not in a pool.
  virtual Code enable_peer(Context peer, int peer_device) const = 0;
  /// "sm_90", "gfx942:sramecc+:xnack-"
  virtual Code architecture(std::string& name, int device) const = 0;
  /// "CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)"
  virtual std::string error_text(Code c) const = 0;

 protected:
  Api() = default;
};

}  // namespace quern::gpu
