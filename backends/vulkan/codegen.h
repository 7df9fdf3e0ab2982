#pragma once
// A lowered task as a SPIR-V 1.6 module. Memory is reached through 64-bit addresses (physical
// storage buffers), control flow keeps the structure of the IR.
#include <vector>

#include "backends/vulkan/interface.h"
#include "quern/ir/ir.h"

namespace quern::vulkan {

/// The loops that CutLoop numbers.
std::vector<const ir::Inst*> loops_of(const ir::Task& task);

/// The module of a task. Throws Error where the device lacks what the task needs, InternalError for
/// an operation that lowering should have replaced.
std::vector<uint32_t> generate(const ir::Kernel& kernel, size_t task, const Abilities& abilities);

}  // namespace quern::vulkan
