#pragma once
#include "quern/runtime/compiler.h"

namespace quern::vulkan {

/// Runs + − × ÷ √ fma, comparisons and conversions on hard cases on the device, since Vulkan does
/// not promise how they round and NVIDIA's driver keeps subnormal numbers of f32 in some of them
/// only: sets the traits fma_exact, div_exact and sqrt_exact, the ability flushes_f32, and
/// strict_refusal, of `target`. Measured once per device name in a process.
void measure_rounding(runtime::Driver& driver, const runtime::Compiler& compiler,
                      runtime::Target& target);

}  // namespace quern::vulkan
