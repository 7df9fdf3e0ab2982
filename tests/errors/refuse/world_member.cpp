// expect: each member of a structure with a world parameter is written In<W, T>
#include <quern/quern.h>
using namespace quern::lang;
template <class W = HostW>
struct Particle {
  In<W, vec3> x;
  float mass;
};
void use(quern::Field<Particle<>> p) {
  quern::Kernel k = [&] {
    p[0].x = vec3(1, 2, 3);  // here
  };
}
