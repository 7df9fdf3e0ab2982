#pragma once
// Registers for long stretches of code without branches. The time of LLVM's allocators grows with the
// length of the code times the number of values that live at once, and what goes back through a
// thousand operations wants the values of all of them. So the values that are wanted last are stored
// where they are made, and loaded where they are wanted, before LLVM allocates registers.
namespace llvm {
class Module;
class TargetMachine;
}  // namespace llvm

namespace quern::codegen {

/// Of optimised code, in whose long blocks no more vectors and floats are then held at once than
/// there are registers for.
void keep_far_values_in_memory(llvm::Module& module, const llvm::TargetMachine& machine);

}  // namespace quern::codegen
