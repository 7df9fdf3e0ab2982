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

/// What runs on a device of this architecture (80: compute capability 8.0) under a driver that
/// takes PTX up to `newest_ptx` (78: 7.8): code for the newest architecture up to it that the
/// driver knows; later devices run that of the newest one here. Throws Error below 70.
runtime::Target target_for(int architecture, int newest_ptx = 78);
/// What a device with such properties runs, under a driver of this version (11020 is 11.2).
runtime::Target target_of(const gpu::Properties& device, int driver_version);

/// Devices present, in the driver's order; none and a reason otherwise. Never throws.
std::vector<runtime::Target> devices(std::string& why_absent);
/// Throws Error where the device is not there any more.
std::unique_ptr<runtime::Driver> open(const runtime::Target& target,
                                      const runtime::Native::Handles* on = nullptr);

}  // namespace quern::cuda
