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
class AllocaInst;
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
  /// A piece of `region` consists of all blocks from `first` to the one before `behind`; those inside
  /// it were added before.
  void add(const ir::Region* region, llvm::BasicBlock* first, llvm::BasicBlock* behind) {
    made_.push_back({region, first, behind});
  }
  /// The memory of a slot, in the function's first block.
  void add_slot(const ir::Inst& slot, llvm::AllocaInst& memory) {
    slots_.push_back({&slot, &memory});
  }
  /// Moves the pieces of `function`, which is complete, out of it, and with them the slots that they
  /// alone use: an array whose place is known takes no register, and its accesses no mask
  /// (whole_lanes.h).
  void move_out(llvm::Function& function);

 private:
  struct Piece {
    const ir::Region* region;
    llvm::BasicBlock *first, *behind;
  };
  struct Slot {
    const ir::Inst* inst;
    llvm::AllocaInst* memory;
  };

  /// Operations that remain where it stands once the pieces are moved out.
  size_t size(const ir::Inst* inst);
  size_t size(const ir::Region* region);
  /// The same before its own pieces are.
  size_t operations(const ir::Region* region);

  /// Takes the slots that only the piece uses from those of the function that it was moved out of.
  void move_slots(const Piece& piece, llvm::Function& moved);
  /// Puts the other arrays that pieces are passed into one, of which each is passed one place.
  void share_frame(llvm::Function& function);

  FunctionSizes limits_;
  std::vector<Piece> made_;
  std::vector<Slot> slots_;
  std::unordered_map<const ir::Region*, size_t> sizes_;
};

}  // namespace quern::codegen
