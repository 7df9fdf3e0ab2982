#pragma once
// Whole programs on trees: a material point method whose grid is made anew in each step, and a
// convolution of what is active.

namespace bench {

class Report;
/// 3D MLS-MPM: 65,536 particles in a box of 512³ nodes.
void sparse_mpm(Report& report);
/// 3³ voxels, 16 channels to 16, on a sphere's shell; the reference has looked for neighbours before.
void sparse_convolution(Report& report);

}  // namespace bench
