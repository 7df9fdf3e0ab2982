// expect: print and check take no structure; pass its members
#include <quern/quern.h>
using namespace quern::lang;
template <class W = HostW>
struct Particle {
  In<W, vec3> x;
};
int main() {
  quern::Kernel k = [](Val<Particle<>> p) {
    print("{}", p);  // here
  };
}
