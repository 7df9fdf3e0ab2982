// expect: names a snapshot
#include <quern/quern.h>
using namespace quern::lang;
template <class W = HostW>
struct Particle {
  In<W, vec3> x, v;
};
int main() {
  quern::Field<Particle<>> p{8};
  quern::Kernel k = [&] {
    for (auto i : p) {
      auto q = p[i];
      q.v.y = 1;  // here
    }
  };
}
