#include "backends/rocm/api.h"

#include <elf.h>

#include <cstdlib>
#include <cstring>

#include "backends/gpu/library.h"

namespace quern::rocm {

using gpu::Code;
using gpu::Context;
using gpu::FunctionHandle;
using gpu::ModuleHandle;

namespace {

// hipDeviceProp_t, of which only the name of the architecture is wanted: no attribute gives it.
// Since ROCm 6 the structure of 1472 bytes that hipGetDevicePropertiesR0600 fills in; before, and
// behind the old symbol for ever, another one. (Offsets: computed from hip_runtime_api.h 6.3, and
// as tinygrad's generated bindings have them; of the old one as deployed Python bindings read it.)
constexpr size_t properties_room = 8192, name_bytes = 256;
constexpr size_t arch_name = 1160, arch_name_before_6 = 396;

/// A code object whose end is missing: HIP would read beyond what there is.
bool is_cut_short(std::span<const std::byte> image) {
  Elf64_Ehdr header;
  if (image.size() < SELFMAG || std::memcmp(image.data(), ELFMAG, SELFMAG) != 0) return false;
  if (image.size() < sizeof header) return true;
  std::memcpy(&header, image.data(), sizeof header);
  uint64_t sections = uint64_t(header.e_shentsize) * header.e_shnum;
  return header.e_shoff > image.size() || sections > image.size() - header.e_shoff;
}

/// What ROCm 5 says where there is no device at all.
constexpr Code invalid_device = 101;

class Hip final : public gpu::Api {
 public:
  Hip() {
    vendor = "HIP";
    // Of hipDeviceAttribute_t in hip_runtime_api.h 6.3 (and of ROCm 7's, as tinygrad's bindings
    // have them).
    attributes = {.multiprocessors = 63,
                  .max_threads = 56,
                  .max_grid_x = 29,
                  .warp_size = 87,
                  .shared_bytes = 74,
                  .pools = 88};
    grid_in_threads = true;
  }

  bool bind(const gpu::Library& library, std::string& why) {
    bool found = true;
#define QUERN_FIND(name, cuda, hip, parameters) found = found && library.find(name, #hip, &why);
    QUERN_GPU_FUNCTIONS(QUERN_FIND)
#undef QUERN_FIND
#define QUERN_FIND(name, cuda, hip, parameters) library.find(name, #hip, nullptr);
    QUERN_GPU_POOL_FUNCTIONS(QUERN_FIND)
#undef QUERN_FIND
    arch_name_ = arch_name;
    if (!library.find(properties_, "hipGetDevicePropertiesR0600", nullptr)) {
      found = found && library.find(properties_, "hipGetDeviceProperties", &why);
      arch_name_ = arch_name_before_6;
      host_memory = 0;  // hipMemoryTypeHost; ROCm 6 put hipMemoryTypeUnregistered before it
    }
    return found && library.find(set_device_, "hipSetDevice", &why) &&
           library.find(get_device_, "hipGetDevice", &why) &&
           library.find(load_, "hipModuleLoadData", &why) &&
           library.find(best_block_, "hipModuleOccupancyMaxPotentialBlockSize", &why) &&
           library.find(enable_peer_, "hipDeviceEnablePeerAccess", &why) &&
           library.find(error_name_, "hipGetErrorName", &why) &&
           library.find(error_meaning_, "hipGetErrorString", &why);
  }

  // A device's primary context is always there.
  Code retain(Context*, int) const override { return gpu::code::success; }
  Code release(int) const override { return gpu::code::success; }
  Code enter(Context, int device, int* before) const override {
    Code c = get_device_(before);
    return c == gpu::code::success && *before != device ? set_device_(device) : c;
  }
  void leave(int before) const override { set_device_(before); }

  Code load_module(ModuleHandle* module, std::span<const std::byte> image,
                   std::string&) const override {
    if (is_cut_short(image)) return gpu::code::invalid_image;
    return load_(module, image.data());
  }

  Code best_block(int* block, FunctionHandle function, int limit) const override {
    int grid = 0;
    return best_block_(&grid, block, function, 0, limit);
  }

  Code enable_peer(Context, int peer_device) const override { return enable_peer_(peer_device, 0); }

  Code architecture(std::string& name, int device) const override {
    std::string all(properties_room, '\0');
    Code c = properties_(all.data(), device);
    name = all.substr(arch_name_, name_bytes);
    name.resize(name.find('\0'));
    return c;
  }

  std::string error_text(Code c) const override {
    const char *name = error_name_(c), *meaning = error_meaning_(c);
    if (!name) return "hipError_t " + std::to_string(c);
    bool more = meaning && std::strcmp(name, meaning) != 0;
    return std::string(name) + (more ? " (" + std::string(meaning) + ")" : "");
  }

 private:
  size_t arch_name_ = 0;
  Code (*properties_)(void*, int) = nullptr;
  Code (*set_device_)(int) = nullptr;
  Code (*get_device_)(int*) = nullptr;
  Code (*load_)(ModuleHandle*, const void*) = nullptr;
  Code (*best_block_)(int*, int*, FunctionHandle, size_t, int) = nullptr;
  Code (*enable_peer_)(int, unsigned) = nullptr;
  const char* (*error_name_)(Code) = nullptr;
  const char* (*error_meaning_)(Code) = nullptr;
};

bool start(const gpu::Api& hip, std::string& why) {
  Code c = hip.init(0);
  if (c == gpu::code::success) return true;
  bool none = c == gpu::code::no_device || c == invalid_device;
  why = none ? "no HIP device is present" : "the HIP runtime does not start: " + hip.error_text(c);
  return false;
}

}  // namespace

std::shared_ptr<const gpu::Api> load_api(std::initializer_list<std::string> names,
                                         std::string& why) {
  gpu::Library library;
  std::string reason;
  if (!library.open(names, reason)) {
    why = "no HIP runtime: " + reason;
    return nullptr;
  }
  auto hip = std::make_shared<Hip>();
  if (!hip->bind(library, reason)) {
    why = "the HIP runtime is too old: " + reason;
    return nullptr;
  }
  if (!start(*hip, why)) return nullptr;
  return hip;
}

std::shared_ptr<const gpu::Api> api(std::string& why) {
  // Never destroyed: at exit the runtime's library may be gone before a static of this one.
  static auto& reason = *new std::string;
  static const auto& loaded = *new std::shared_ptr<const gpu::Api>([] {
    const char* named = std::getenv("QUERN_HIP_LIBRARY");
    if (named && *named) return load_api({named}, reason);
    return load_api({"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"}, reason);
  }());
  why = reason;
  return loaded;
}

}  // namespace quern::rocm
