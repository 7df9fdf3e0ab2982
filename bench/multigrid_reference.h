#pragma once
// Red-black Gauss-Seidel in plain C++, compiled as bench/reference.h says.

namespace bench::reference {

/// Half a sweep for -Δz = b by the seven-point stencil, with spacing 1, in a box of n³ elements that z
/// has with a border of one element: `to` is, where (i + j + k) % 2 is `colour`, relaxed from
/// neighbours in `from`, elsewhere what that is. All threads.
void red_black(const float* from, const float* b, float* to, int n, int colour);

}  // namespace bench::reference
