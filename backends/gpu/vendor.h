#pragma once
// CUDA and ROCm as back ends: what they do alike, given what they differ in.
#include <memory>
#include <string>
#include <vector>

#include "backends/gpu/gpu.h"
#include "quern/runtime/backend.h"

namespace quern::gpu {

struct Vendor {
  std::string name;  ///< "CUDA"
  /// The vendor's library; null and a reason where there is none.
  std::shared_ptr<const Api> (*api)(std::string& why_absent);
  /// What is compiled for a device. Throws Error where Quern does not serve such a one.
  runtime::Target (*target)(const Api& api, const Properties& device);
};

/// Devices present that are served, in the vendor's order; none and a reason otherwise. Never
/// throws.
std::vector<runtime::Target> devices(const Vendor& vendor, std::string& why_absent);

/// Throws Error where the device is not there any more. What it works `on` (null: a stream of its
/// own) must outlive the driver.
std::unique_ptr<runtime::Driver> open(const Vendor& vendor, const runtime::Target& target,
                                      const runtime::Native::Handles* on);

/// What code for GPUs of this architecture, "triple cpu features", is made for.
runtime::Target target_of(const std::string& backend, const std::string& isa);
/// `code`, what is compiled for it, with what the device has.
runtime::Target target_of(runtime::Target code, const Properties& device);

}  // namespace quern::gpu
