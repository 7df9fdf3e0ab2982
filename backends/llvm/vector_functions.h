#pragma once
// Vector code calls vector functions: what a kernel calls is there for vectors of its arguments
// too, under names that LLVM's vectoriser finds.
#include <vector>

#include "backends/llvm/codegen.h"

namespace quern::codegen {

/// The lengths of vectors that a function is made for.
std::vector<unsigned> vector_lengths(const Machine& machine, const ir::Function& f);

/// Removes those that no loop has called, once loops are vectorised.
void drop_unused_vector_functions(llvm::Module& module);

}  // namespace quern::codegen
