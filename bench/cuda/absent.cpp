// In place of reference.cpp where there is no nvcc.
#include "bench/cuda/reference.h"

namespace bench::cuda {
const Functions* functions() { return nullptr; }
}  // namespace bench::cuda
