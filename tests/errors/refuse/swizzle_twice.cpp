// expect: this is a value and never changes
#include <quern/quern.h>
using namespace quern::lang;
int main() {
  quern::Kernel k = [](Vec3 v) {
    Var<vec3> w = v;
    w.xx() = vec2(1, 2);  // here
  };
}
