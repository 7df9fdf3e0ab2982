#pragma once
#include "quern/ir/ir.h"

namespace quern::autodiff {

/// Does the kernel, at level structured, store every element of a field before it reads any? Then
/// what it held before has no part in what the kernel does.
bool is_overwritten_first(const ir::Kernel& kernel, uint32_t field);

}  // namespace quern::autodiff
