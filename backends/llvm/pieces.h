#pragma once
// LLVM takes more than linear time in the size of a function, and of a block. Code beyond a size
// is therefore cut into functions of their own, so that a kernel of ten times the statements takes
// ten times as long to compile. What one piece computes for the next passes through memory, and a loop
// over pieces is no vector code: code is cut early where little passes, and only where it is very long
// where much does. That takes LLVM longer to pass on than whole blocks, which are cut otherwise
// (split_blocks.h, keep_in_memory.h).
#include <unordered_map>
#include <vector>

#include "backends/llvm/codegen.h"
#include "quern/ir/ir.h"

namespace llvm {
class BasicBlock;
class Function;
}  // namespace llvm

namespace quern::codegen {

/// The pieces of one function: stretches of instructions that follow each other in a region.
class Pieces {
 public:
  explicit Pieces(const FunctionSizes& limits) : limits_(limits) {}

  /// The instructions that pieces begin with; none where the region is small.
  std::vector<const ir::Inst*> starts(const ir::Region* region);
  /// A piece consists of all blocks from `first` to the one before `behind`; those inside it were
  /// added before.
  void add(llvm::BasicBlock* first, llvm::BasicBlock* behind) { made_.push_back({first, behind}); }
  /// Moves the pieces of `function`, which is complete, out of it.
  void move_out(llvm::Function& function);

 private:
  struct Piece {
    llvm::BasicBlock *first, *behind;
  };

  /// Operations that remain where it stands once the pieces are moved out.
  size_t size(const ir::Inst* inst);
  size_t size(const ir::Region* region);
  /// The same before its own pieces are.
  size_t operations(const ir::Region* region);

  FunctionSizes limits_;
  std::vector<Piece> made_;
  std::unordered_map<const ir::Region*, size_t> sizes_;
};

}  // namespace quern::codegen
