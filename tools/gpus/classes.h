#pragma once
// What the instructions of AMD's code do.
#include <compare>
#include <cstdint>
#include <string_view>

namespace quern::gpus {

/// Instructions of a kernel's code by what they do. Moves, conversions, scalar code, branches and
/// waits are among none of these.
struct Classes {
  int64_t arithmetic = 0;                      ///< of vectors, but for special functions
  int64_t special = 0;                         ///< roots, reciprocals, powers, logarithms, sines
  int64_t loads = 0, stores = 0, atomics = 0;  ///< of global memory
  int64_t shared = 0;                          ///< accesses of the block's memory
  int64_t shuffles = 0;                        ///< reads of other lanes' registers
  int64_t barriers = 0;
  auto operator<=>(const Classes&) const = default;
};

/// Adds an instruction by LLVM's name: "V_ADD_F32_e32_gfx11", "GLOBAL_LOAD_B32_gfx12"; two at once:
/// "V_DUAL_ADD_F32_X_MUL_F32_gfx11".
void count(std::string_view name, Classes& to);

}  // namespace quern::gpus
