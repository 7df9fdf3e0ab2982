// expect: a structure is initialised by one of its own type
#include <quern/quern.h>
using namespace quern::lang;
template <class W = HostW>
struct Particle {
  In<W, vec3> x, v;
};
int main() {
  quern::Field<Particle<>> p{8};
  quern::Kernel k = [&](Vec3 v) {
    for (auto i : p) p[i] = v;  // here
  };
}
