#pragma once
// Registers for long stretches of code without branches. The time of LLVM's allocators grows with the
// length of the code times the number of values that live at once, and what goes back through a
// thousand operations wants the values of all of them. So the values that are wanted last are stored
// where they are made, and loaded where they are wanted, before LLVM allocates registers. ptxas
// takes as long over them, and gives a thread all registers there are, so that few are resident.
#include <cstddef>
#include <cstdint>

namespace llvm {
class IRBuilderBase;
class Module;
class TargetMachine;
class Value;
}  // namespace llvm

namespace quern::codegen {

/// Those that vectors and floats are held in.
struct Registers {
  size_t count = 0;           ///< 0: as many, of as many bits, as LLVM knows
  uint64_t bits = 0;          ///< of each
  unsigned memory_space = 0;  ///< address space of the memory that takes the place of others
  /// An i64 that is 0, which an assembler cannot know: it takes memory whose addresses it knows for
  /// registers. Null: there is none.
  llvm::Value* (*hidden_zero)(llvm::IRBuilderBase&) = nullptr;
};

/// Of optimised code, in whose long blocks no more is held at once then than there are registers
/// for.
void keep_far_values_in_memory(llvm::Module& module, const llvm::TargetMachine& machine,
                               const Registers& registers);

}  // namespace quern::codegen
