#pragma once
// CUDA's driver, found at run time.
#include <memory>

#include "backends/gpu/api.h"
#include "backends/gpu/gpu.h"
#include "quern/runtime/backend.h"

namespace quern::cuda {

/// The functions of libcuda.so.1, or of the library that QUERN_CUDA_LIBRARY names; loaded once and
/// kept. Null and a reason where there is none, where it is older than CUDA 11.0, or without a
/// device.
std::shared_ptr<const gpu::Api> api(std::string& why_absent);
/// The same of this library, loaded anew.
std::shared_ptr<const gpu::Api> load_api(const std::string& library, std::string& why_absent);

/// What a device with such properties runs, under a driver of this version (11020 is 11.2).
runtime::Target target_of(const gpu::Properties& device, int driver_version);

/// Devices present, in the driver's order; none and a reason otherwise. Never throws.
std::vector<runtime::Target> devices(std::string& why_absent);
/// Throws Error where the device is not there any more. `compiler` must outlive the driver.
std::unique_ptr<runtime::Driver> open(const runtime::Target& target,
                                      const runtime::Compiler& compiler,
                                      const runtime::Native::Handles* on = nullptr);

}  // namespace quern::cuda
