#pragma once
#include "tests/gpu/ptx/decoder.h"

namespace quern::ptx {
/// cvt.
void decode_conversion(Decoder& d);
}  // namespace quern::ptx
