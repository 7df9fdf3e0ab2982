#pragma once
// What iterations combine by min, max and products, written so that its derivative is that of
// ordinary code.
//
// The minimum of many depends on those that equal it, which an iteration does not know while others
// go on. Behind each parallel loop that combines floats so, by atomics or by a reduction, copies of
// the loop are put that compute again what was combined and nothing else. They count who equals the
// result, take what stood there before its part in it, and add to it a zero that varies with each
// contribution that won, divided by their number (docs/semantics.md, section 3). Values stay as
// they are, bit for bit. Products vary by the product of the other factors: that of all that are
// not 0, divided by the own one, where no other is 0. Of elements, the value from before the loop
// is such a factor, which is kept in front of it. Either direction then differentiates these
// copies; the atomic itself has none. Outside of parallel loops there is one order: there atomics
// whose old values are used, and exchanges, become reads and stores.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "quern/ir/ir.h"

namespace quern::autodiff {

/// A field that the copies need beside another: its companion of this name. What it holds before
/// and behind a launch is nobody's.
struct Scratch {
  uint32_t of = ir::no_binding;
  std::string companion;
  /// For second derivatives: what it holds varies.
  bool varies = false;
};

/// Who differentiates what comes out once more.
enum class Second : uint8_t {
  none,
  by_kernel,  ///< takes it as it takes any kernel: products are combined there again
  by_log      ///< takes what was logged of it, with tangents: products must have theirs
};

/// A minimum, maximum or product of floats, atomic or reduced.
bool is_combined(const ir::Inst* inst);

/// What to do instead of an atomic of floats in a parallel loop that has no derivative.
const char* instead_of(ir::AtomicOp op);

struct Combined {
  bool is_any = false;           ///< is anything combined?
  std::vector<Scratch> scratch;  ///< of the bindings that are added behind all others
  /// Writes whose values change nothing.
  std::vector<ir::Inst*> without_value;
  /// Bindings of which it is not known whether they overlap, and which must not.
  std::vector<std::pair<uint32_t, uint32_t>> distinct;
};

/// Of a kernel at level structured, optimised. `varies`: of each binding, whether its floats have
/// derivatives. `knows_overlaps`: fields of one alias class may overlap, others do not; else
/// Combined::distinct says which must not. Throws Error with the line where what is combined cannot
/// be computed behind the loop: it reads what the loop writes, or old values of atomics; or where
/// other accesses of the loop meet the same elements.
Combined derive_combined(ir::Kernel& kernel, const std::vector<bool>& varies, bool knows_overlaps,
                         Second second);

}  // namespace quern::autodiff
