#include "backends/cpu/loader.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "backends/cpu/object.h"
#include "quern/error.h"
#include "quern/runtime/image.h"

namespace quern::cpu {

namespace {

std::optional<uint64_t> in_process(const std::string& name) {
  dlerror();
  void* found = dlsym(RTLD_DEFAULT, name.c_str());
  if (!found && dlerror()) return std::nullopt;
  return reinterpret_cast<uint64_t>(found);
}

void expect(bool done, const char* what) {
  if (!done)
    throw Error(std::string("the system gives no memory for machine code (") + what +
                "): " + std::strerror(errno));
}

}  // namespace

LoadedObject::LoadedObject(std::span<const std::byte> file, size_t tasks) {
  const Object object(file);
  const size_t page = size_t(sysconf(_SC_PAGESIZE));
  for (int part = 0; part < Object::parts; part++) bytes_ += object.bytes(Object::Part(part), page);
  if (bytes_ == 0) {
    if (tasks > 0) throw InternalError("loading a kernel: an object file without code");
    return;  // a kernel that has nothing to do
  }
  void* at = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  expect(at != MAP_FAILED, "mmap");
  memory_ = static_cast<std::byte*>(at);
  try {
    object.place({memory_, bytes_}, reinterpret_cast<uint64_t>(memory_), page, in_process);
    // Never writable and executable at a time.
    const size_t code = object.bytes(Object::code, page);
    const size_t constants = object.bytes(Object::constants, page);
    expect(code == 0 || mprotect(memory_, code, PROT_READ | PROT_EXEC) == 0, "mprotect");
    expect(constants == 0 || mprotect(memory_ + code, constants, PROT_READ) == 0, "mprotect");
    __builtin___clear_cache(reinterpret_cast<char*>(memory_),
                            reinterpret_cast<char*>(memory_ + code));
    for (size_t k = 0; k < tasks; k++) {
      const std::string name = runtime::task_symbol(k);
      const std::optional<size_t> offset = object.symbol(name, page);
      if (!offset || *offset >= code) throw InternalError("loading a kernel: no function " + name);
      tasks_.push_back(reinterpret_cast<TaskFunction>(memory_ + *offset));
    }
  } catch (...) {
    munmap(memory_, bytes_);
    throw;
  }
}

LoadedObject::~LoadedObject() {
  if (memory_) munmap(memory_, bytes_);
}

}  // namespace quern::cpu
