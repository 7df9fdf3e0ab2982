#include "tests/paths/support.h"

#include <stdexcept>

namespace quern::test {

namespace {
/// The libraries are named before anything looks for devices.
const bool named = (setenv("QUERN_CUDA_LIBRARY", QUERN_RECORDING_CUDA, 1),
                    setenv("QUERN_HIP_LIBRARY", QUERN_RECORDING_HIP, 1), true);

void* opened(bool cuda) {
  void* library = dlopen(cuda ? QUERN_RECORDING_CUDA : QUERN_RECORDING_HIP, RTLD_NOW | RTLD_LOCAL);
  if (!library) throw std::runtime_error(dlerror());
  return library;
}

recording::Recorder& recorder(void* library) {
  return *reinterpret_cast<recording::Access*>(dlsym(library, "quern_recording"))(false);
}
}  // namespace

Path::Path(const std::string& backend)
    : is_cuda(named && backend == "cuda"),
      library(opened(is_cuda)),
      device(backend.c_str()),
      log(recorder(library)) {
  log.launches.clear();
  log.first_bytes = 8;
  log.misuse.clear();
}

}  // namespace quern::test
