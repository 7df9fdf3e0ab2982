#pragma once
// The last vector of a strip whole: where lanes are masked as iterations end, accesses of arrays that
// have an element for each iteration of a strip (slot.unset) need no mask. The elements behind the
// last iteration are nobody's. A load behind a store with a mask waits until that and all stores
// before it have left the CPU's queue; behind a whole one it does not: what a strip carries from round
// to round would wait for what each round keeps in memory.
namespace llvm {
class AllocaInst;
class Module;
}  // namespace llvm

namespace quern::codegen {

/// Marks an array: each element is an iteration's own, of a strip that there are elements for.
void mark_of_strip(llvm::AllocaInst& array);

/// Of optimised code: takes the masks from accesses of marked arrays where nothing but the end of the
/// strip masks lanes, and whole vectors lie in the array.
void access_whole_lanes(llvm::Module& module);

}  // namespace quern::codegen
