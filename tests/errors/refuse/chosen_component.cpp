// expect: names the value of a component
#include <quern/quern.h>
using namespace quern::lang;
int main() {
  quern::Kernel k = [](Vec3 v, I32 i) {
    Var<vec3> w = v;
    auto part = w[i];
    part = 1;  // here
  };
}
