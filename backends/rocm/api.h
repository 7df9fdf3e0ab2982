#pragma once
// AMD's HIP runtime, found at run time.
#include <memory>

#include "backends/gpu/api.h"
#include "backends/gpu/gpu.h"
#include "quern/runtime/backend.h"

namespace quern::rocm {

/// The functions of libamdhip64.so.7, .6 or .5, or of the library that QUERN_HIP_LIBRARY names;
/// loaded once and kept. Null and a reason where there is none, or without a device.
std::shared_ptr<const gpu::Api> api(std::string& why_absent);
/// The same of the first of these libraries that can be opened, loaded anew.
std::shared_ptr<const gpu::Api> load_api(std::initializer_list<std::string> libraries,
                                         std::string& why_absent);

/// The target of a device whose architecture is `name`: "gfx90a", or as HIP tells it,
/// "gfx90a:sramecc+:xnack-". Throws Error where it is no name of AMD's, or the wave is not one of its
/// own.
enum class Wave { usual, lanes_32, lanes_64 };
runtime::Target target_for(const std::string& name, Wave wave = Wave::usual);
/// What a device with such properties runs.
runtime::Target target_of(const gpu::Properties& device);

/// Devices present, in the driver's order; none and a reason otherwise. Never throws.
std::vector<runtime::Target> devices(std::string& why_absent);
/// Throws Error where the device is not there any more.
std::unique_ptr<runtime::Driver> open(const runtime::Target& target,
                                      const runtime::Native::Handles* on = nullptr);

}  // namespace quern::rocm
