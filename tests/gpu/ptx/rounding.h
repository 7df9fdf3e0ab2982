#pragma once
// Rounding of floats on the host: its modes, and halves.
#include <cfenv>
#include <cstdint>

#include "tests/gpu/ptx/code.h"

namespace quern::ptx {

using Half = _Float16;

/// The mode of the host while it lives. What is computed under it comes from memory and goes there, so
/// that compilers move nothing out of its scope.
class RoundingMode {
 public:
  explicit RoundingMode(Rounding r) : before_(std::fegetround()) {
    const int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
    if (r != Rounding::nearest) std::fesetround(modes[size_t(r)]);
  }
  ~RoundingMode() { std::fesetround(before_); }
  RoundingMode(const RoundingMode&) = delete;

 private:
  int before_;
};

/// a·b + c, rounded once.
Half fused_half(Half a, Half b, Half c);

/// Rounded in the given way, whatever the host's mode.
Half half_of(double v, Rounding r);

}  // namespace quern::ptx
