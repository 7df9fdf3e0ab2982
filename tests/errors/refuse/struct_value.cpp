// expect: never changes
#include <quern/quern.h>
using namespace quern::lang;
template <class W = HostW>
struct Particle {
  In<W, vec3> x, v;
};
int main() {
  quern::Kernel k = [](Val<Particle<>> p, Vec3 v) {
    p.v = v;  // here
  };
}
