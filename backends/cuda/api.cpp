#include "backends/cuda/api.h"

#include <cstdlib>

#include "backends/cuda/copies.h"
#include "backends/gpu/library.h"

namespace quern::cuda {

using gpu::Code;
using gpu::Context;
using gpu::FunctionHandle;
using gpu::ModuleHandle;

namespace {

constexpr int oldest_version = 11000;

/// Of CUdevice_attribute, CUjit_option in cuda.h (the same in 11.0 and 13.0).
constexpr int compute_capability_major = 75, compute_capability_minor = 76;
constexpr int error_log = 5, error_log_bytes = 6;

class Cuda final : public gpu::Api {
 public:
  Cuda() {
    vendor = "CUDA";
    attributes = {.multiprocessors = 16,
                  .max_threads = 1,
                  .max_grid_x = 5,
                  .warp_size = 10,
                  .shared_bytes = 8,
                  .pools = 115};
  }

  bool bind(const gpu::Library& library, std::string& why) {
    bool found = true;
#define QUERN_FIND(name, cuda, hip, parameters) found = found && library.find(name, #cuda, &why);
    QUERN_GPU_FUNCTIONS(QUERN_FIND)
#undef QUERN_FIND
#define QUERN_FIND(name, cuda, hip, parameters) library.find(name, #cuda, nullptr);
    QUERN_GPU_POOL_FUNCTIONS(QUERN_FIND)
#undef QUERN_FIND
    return found && library.find(retain_, "cuDevicePrimaryCtxRetain", &why) &&
           library.find(release_, "cuDevicePrimaryCtxRelease_v2", &why) &&
           library.find(push_, "cuCtxPushCurrent_v2", &why) &&
           library.find(pop_, "cuCtxPopCurrent_v2", &why) &&
           library.find(load_, "cuModuleLoadDataEx", &why) &&
           library.find(best_block_, "cuOccupancyMaxPotentialBlockSize", &why) &&
           library.find(enable_peer_, "cuCtxEnablePeerAccess", &why) &&
           library.find(error_name_, "cuGetErrorName", &why) &&
           library.find(error_meaning_, "cuGetErrorString", &why);
  }

  Code retain(Context* context, int device) const override { return retain_(context, device); }
  Code release(int device) const override { return release_(device); }
  Code enter(Context context, int, int*) const override { return push_(context); }
  void leave(int) const override {
    Context left = nullptr;
    pop_(&left);
  }

  Code load_module(ModuleHandle* module, std::span<const std::byte> image,
                   std::string& log) const override {
    std::string text(reinterpret_cast<const char*>(image.data()), image.size());  // ends in 0
    log.assign(8192, '\0');
    int options[] = {error_log, error_log_bytes};
    void* values[] = {log.data(), reinterpret_cast<void*>(log.size())};
    Code c = load_(module, text.data(), 2, options, values);
    log.resize(log.find('\0') == std::string::npos ? log.size() : log.find('\0'));
    return c;
  }

  std::string copy_module(size_t pieces) const override { return copies_text(pieces); }

  Code best_block(int* block, FunctionHandle function, int limit) const override {
    int grid = 0;
    return best_block_(&grid, block, function, nullptr, 0, limit);
  }

  Code enable_peer(Context peer, int) const override { return enable_peer_(peer, 0); }

  Code architecture(std::string& name, int device) const override {
    int major = 0, minor = 0;
    Code c = device_attribute(&major, compute_capability_major, device);
    if (c == gpu::code::success) c = device_attribute(&minor, compute_capability_minor, device);
    name = "sm_" + std::to_string(major * 10 + minor);
    return c;
  }

  std::string error_text(Code c) const override {
    const char *name = nullptr, *meaning = nullptr;
    error_name_(c, &name);
    error_meaning_(c, &meaning);
    if (!name) return "CUresult " + std::to_string(c);
    return std::string(name) + (meaning ? " (" + std::string(meaning) + ")" : "");
  }

 private:
  Code (*retain_)(Context*, int) = nullptr;
  Code (*release_)(int) = nullptr;
  Code (*push_)(Context) = nullptr;
  Code (*pop_)(Context*) = nullptr;
  Code (*load_)(ModuleHandle*, const void*, unsigned, int*, void**) = nullptr;
  Code (*best_block_)(int*, int*, FunctionHandle, size_t (*)(int), size_t, int) = nullptr;
  Code (*enable_peer_)(Context, unsigned) = nullptr;
  Code (*error_name_)(Code, const char**) = nullptr;
  Code (*error_meaning_)(Code, const char**) = nullptr;
};

bool start(const gpu::Api& cuda, const std::string& library, std::string& why) {
  Code c = cuda.init(0);
  if (c == gpu::code::no_device) {
    why = "no CUDA device is present";
    return false;
  }
  if (c != gpu::code::success) {
    why = "the CUDA driver does not start: " + cuda.error_text(c);
    return false;
  }
  int version = 0;
  cuda.runtime_version(&version);
  if (version >= oldest_version) return true;
  why = library + " is CUDA " + std::to_string(version / 1000) + "." +
        std::to_string(version % 1000 / 10) + "; 11.0 or newer is needed";
  return false;
}

}  // namespace

std::shared_ptr<const gpu::Api> load_api(const std::string& name, std::string& why) {
  gpu::Library library;
  std::string reason;
  if (!library.open({name}, reason)) {
    why = "no CUDA driver: " + reason;
    return nullptr;
  }
  auto cuda = std::make_shared<Cuda>();
  if (!cuda->bind(library, reason)) {
    why = "the CUDA driver is too old: " + reason;
    return nullptr;
  }
  if (!start(*cuda, name, why)) return nullptr;
  return cuda;
}

std::shared_ptr<const gpu::Api> api(std::string& why) {
  // Never destroyed: at exit the driver's library may be gone before a static of this one.
  static auto& reason = *new std::string;
  static const auto& loaded = *new std::shared_ptr<const gpu::Api>([] {
    const char* named = std::getenv("QUERN_CUDA_LIBRARY");
    return load_api(named && *named ? named : "libcuda.so.1", reason);
  }());
  why = reason;
  return loaded;
}

}  // namespace quern::cuda
