// expect: with a component for each of the field's axes
#include <quern/rays.h>
namespace qn = quern;
using namespace qn::lang;

void refused(qn::Field<float, 3> u) {
  qn::Kernel k = [&](Vec2 origin) {
    for (auto voxel : voxels_along_ray(u, origin, vec3(1, 0, 0)))  // here
      u[voxel.index] = 1.0f;
  };
}
