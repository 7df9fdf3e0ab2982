#pragma once
// 3D MLS-MPM of a fluid: particles in the order of their cells and at random.

namespace bench {

class Report;
void mpm3d(Report& report);

}  // namespace bench
