#pragma once
// Divisions of integers that do not change in a loop leave it before LLVM vectorises. One that LLVM has
// moved into a branch stays there, since it could trap: LLVM 19 then divides once for all lanes, but only
// where the first lane takes the branch, and all lanes use what came of it (VPReplicateRecipe, uniform
// and predicated).
#include <llvm/IR/PassManager.h>

namespace quern::codegen {

/// Guarantees: no division or remainder of integers in an innermost loop with a preheader has operands that
/// could be computed before the loop. Those moved divide by 1 where they would trap, which in the
/// program they do not.
struct HoistDivisions : llvm::PassInfoMixin<HoistDivisions> {
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
};

}  // namespace quern::codegen
