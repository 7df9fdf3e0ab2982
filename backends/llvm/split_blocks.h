#pragma once
// Long stretches of code without branches, cut into blocks. LLVM chooses instructions block by block, in
// time that grows with the square of a block's length: what goes back through thousands of operations
// took seconds, and then minutes.
namespace llvm {
class Module;
}

namespace quern::codegen {

/// Is there a block that is worth cutting?
bool has_long_blocks(const llvm::Module& module);

/// Of code that LLVM optimises no more: each of these blocks becomes several, which follow each other.
/// Passes that join blocks must not run behind it.
void split_long_blocks(llvm::Module& module);

}  // namespace quern::codegen
