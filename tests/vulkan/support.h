#pragma once
// The Vulkan instance and drivers of the tests.
#include "backends/vulkan/driver.h"
#include "tests/backend/harness/harness.h"

namespace quern::vulkan {
extern const runtime::Backend backend;
}

namespace quern::test {

/// The one that the driver under test was opened on: with the validation layers where they are
/// installed.
std::shared_ptr<vulkan::Instance> instance();
/// A driver that reaches its memory through staging, as where the host cannot see it.
runtime::Driver& staging_driver();

}  // namespace quern::test
