// expect: no such operation
#include <quern/quern.h>
using namespace quern::lang;
int main() {
  quern::Kernel k = [&](Vec3 a, Vec2 b) {
    auto c = a + b;  // here
  };
}
